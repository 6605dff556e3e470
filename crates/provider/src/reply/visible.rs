//! What a client sees of a reply: everything but the memory tools (AMP items 27, 28).

use crate::Format;
use crate::edit::Splices;
use crate::json::{Node, Object};
use crate::layout::List;
use crate::malformed::Malformed;
use crate::tools::Names;
use std::ops::Range;

/// The body without calls of memory tools, without their definitions where a provider repeats these, and with the finish that the rest has.
/// All other bytes are what they were; a body with nothing of memory in it comes back as it is.
pub fn visible(format: Format, body: &[u8], names: &Names) -> Result<Vec<u8>, Malformed> {
    let document = Node::document(body)?;
    let text = std::str::from_utf8(body).expect("a document is UTF-8");
    let cuts = cuts(format, &document.object()?, names)?;
    Ok(cut(text, &cuts))
}

/// The same for an event of a stream of `OpenAI` responses, where it repeats the response so far.
pub(crate) fn visible_event(data: &str, names: &Names) -> Result<String, Malformed> {
    let root = Node::of_text(data)?.object()?;
    let cuts = match root.child("response")? {
        Some(response) => responses(&response, names)?,
        None => Vec::new(),
    };
    let bytes = cut(data, &cuts);
    Ok(String::from_utf8(bytes).expect("cuts are between characters"))
}

fn cut(text: &str, cuts: &[Cut]) -> Vec<u8> {
    let mut splices = Splices::default();
    for cut in cuts {
        match cut {
            Cut::Items(list, items) => items.iter().for_each(|item| splices.remove(list, *item)),
            Cut::Replace(range, with) => splices.replace(range.clone(), (*with).to_owned()),
        }
    }
    splices
        .into_bytes(text)
        .expect("cuts are in different lists and values")
}

enum Cut {
    /// Items of a list.
    Items(List, Vec<usize>),
    /// A value.
    Replace(Range<usize>, &'static str),
}

fn cuts(format: Format, root: &Object<'_>, names: &Names) -> Result<Vec<Cut>, Malformed> {
    match format {
        Format::OpenaiChat => chat(root, names),
        Format::OpenaiResponses => responses(root, names),
        Format::AnthropicMessages => anthropic(root, names),
        Format::Gemini => gemini(root, names),
        Format::OllamaChat => {
            let message = root.child("message")?;
            Ok(message.map_or(Ok(Vec::new()), |message| {
                function_calls(&message, names).map(|(cuts, _)| cuts)
            })?)
        }
    }
}

/// Items of an array that are memory's; the second says whether others that count as calls are left.
fn items(
    array: Option<Node<'_>>,
    names: &Names,
    name: fn(&Object<'_>) -> Option<String>,
) -> Result<(Vec<Cut>, bool), Malformed> {
    let Some(array) = array.filter(|array| array.is_array()) else {
        return Ok((Vec::new(), false));
    };
    let elements = array.elements()?;
    let (mut ours, mut others) = (Vec::new(), false);
    for (index, element) in elements.iter().enumerate() {
        if !element.is_object() {
            continue;
        }
        match name(&element.object()?) {
            Some(name) if names.contains(&name) => ours.push(index),
            Some(_) => others = true,
            None => {}
        }
    }
    if ours.is_empty() {
        return Ok((Vec::new(), others));
    }
    Ok((
        vec![Cut::Items(List::of_array(array, &elements), ours)],
        others,
    ))
}

fn nested_name(object: &Object<'_>) -> Option<String> {
    let function = object.child("function").ok()??;
    function.text("name").map(Into::into)
}

fn call_name(object: &Object<'_>) -> Option<String> {
    let kind = object.text("type")?;
    matches!(&*kind, "function_call" | "custom_tool_call" | "tool_use")
        .then(|| object.text("name").unwrap_or_default().into_owned())
}

/// The calls of a message; where all are memory's the list goes as a whole.
fn function_calls(message: &Object<'_>, names: &Names) -> Result<(Vec<Cut>, bool), Malformed> {
    let (cuts, others) = items(message.get("tool_calls"), names, nested_name)?;
    if cuts.is_empty() || others {
        return Ok((cuts, others));
    }
    let member = message.members.iter().position(|m| m.name == "tool_calls");
    let whole = member.map(|member| Cut::Items(List::of_object(message), vec![member]));
    Ok((whole.into_iter().collect(), false))
}

fn ended(cuts: &mut Vec<Cut>, object: &Object<'_>, field: &str, from: &str, to: &'static str) {
    let value = object.get(field).filter(|value| value.raw() == from);
    cuts.extend(value.map(|value| Cut::Replace(value.range(), to)));
}

fn chat(root: &Object<'_>, names: &Names) -> Result<Vec<Cut>, Malformed> {
    let mut all = Vec::new();
    for choice in root.list("choices")? {
        let choice = choice.object()?;
        let Some(message) = choice.child("message")? else {
            continue;
        };
        let (mut cuts, others) = function_calls(&message, names)?;
        if !cuts.is_empty() && !others {
            ended(
                &mut cuts,
                &choice,
                "finish_reason",
                r#""tool_calls""#,
                r#""stop""#,
            );
        }
        all.extend(cuts);
    }
    Ok(all)
}

/// A response repeats the tools of its request.
fn responses(root: &Object<'_>, names: &Names) -> Result<Vec<Cut>, Malformed> {
    let (mut cuts, _) = items(root.get("output"), names, call_name)?;
    let (tools, _) = items(root.get("tools"), names, |tool| {
        tool.text("name").map(Into::into)
    })?;
    cuts.extend(tools);
    Ok(cuts)
}

fn anthropic(root: &Object<'_>, names: &Names) -> Result<Vec<Cut>, Malformed> {
    let (mut cuts, others) = items(root.get("content"), names, call_name)?;
    if !cuts.is_empty() && !others {
        ended(
            &mut cuts,
            root,
            "stop_reason",
            r#""tool_use""#,
            r#""end_turn""#,
        );
    }
    Ok(cuts)
}

fn gemini(root: &Object<'_>, names: &Names) -> Result<Vec<Cut>, Malformed> {
    let mut all = Vec::new();
    for candidate in root.list("candidates")? {
        let candidate = candidate.object()?;
        let Some(content) = candidate.child("content")? else {
            continue;
        };
        let (cuts, _) = items(content.get("parts"), names, |part| {
            let call = part.child("functionCall").ok()??;
            Some(call.text("name").unwrap_or_default().into_owned())
        })?;
        all.extend(cuts);
    }
    Ok(all)
}
