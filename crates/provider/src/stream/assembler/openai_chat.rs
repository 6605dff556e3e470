//! Chunks of a chat completion; the first choice counts.

use crate::json::{Node, Object, object_of, quoted};
use crate::malformed::Malformed;
use crate::reply::{Call, Finish, Reply, Usage, openai_chat};
use crate::stream::numbering::Numbering;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    text: String,
    /// By the name of the field that it comes in.
    reasoning: BTreeMap<&'static str, String>,
    details: Vec<String>,
    calls: BTreeMap<u64, PartialCall>,
    numbering: Numbering,
    finish: Finish,
    usage: Usage,
}

#[derive(Clone, Debug, Default)]
struct PartialCall {
    id: Option<String>,
    name: String,
    arguments: String,
}

impl Partial {
    pub(super) fn push(&mut self, root: &Object<'_>) -> Result<(), Malformed> {
        if root.present("usage").is_some() {
            self.usage = openai_chat::usage(root)?;
        }
        for choice in root.list("choices")? {
            let choice = choice.object()?;
            if choice.get("index").and_then(Node::unsigned).unwrap_or(0) != 0 {
                continue;
            }
            if let Some(reason) = choice.text("finish_reason") {
                self.finish = openai_chat::finish(Some(&reason));
            }
            if let Some(delta) = choice.child("delta")? {
                self.delta(&delta)?;
            }
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Object<'_>) -> Result<(), Malformed> {
        self.text += &openai_chat::words(delta);
        for name in ["reasoning_content", "reasoning"] {
            if let Some(text) = delta.text(name) {
                *self.reasoning.entry(name).or_default() += &text;
            }
        }
        for detail in delta.list("reasoning_details")? {
            self.details.push(detail.raw().to_owned());
        }
        for element in delta.list("tool_calls")? {
            let object = element.object()?;
            let number = self.numbering.of(&object);
            let call = self.calls.entry(number).or_default();
            if let Some(id) = object.text("id").filter(|id| !id.is_empty()) {
                call.id = Some(id.into_owned());
            }
            if let Some(function) = object.child("function")? {
                call.name += &function.text("name").unwrap_or_default();
                call.arguments += &function.text("arguments").unwrap_or_default();
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Reply {
        let message = self.message();
        let reasoning = self.reasoning.values().map(|text| quoted(text));
        Reply {
            reasoning: reasoning.chain(self.details).collect(),
            text: self.text,
            calls: self.calls.into_values().map(PartialCall::whole).collect(),
            finish: self.finish,
            usage: self.usage,
            messages: vec![message],
        }
    }

    fn message(&self) -> String {
        let content = match self.text.as_str() {
            "" => "null".to_owned(),
            text => quoted(text),
        };
        let mut message = vec![("role", quoted("assistant")), ("content", content)];
        message.extend(
            self.reasoning
                .iter()
                .map(|(name, text)| (*name, quoted(text))),
        );
        if !self.details.is_empty() {
            message.push(("reasoning_details", format!("[{}]", self.details.join(","))));
        }
        if !self.calls.is_empty() {
            let calls: Vec<String> = self.calls.values().map(PartialCall::json).collect();
            message.push(("tool_calls", format!("[{}]", calls.join(","))));
        }
        object_of(&message)
    }
}

impl PartialCall {
    fn whole(self) -> Call {
        Call {
            id: self.id,
            name: self.name,
            arguments: self.arguments,
        }
    }

    fn json(&self) -> String {
        format!(
            r#"{{"id":{},"type":"function","function":{{"name":{},"arguments":{}}}}}"#,
            quoted(self.id.as_deref().unwrap_or_default()),
            quoted(&self.name),
            quoted(&self.arguments),
        )
    }
}
