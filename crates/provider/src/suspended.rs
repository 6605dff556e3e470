//! A mixed reply between two requests (AMP items 27, 28, 33).
//!
//! The model called memory and the client's tools at once. The client sees its own calls only, and comes back with their results. Until then
//! the model's turn as it was and the answers of memory wait here; [`Suspended::resume`] puts them where they belong, so that the provider
//! sees every call answered exactly once and signed reasoning as it sent it. Serialisable, for it may come back to another process.

use crate::Format;
use crate::conversation::{Conversation, Part, PartKind, Role};
use crate::edit::Edit;
use crate::reply::{Answer, Call, Reply, answer_json};
use crate::request::Request;
use crate::tools::Names;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What waits for the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspended {
    format: Format,
    /// Rounds before this reply that the client did not see, as messages.
    before: Vec<String>,
    /// The model's turn, byte for byte.
    messages: Vec<String>,
    /// Its calls in their order, memory's with their answers.
    calls: Vec<Waiting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    call: Call,
    /// `None` of a call that the client answers.
    answer: Option<Answer>,
}

/// A request that does not go on from this reply as it should. It can be sent as it is: nothing of memory is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unresumable {
    /// The request has another format.
    #[error("the request has another format")]
    Format,
    /// The client's calls of this reply are not in it.
    #[error("the calls of the reply are not in the request")]
    NotFound,
    /// Not each of the client's calls is answered exactly once.
    #[error("not every call of the reply is answered exactly once")]
    Unanswered,
}

impl Suspended {
    /// Keeps a mixed reply. `before` are the messages of hidden rounds of this turn; `answers` are those to memory's calls, in the order of
    /// these calls. A call of memory without an answer gets an error for one.
    pub fn new(
        format: Format,
        names: &Names,
        reply: Reply,
        before: Vec<String>,
        answers: Vec<Answer>,
    ) -> Self {
        let mut answers = answers.into_iter();
        let missing = || Answer {
            text: "memory did not answer".to_owned(),
            is_error: true,
        };
        let calls = reply.calls.into_iter().map(|call| Waiting {
            answer: names
                .contains(&call.name)
                .then(|| answers.next().unwrap_or_else(missing)),
            call,
        });
        Self {
            format,
            before,
            calls: calls.collect(),
            messages: reply.messages,
        }
    }

    /// The edits that make of the client's next request what the model has to see.
    pub fn resume(&self, request: &Request<'_>) -> Result<Vec<Edit>, Unresumable> {
        if request.format() != self.format {
            return Err(Unresumable::Format);
        }
        let conversation = request.conversation();
        if self.format == Format::OpenaiResponses {
            return self.resume_items(conversation);
        }
        let at = self.find(conversation).ok_or(Unresumable::NotFound)?;
        self.check_answered(conversation, at)?;
        let mut messages = [&self.before[..], &self.messages].concat();
        let answers = self.memory_answers();
        match self.format {
            Format::AnthropicMessages | Format::Gemini => Ok(vec![
                Edit::ReplaceMessage { at, messages },
                Edit::PrependParts {
                    message: at + 1,
                    parts: answers,
                },
            ]),
            _ => {
                messages.extend(answers);
                Ok(vec![Edit::ReplaceMessage { at, messages }])
            }
        }
    }

    fn client_calls(&self) -> impl Iterator<Item = &Call> {
        let waiting = self.calls.iter().filter(|waiting| waiting.answer.is_none());
        waiting.map(|waiting| &waiting.call)
    }

    fn memory_answers(&self) -> Vec<String> {
        let waiting = self.calls.iter();
        waiting
            .filter_map(|Waiting { call, answer }| {
                Some(answer_json(self.format, call, answer.as_ref()?))
            })
            .collect()
    }

    /// The last message of the model whose calls are the client's of this reply.
    fn find(&self, conversation: &Conversation<'_>) -> Option<usize> {
        conversation.messages.iter().rposition(|message| {
            let parts = message.content.parts.iter();
            let calls = parts.filter(|part| part.kind == PartKind::ToolCall);
            message.role == Role::Assistant
                && calls.clone().count() == self.client_calls().count()
                && calls
                    .zip(self.client_calls())
                    .all(|(part, call)| is_call(part, call))
        })
    }

    /// Results follow the calls directly: in the next message, or in one message each.
    fn check_answered(
        &self,
        conversation: &Conversation<'_>,
        at: usize,
    ) -> Result<(), Unresumable> {
        let following = conversation.messages[at + 1..].iter();
        let results: Vec<&Part<'_>> = following
            .take_while(|message| message.content.parts.iter().any(is_result))
            .flat_map(|message| message.content.parts.iter().filter(|part| is_result(part)))
            .collect();
        let answered = self.client_calls().all(|call| {
            let of_call = |part: &&&Part<'_>| answers(part, call);
            match &call.id {
                Some(_) => results.iter().filter(of_call).count() == 1,
                None => results.iter().any(|part| answers(part, call)),
            }
        });
        if answered && results.len() == self.client_calls().count() {
            return Ok(());
        }
        Err(Unresumable::Unanswered)
    }

    /// In responses every call is an item of its own. Memory's calls go before the client's call that followed them, their answers after
    /// the client's last call. Where the history is the provider's, only the answers are missing.
    fn resume_items(&self, conversation: &Conversation<'_>) -> Result<Vec<Edit>, Unresumable> {
        let items = &conversation.messages;
        let is_answered = |call: &Call| {
            let results = items.iter().flat_map(|item| &item.content.parts);
            let of_call = results.filter(|part| is_result(part) && answers(part, call));
            of_call.count() == 1
        };
        if !self.client_calls().all(is_answered) {
            return Err(Unresumable::Unanswered);
        }
        let place = |call: &Call| {
            items.iter().rposition(|item| {
                item.content
                    .parts
                    .iter()
                    .any(|part| part.kind == PartKind::ToolCall && is_call(part, call))
            })
        };
        let places: Vec<Option<usize>> = self.client_calls().map(place).collect();
        if places.iter().all(Option::is_none) && conversation.hints.previous_reply.is_some() {
            return Ok(vec![Edit::InsertMessages {
                at: 0,
                messages: self.memory_answers(),
            }]);
        }
        let places: Option<Vec<usize>> = places.into_iter().collect();
        let places = places.ok_or(Unresumable::NotFound)?;
        Ok(self.item_edits(conversation, &places))
    }

    fn item_edits(&self, conversation: &Conversation<'_>, places: &[usize]) -> Vec<Edit> {
        let after_last = places.last().map_or(0, |last| last + 1);
        let mut edits = Vec::new();
        // What the client sends again of this reply begins with the reasoning that is right before its first call, if any.
        let first = places.first().copied().unwrap_or(0);
        let reasoning = conversation.messages[..first].iter().rev();
        let leading = reasoning
            .take_while(|item| {
                let mut parts = item.content.parts.iter();
                parts.any(|part| part.kind == PartKind::Reasoning)
            })
            .count();
        edits.push(Edit::InsertMessages {
            at: first - leading,
            messages: self.before.clone(),
        });
        let mut place = places.iter().copied();
        let mut next = place.next();
        for waiting in &self.calls {
            if waiting.answer.is_none() {
                next = place.next();
            } else if let Some(item) = self.item_of(&waiting.call) {
                edits.push(Edit::InsertMessages {
                    at: next.unwrap_or(after_last),
                    messages: vec![item],
                });
            }
        }
        edits.push(Edit::InsertMessages {
            at: after_last,
            messages: self.memory_answers(),
        });
        edits
    }

    /// The item that a call was in the reply.
    fn item_of(&self, call: &Call) -> Option<String> {
        let id = call.id.as_deref()?;
        let mut messages = self.messages.iter();
        messages
            .find(|item| {
                crate::json::Node::of_text(item)
                    .and_then(crate::json::Node::object)
                    .is_ok_and(|item| item.text("call_id").as_deref() == Some(id))
            })
            .cloned()
    }
}

fn is_result(part: &Part<'_>) -> bool {
    part.kind == PartKind::ToolResult
}

/// By id where there is one, else by name.
fn is_call(part: &Part<'_>, call: &Call) -> bool {
    let Some(named) = &part.call else {
        return false;
    };
    match (&named.id, &call.id) {
        (Some(one), Some(other)) => one == other,
        _ => named.name.as_deref() == Some(&call.name),
    }
}

fn answers(part: &Part<'_>, call: &Call) -> bool {
    let Some(named) = &part.call else {
        return false;
    };
    match (&named.id, &call.id, &named.name) {
        (Some(one), Some(other), _) => one == other,
        (_, _, Some(name)) => *name == call.name,
        // A result that names nothing answers by its place.
        (_, _, None) => true,
    }
}
