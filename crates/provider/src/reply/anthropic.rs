//! An Anthropic message; its content goes back as it is, thinking and signatures with it.

use super::{Call, Finish, Reply, Usage, count};
use crate::json::{Node, Object};
use crate::malformed::Malformed;
use std::borrow::Cow;

pub(super) fn read(root: &Object<'_>) -> Result<Reply, Malformed> {
    let content = root.required("content")?;
    let blocks = content
        .elements()
        .map_err(|error| error.within("content"))?;
    let mut reply = Reply {
        finish: finish(root.text("stop_reason").as_deref()),
        usage: usage(root)?,
        messages: vec![format!(
            r#"{{"role":"assistant","content":{}}}"#,
            content.raw()
        )],
        ..Reply::default()
    };
    for (index, block) in blocks.iter().enumerate() {
        let object = block
            .object()
            .map_err(|error| error.at(index).within("content"))?;
        add(&mut reply, *block, &object);
    }
    Ok(reply)
}

pub(crate) fn add(reply: &mut Reply, block: Node<'_>, object: &Object<'_>) {
    match object.text("type").as_deref() {
        Some("text") => reply.text += &object.text("text").unwrap_or_default(),
        Some("thinking" | "redacted_thinking") => reply.reasoning.push(block.raw().to_owned()),
        // Tools that the provider runs are answered by it.
        Some("tool_use") => reply.calls.push(Call {
            id: object.text("id").map(Cow::into_owned),
            name: object.text("name").unwrap_or_default().into_owned(),
            arguments: object
                .get("input")
                .map_or_else(String::new, |input| input.raw().to_owned()),
        }),
        _ => {}
    }
}

pub(crate) fn finish(reason: Option<&str>) -> Finish {
    match reason {
        None => Finish::Unknown,
        Some("end_turn" | "stop_sequence") => Finish::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("tool_use") => Finish::ToolCalls,
        Some("refusal") => Finish::Filtered,
        Some(other) => Finish::Other(other.to_owned()),
    }
}

pub(crate) fn usage(root: &Object<'_>) -> Result<Usage, Malformed> {
    let usage = root.child("usage")?;
    let cached = count(usage.as_ref(), "cache_read_input_tokens");
    let written = count(usage.as_ref(), "cache_creation_input_tokens");
    Ok(Usage {
        input: count(usage.as_ref(), "input_tokens") + cached + written,
        cached,
        output: count(usage.as_ref(), "output_tokens"),
    })
}
