//! An Ollama chat reply.

use super::{Call, Finish, Reply, Usage, count};
use crate::json::{Node, Object};
use crate::malformed::Malformed;
use std::borrow::Cow;

pub(super) fn read(root: &Object<'_>) -> Result<Reply, Malformed> {
    let raw = root.required("message")?;
    let message = raw.object().map_err(|error| error.within("message"))?;
    let calls = calls(&message).map_err(|error| error.within("message"))?;
    Ok(Reply {
        text: message.text("content").unwrap_or_default().into_owned(),
        reasoning: message
            .present("thinking")
            .map(|thinking| thinking.raw().to_owned())
            .into_iter()
            .collect(),
        finish: finish(root.text("done_reason").as_deref(), !calls.is_empty()),
        calls,
        usage: usage(root),
        messages: vec![raw.raw().to_owned()],
    })
}

pub(crate) fn calls(message: &Object<'_>) -> Result<Vec<Call>, Malformed> {
    let elements = message.list("tool_calls")?.into_iter().enumerate();
    elements
        .map(|(index, element)| call(element).map_err(|error| error.at(index).within("tool_calls")))
        .collect()
}

fn call(element: Node<'_>) -> Result<Call, Malformed> {
    let object = element.object()?;
    let function = object.child("function")?;
    let function = function.as_ref();
    Ok(Call {
        id: object.text("id").map(Cow::into_owned),
        name: function
            .and_then(|function| function.text("name"))
            .unwrap_or_default()
            .into_owned(),
        arguments: function
            .and_then(|function| function.get("arguments"))
            .map_or_else(String::new, |arguments| arguments.raw().to_owned()),
    })
}

pub(crate) fn finish(reason: Option<&str>, calls: bool) -> Finish {
    match reason {
        None => Finish::Unknown,
        Some("stop") if calls => Finish::ToolCalls,
        Some("stop") => Finish::Stop,
        Some("length") => Finish::Length,
        Some(other) => Finish::Other(other.to_owned()),
    }
}

pub(crate) fn usage(root: &Object<'_>) -> Usage {
    Usage {
        input: count(Some(root), "prompt_eval_count"),
        cached: 0,
        output: count(Some(root), "eval_count"),
    }
}
