//! A chat completion; the first of its choices counts.

use super::{Call, Finish, Reply, Usage, count};
use crate::json::Object;
use crate::malformed::{Malformed, Reason};
use std::borrow::Cow;

pub(super) fn read(root: &Object<'_>) -> Result<Reply, Malformed> {
    let choices = root.list("choices")?;
    let place = |error: Malformed| error.at(0).within("choices");
    let choice = choices
        .first()
        .ok_or_else(|| Malformed::here(Reason::Missing).at(0).within("choices"))?
        .object()
        .map_err(place)?;
    let raw = choice.required("message").map_err(place)?;
    let message = raw
        .object()
        .map_err(|error| place(error.within("message")))?;
    let reasoning = ["reasoning_content", "reasoning", "reasoning_details"];
    let reasoning = reasoning
        .into_iter()
        .filter_map(|name| message.present(name))
        .map(|value| value.raw().to_owned());
    Ok(Reply {
        text: words(&message),
        calls: calls(&message).map_err(|error| place(error.within("message")))?,
        reasoning: reasoning.collect(),
        finish: finish(choice.text("finish_reason").as_deref()),
        usage: usage(root)?,
        messages: vec![raw.raw().to_owned()],
    })
}

/// The words of a message, or of a piece of one, that its reader sees or hears: the content as a
/// text or as parts, a refusal, and the transcript of an audio.
pub(crate) fn words(message: &Object<'_>) -> String {
    let mut words = message.text("content").unwrap_or_default().into_owned();
    for part in message.list("content").unwrap_or_default() {
        words += &part.object().map(|part| spoken(&part)).unwrap_or_default();
    }
    words += &message.text("refusal").unwrap_or_default();
    if let Ok(Some(audio)) = message.child("audio") {
        words += &audio.text("transcript").unwrap_or_default();
    }
    words
}

/// The words of a part, whichever kind it is of.
pub(crate) fn spoken(part: &Object<'_>) -> String {
    let mut names = ["text", "refusal", "transcript"].into_iter();
    let words = names.find_map(|name| part.text(name));
    words.unwrap_or_default().into_owned()
}

fn calls(message: &Object<'_>) -> Result<Vec<Call>, Malformed> {
    let elements = message.list("tool_calls")?.into_iter().enumerate();
    elements
        .map(|(index, element)| {
            element
                .object()
                .and_then(|object| call(&object))
                .map_err(|error| error.at(index).within("tool_calls"))
        })
        .collect()
}

fn call(object: &Object<'_>) -> Result<Call, Malformed> {
    let kind = object.text("type").unwrap_or(Cow::Borrowed("function"));
    let function = object.child(&kind)?;
    let text = |name: &str| function.as_ref().and_then(|function| function.text(name));
    Ok(Call {
        id: object.text("id").map(Cow::into_owned),
        name: text("name").unwrap_or_default().into_owned(),
        arguments: text("arguments")
            .or_else(|| text("input"))
            .unwrap_or_default()
            .into_owned(),
    })
}

pub(crate) fn finish(reason: Option<&str>) -> Finish {
    match reason {
        None => Finish::Unknown,
        Some("stop") => Finish::Stop,
        Some("length") => Finish::Length,
        Some("tool_calls" | "function_call") => Finish::ToolCalls,
        Some("content_filter") => Finish::Filtered,
        Some(other) => Finish::Other(other.to_owned()),
    }
}

pub(crate) fn usage(root: &Object<'_>) -> Result<Usage, Malformed> {
    let usage = root.child("usage")?;
    let details = match &usage {
        Some(usage) => usage.child("prompt_tokens_details")?,
        None => None,
    };
    Ok(Usage {
        input: count(usage.as_ref(), "prompt_tokens"),
        cached: count(details.as_ref(), "cached_tokens"),
        output: count(usage.as_ref(), "completion_tokens"),
    })
}
