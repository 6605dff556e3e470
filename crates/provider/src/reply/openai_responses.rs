//! A response; every item of its output goes back as an item of the next input.

use super::{Call, Finish, Reply, Usage, count, openai_chat};
use crate::json::{Node, Object};
use crate::malformed::{Malformed, Reason};
use std::borrow::Cow;

pub(crate) fn read(root: &Object<'_>) -> Result<Reply, Malformed> {
    let output = root.required("output")?;
    let items = output.elements().map_err(|error| error.within("output"))?;
    let mut reply = of_items(&items).map_err(|error| error.within("output"))?;
    reply.finish = finish(root, &reply)?;
    reply.usage = usage(root)?;
    Ok(reply)
}

/// The reply that these items make.
pub(crate) fn of_items(items: &[Node<'_>]) -> Result<Reply, Malformed> {
    let mut reply = Reply::default();
    for (index, item) in items.iter().enumerate() {
        let object = item.object().map_err(|error| error.at(index))?;
        add(&mut reply, *item, &object).map_err(|error| error.at(index))?;
    }
    Ok(reply)
}

fn add(reply: &mut Reply, item: Node<'_>, object: &Object<'_>) -> Result<(), Malformed> {
    match object.text("type").as_deref() {
        Some("function_call" | "custom_tool_call") => reply.calls.push(Call {
            id: object.text("call_id").map(Cow::into_owned),
            name: object.text("name").unwrap_or_default().into_owned(),
            arguments: object
                .text("arguments")
                .or_else(|| object.text("input"))
                .unwrap_or_default()
                .into_owned(),
        }),
        Some("reasoning") => reply.reasoning.push(item.raw().to_owned()),
        Some("message") => {
            for part in object.list("content")? {
                reply.text += &openai_chat::spoken(&part.object()?);
            }
        }
        Some(_) => {}
        None => return Err(Malformed::here(Reason::Missing).within("type")),
    }
    reply.messages.push(item.raw().to_owned());
    Ok(())
}

fn finish(root: &Object<'_>, reply: &Reply) -> Result<Finish, Malformed> {
    let incomplete = root.child("incomplete_details")?;
    let reason = incomplete.and_then(|details| details.text("reason"));
    Ok(match (root.text("status").as_deref(), reason.as_deref()) {
        (_, Some("max_output_tokens")) => Finish::Length,
        (_, Some("content_filter")) => Finish::Filtered,
        (Some("completed"), _) if reply.calls.is_empty() => Finish::Stop,
        (Some("completed"), _) => Finish::ToolCalls,
        (Some(other), _) => Finish::Other(other.to_owned()),
        (None, _) => Finish::Unknown,
    })
}

fn usage(root: &Object<'_>) -> Result<Usage, Malformed> {
    let usage = root.child("usage")?;
    let details = match &usage {
        Some(usage) => usage.child("input_tokens_details")?,
        None => None,
    };
    Ok(Usage {
        input: count(usage.as_ref(), "input_tokens"),
        cached: count(details.as_ref(), "cached_tokens"),
        output: count(usage.as_ref(), "output_tokens"),
    })
}
