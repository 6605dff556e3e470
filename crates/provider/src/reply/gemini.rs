//! A Gemini response; the first candidate's content goes back as it is, thought signatures with it.

use super::{Call, Finish, Reply, Usage, count};
use crate::json::{Node, Object};
use crate::malformed::Malformed;
use std::borrow::Cow;

/// A response without candidates is one whose prompt was blocked: it says nothing.
pub(super) fn read(root: &Object<'_>) -> Result<Reply, Malformed> {
    let mut reply = Reply {
        usage: usage(root)?,
        ..Reply::default()
    };
    let candidates = root.list("candidates")?;
    let Some(candidate) = candidates.first() else {
        reply.finish = Finish::Filtered;
        return Ok(reply);
    };
    let place = |error: Malformed| error.at(0).within("candidates");
    let candidate = candidate.object().map_err(place)?;
    let Some(content) = candidate.present("content") else {
        reply.finish = finish(candidate.text("finishReason").as_deref(), &reply);
        return Ok(reply);
    };
    let object = content
        .object()
        .map_err(|error| place(error.within("content")))?;
    for part in object.list("parts").map_err(place)? {
        add(&mut reply, part, &part.object().map_err(place)?);
    }
    reply.messages = vec![content.raw().to_owned()];
    reply.finish = finish(candidate.text("finishReason").as_deref(), &reply);
    Ok(reply)
}

pub(crate) fn add(reply: &mut Reply, part: Node<'_>, object: &Object<'_>) {
    if object.get("thought").is_some_and(Node::is_true) {
        reply.reasoning.push(part.raw().to_owned());
        return;
    }
    if let Ok(Some(call)) = object.child("functionCall") {
        reply.calls.push(Call {
            id: call.text("id").map(Cow::into_owned),
            name: call.text("name").unwrap_or_default().into_owned(),
            arguments: call
                .get("args")
                .map_or_else(String::new, |args| args.raw().to_owned()),
        });
        return;
    }
    reply.text += &object.text("text").unwrap_or_default();
}

pub(crate) fn finish(reason: Option<&str>, reply: &Reply) -> Finish {
    match reason {
        None => Finish::Unknown,
        Some("STOP") if reply.calls.is_empty() => Finish::Stop,
        Some("STOP") => Finish::ToolCalls,
        Some("MAX_TOKENS") => Finish::Length,
        Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => {
            Finish::Filtered
        }
        Some(other) => Finish::Other(other.to_owned()),
    }
}

pub(crate) fn usage(root: &Object<'_>) -> Result<Usage, Malformed> {
    let usage = root.child("usageMetadata")?;
    let usage = usage.as_ref();
    Ok(Usage {
        input: count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
        cached: count(usage, "cachedContentTokenCount"),
        output: count(usage, "candidatesTokenCount") + count(usage, "thoughtsTokenCount"),
    })
}
