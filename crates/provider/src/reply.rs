//! A provider's reply: what the model said and called, and the bytes that go back to it.
//!
//! A reply to a request with memory tools may call ours, the client's, or both. [`visible()`] is what the client gets to see of it,
//! [`continuation`] what the model gets to see next.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod ollama;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
mod totals;
mod visible;

pub use totals::with_hidden;
pub use visible::visible;
pub(crate) use visible::visible_event;

use crate::Format;
use crate::json::{Node, Object, quoted};
use crate::malformed::Malformed;
use crate::tools::Names;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text, all parts together.
    pub text: String,
    /// Its tool calls, in their order.
    pub calls: Vec<Call>,
    /// Blocks of reasoning as JSON, byte for byte; they may be signed or encrypted (AMP item 33).
    pub reasoning: Vec<String>,
    /// Why it ended.
    pub finish: Finish,
    /// What it cost.
    pub usage: Usage,
    /// The model's turn as messages of the next request, byte for byte what the provider sent: one, or of `OpenAI` responses one an item.
    pub messages: Vec<String>,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its id; some providers give none.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments: JSON if the model wrote valid JSON.
    pub arguments: String,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The words for the model.
    pub text: String,
    /// Whether they tell of an error.
    pub is_error: bool,
}

/// Why a reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The provider did not say, or the stream broke off.
    #[default]
    Unknown,
    /// The model was done.
    Stop,
    /// It reached the most tokens allowed.
    Length,
    /// It called tools.
    ToolCalls,
    /// A filter stopped it.
    Filtered,
    /// Another reason, in the provider's word.
    Other(String),
}

/// Tokens of a reply, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read, cached ones among them.
    pub input: u64,
    /// Read from the provider's cache.
    pub cached: u64,
    /// Written.
    pub output: u64,
}

impl AddAssign for Usage {
    /// Rounds of one turn add up (AMP item 38).
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
    }
}

/// Whose tools a reply calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Calls {
    /// Nobody's: it is an answer.
    None,
    /// Memory's only: a round that the client does not see.
    Memory,
    /// The client's only.
    Client,
    /// Both (AMP item 27).
    Mixed,
}

impl Reply {
    /// Reads a reply that was not streamed.
    pub fn parse(format: Format, body: &[u8]) -> Result<Self, Malformed> {
        let root = Node::document(body)?.object()?;
        Self::read(format, &root)
    }

    pub(crate) fn read(format: Format, root: &Object<'_>) -> Result<Self, Malformed> {
        match format {
            Format::OpenaiChat => openai_chat::read(root),
            Format::OpenaiResponses => openai_responses::read(root),
            Format::AnthropicMessages => anthropic::read(root),
            Format::Gemini => gemini::read(root),
            Format::OllamaChat => ollama::read(root),
        }
    }

    /// Whose tools it calls.
    pub fn calls_of(&self, names: &Names) -> Calls {
        let memory = self
            .calls
            .iter()
            .filter(|call| names.contains(&call.name))
            .count();
        match (memory, self.calls.len()) {
            (_, 0) => Calls::None,
            (0, _) => Calls::Client,
            (memory, all) if memory == all => Calls::Memory,
            _ => Calls::Mixed,
        }
    }

    /// Whether it says nothing at all: neither text nor a call.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.text.trim().is_empty()
    }
}

/// The messages that follow a reply in the next request, when all of its calls are answered: the model's turn as it sent it, and one answer
/// a call in their order. To be put last by [`crate::Edit::InsertMessages`].
pub fn continuation(format: Format, reply: &Reply, answers: &[Answer]) -> Vec<String> {
    let pairs: Vec<(&Call, &Answer)> = reply.calls.iter().zip(answers).collect();
    let mut messages = reply.messages.clone();
    messages.extend(answer_messages(format, &pairs));
    messages
}

/// Answers as messages.
pub(crate) fn answer_messages(format: Format, pairs: &[(&Call, &Answer)]) -> Vec<String> {
    let parts = pairs
        .iter()
        .map(|(call, answer)| answer_json(format, call, answer));
    let parts: Vec<String> = parts.collect();
    match format {
        _ if parts.is_empty() => parts,
        Format::AnthropicMessages => {
            vec![format!(
                r#"{{"role":"user","content":[{}]}}"#,
                parts.join(",")
            )]
        }
        Format::Gemini => vec![format!(
            r#"{{"role":"user","parts":[{}]}}"#,
            parts.join(",")
        )],
        _ => parts,
    }
}

/// An answer as a message of its own, or as a part of a user's message where a provider has it there.
pub(crate) fn answer_json(format: Format, call: &Call, answer: &Answer) -> String {
    let text = quoted(&answer.text);
    let name = quoted(&call.name);
    let id = call.id.as_deref().map(quoted);
    let id_or_empty = id.clone().unwrap_or_else(|| quoted(""));
    match format {
        Format::OpenaiChat => {
            format!(r#"{{"role":"tool","tool_call_id":{id_or_empty},"content":{text}}}"#)
        }
        Format::OpenaiResponses => {
            format!(r#"{{"type":"function_call_output","call_id":{id_or_empty},"output":{text}}}"#)
        }
        Format::AnthropicMessages => {
            let error = if answer.is_error {
                r#","is_error":true"#
            } else {
                ""
            };
            format!(
                r#"{{"type":"tool_result","tool_use_id":{id_or_empty},"content":{text}{error}}}"#
            )
        }
        Format::Gemini => {
            let id = id.map_or_else(String::new, |id| format!(r#""id":{id},"#));
            let key = if answer.is_error { "error" } else { "result" };
            format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"{key}":{text}}}}}}}"#)
        }
        Format::OllamaChat => {
            let id = id.map_or_else(String::new, |id| format!(r#","tool_call_id":{id}"#));
            format!(r#"{{"role":"tool","tool_name":{name}{id},"content":{text}}}"#)
        }
    }
}

/// A number that is a member, 0 where there is none.
fn count(object: Option<&Object<'_>>, name: &str) -> u64 {
    object
        .and_then(|object| object.get(name)?.unsigned())
        .unwrap_or(0)
}
