//! Lines of an Ollama chat reply.

use crate::json::{Node, Object, object_of, quoted};
use crate::malformed::Malformed;
use crate::reply::{Call, Finish, Reply, Usage, ollama};

#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    text: String,
    thinking: String,
    calls: Vec<Call>,
    raw_calls: Vec<String>,
    finish: Finish,
    usage: Usage,
}

impl Partial {
    pub(super) fn push(&mut self, root: &Object<'_>) -> Result<(), Malformed> {
        if let Some(message) = root.child("message")? {
            self.text += &message.text("content").unwrap_or_default();
            self.thinking += &message.text("thinking").unwrap_or_default();
            self.calls.extend(ollama::calls(&message)?);
            let raw = message.list("tool_calls")?;
            self.raw_calls
                .extend(raw.iter().map(|call| call.raw().to_owned()));
        }
        if root.get("done").is_some_and(Node::is_true) {
            let reason = root.text("done_reason").unwrap_or("stop".into());
            self.finish = ollama::finish(Some(&reason), !self.calls.is_empty());
            self.usage = ollama::usage(root);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Reply {
        let thinking = (!self.thinking.is_empty()).then(|| quoted(&self.thinking));
        let mut message = vec![
            ("role", quoted("assistant")),
            ("content", quoted(&self.text)),
        ];
        message.extend(thinking.clone().map(|thinking| ("thinking", thinking)));
        if !self.raw_calls.is_empty() {
            message.push(("tool_calls", format!("[{}]", self.raw_calls.join(","))));
        }
        Reply {
            text: self.text,
            calls: self.calls,
            reasoning: thinking.into_iter().collect(),
            finish: self.finish,
            usage: self.usage,
            messages: vec![object_of(&message)],
        }
    }
}
