//! What a client reads as the cost of its reply: hidden rounds are in it (AMP item 38).

use super::Usage;
use crate::Format;
use crate::edit::Splices;
use crate::json::{Node, Object};
use crate::malformed::Malformed;

/// The body of a reply, or the data of an event, with the tokens of hidden rounds added wherever it counts tokens. Other bytes stay; what
/// counts nothing comes back as it is. That hidden rounds are in it is for the caller to say, in a header.
pub fn with_hidden(format: Format, body: &[u8], hidden: Usage) -> Result<Vec<u8>, Malformed> {
    let document = Node::document(body)?;
    let text = std::str::from_utf8(body).expect("a document is UTF-8");
    let root = document.object()?;
    let mut splices = Splices::default();
    for usage in usages(format, &root)? {
        for (name, more) in added(format, hidden) {
            let count = usage.get(name);
            if let (Some(node), Some(old)) = (count, count.and_then(Node::unsigned))
                && more > 0
            {
                splices.replace(node.range(), old.saturating_add(more).to_string());
            }
        }
    }
    Ok(splices.into_bytes(text).expect("counts are apart"))
}

/// The objects that count: of the reply, of the reply so far in an event, and what they say in detail.
fn usages<'a>(format: Format, root: &Object<'a>) -> Result<Vec<Object<'a>>, Malformed> {
    if format == Format::OllamaChat {
        return Ok(vec![root.clone()]);
    }
    let mut found = Vec::new();
    for inner in ["response", "message"] {
        if let Some(inner) = root.child(inner)? {
            found.extend(inner.child("usage")?);
        }
    }
    for name in ["usage", "usageMetadata"] {
        found.extend(root.child(name)?);
    }
    let mut details = Vec::new();
    for usage in &found {
        for name in ["prompt_tokens_details", "input_tokens_details"] {
            details.extend(usage.child(name)?);
        }
    }
    found.extend(details);
    Ok(found)
}

/// What is added to the counts of these names. Anthropic counts cached tokens apart from the input, the others within it.
fn added(format: Format, hidden: Usage) -> Vec<(&'static str, u64)> {
    let Usage {
        input,
        cached,
        output,
    } = hidden;
    let total = input.saturating_add(output);
    match format {
        Format::OpenaiChat => vec![
            ("prompt_tokens", input),
            ("completion_tokens", output),
            ("total_tokens", total),
            ("cached_tokens", cached),
        ],
        Format::OpenaiResponses => vec![
            ("input_tokens", input),
            ("output_tokens", output),
            ("total_tokens", total),
            ("cached_tokens", cached),
        ],
        Format::AnthropicMessages => vec![
            ("input_tokens", input.saturating_sub(cached)),
            ("cache_read_input_tokens", cached),
            ("output_tokens", output),
        ],
        Format::Gemini => vec![
            ("promptTokenCount", input),
            ("cachedContentTokenCount", cached),
            ("candidatesTokenCount", output),
            ("totalTokenCount", total),
        ],
        Format::OllamaChat => vec![("prompt_eval_count", input), ("eval_count", output)],
    }
}
