//! A prompt and its answer as what somebody said: text that can be seen, by whom it is, in order.

use memfleet_domain::Fault;
use memfleet_domain::ids::{ExchangeName, SessionId};
use memfleet_domain::turn::Role;
use memfleet_ports::assembly::Prompt;
use memfleet_provider::conversation::{self, Content, Conversation, Message};
use memfleet_provider::reply::Finish;
use memfleet_provider::session::{asked, is_said};
use memfleet_provider::stream::{Assembler, Framing, Parser};
use memfleet_provider::{Format, Reply};

use crate::assemble::prompt;
use crate::conversations::Resent;

/// Wrappers that clients put around what they tell a model on their own: a part of a message that is nothing else was said by nobody.
const WRAPPERS: [&str; 2] = ["system-reminder", "environment_context"];

/// What was said.
#[derive(Debug, Default)]
pub struct Heard {
    /// The conversation that the request tells of.
    pub session: Option<SessionId>,
    /// What it resends of its conversation.
    pub resent: Option<Resent>,
    /// The exchange that what the user says last makes.
    pub exchange: Option<ExchangeName>,
    /// The model that the request names.
    pub model: String,
    /// The messages in order; without text where nothing in them can be seen.
    pub messages: Vec<Said>,
    /// What the model answered last, where it was given apart.
    pub answer: Option<Answered>,
}

/// A message.
#[derive(Debug)]
pub struct Said {
    pub role: Role,
    /// How many messages of the conversation come before it.
    pub place: usize,
    /// Its parts that are text.
    pub texts: Vec<String>,
}

/// An answer.
#[derive(Debug, Default)]
pub struct Answered {
    pub text: String,
    /// Whether it broke off.
    pub is_partial: bool,
    /// Whether the provider told of an error in it.
    pub has_failed: bool,
}

impl Heard {
    /// What a prompt and the answer to it say.
    pub fn of(prompt: &Prompt, answer: &[u8], with_system: bool) -> Result<Self, Fault> {
        let read = |conversation: &Conversation<'_>| Self::said(conversation, with_system);
        let mut heard = prompt::with_conversation(prompt, read)?.unwrap_or_default();
        if let Prompt::Provider { format, .. } = prompt
            && !answer.is_empty()
        {
            heard.answer = Some(answered(*format, answer)?);
        }
        Ok(heard)
    }

    fn said(conversation: &Conversation<'_>, with_system: bool) -> Self {
        let system = conversation.system.iter().map(|content| Said {
            role: Role::System,
            place: 0,
            texts: if with_system {
                texts(content)
            } else {
                Vec::new()
            },
        });
        let mut place = 0;
        let messages = conversation.messages.iter().map(|message| {
            let said = said(message, place, with_system);
            place += usize::from(is_said(message));
            said
        });
        let asked = asked(conversation);
        Self {
            session: prompt::told_session(conversation),
            exchange: prompt::exchange(&asked),
            resent: prompt::resent(conversation, asked),
            model: conversation.model.as_deref().unwrap_or_default().to_owned(),
            messages: system.chain(messages).collect(),
            answer: None,
        }
    }
}

fn said(message: &Message<'_>, place: usize, with_system: bool) -> Said {
    let (role, is_heard) = match message.role {
        conversation::Role::User => (Role::User, true),
        conversation::Role::Assistant => (Role::Assistant, true),
        conversation::Role::System | conversation::Role::Developer => (Role::System, with_system),
        conversation::Role::Tool | conversation::Role::Other => (Role::Tool, false),
    };
    let texts = if is_heard {
        texts(&message.content)
    } else {
        Vec::new()
    };
    Said { role, place, texts }
}

fn texts(content: &Content<'_>) -> Vec<String> {
    let texts = content.texts().filter(|text| !is_wrapper(text));
    texts.map(str::to_owned).collect()
}

/// Whether a text is one wrapper from its start to its end. Words that only look like one somewhere are somebody's (AMP item 125).
fn is_wrapper(text: &str) -> bool {
    let text = text.trim();
    WRAPPERS.iter().any(|name| {
        let inside = text
            .strip_prefix(&format!("<{name}>"))
            .and_then(|rest| rest.strip_suffix(&format!("</{name}>")));
        inside.is_some_and(|inside| !inside.contains(&format!("</{name}>")))
    })
}

/// An answer from its body, or from its stream as it was recorded.
fn answered(format: Format, bytes: &[u8]) -> Result<Answered, Fault> {
    if let Ok(reply) = Reply::parse(format, bytes)
        && !(reply.is_empty() && reply.finish == Finish::Unknown)
    {
        return Ok(Answered {
            text: reply.text,
            ..Answered::default()
        });
    }
    let wrong = |problem: String| Fault::invalid("provider_response", problem);
    if is_error(bytes) {
        return Ok(Answered {
            has_failed: true,
            is_partial: true,
            ..Answered::default()
        });
    }
    let streamed = streamed(format, bytes).map_err(|error| wrong(error.to_string()))?;
    streamed.ok_or_else(|| {
        wrong("is no answer of the provider that `provider_request.format` names: give the body as it came, or the whole stream; without an answer leave it out".to_owned())
    })
}

/// Whether a provider says nothing but that it failed.
fn is_error(bytes: &[u8]) -> bool {
    let body: Result<serde_json::Value, _> = serde_json::from_slice(bytes);
    body.is_ok_and(|body| body.get("error").is_some_and(|error| !error.is_null()))
}

/// The answer of a stream; none where it is no stream of this provider.
fn streamed(
    format: Format,
    bytes: &[u8],
) -> Result<Option<Answered>, memfleet_provider::Malformed> {
    let mut parser = Parser::new(Framing::of(format));
    let mut frames = parser.push(bytes)?;
    frames.extend(parser.finish());
    let mut assembler = Assembler::new(format);
    for frame in &frames {
        assembler.push(frame)?;
    }
    if !assembler.known() {
        return Ok(None);
    }
    let has_failed = assembler.failed();
    let reply = assembler.finish()?;
    Ok(Some(Answered {
        is_partial: has_failed || reply.finish == Finish::Unknown,
        has_failed,
        text: reply.text,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amp_125_only_a_whole_wrapper_is_one() {
        assert!(is_wrapper(
            "<system-reminder>\nbe brief\n</system-reminder>\n"
        ));
        for text in [
            "### Task: answer in JSON format",
            "see /config and app/models/user.rb",
            "what does <system-reminder>x</system-reminder> mean?",
            "<system-reminder>a</system-reminder> mine <system-reminder>b</system-reminder>",
            "<system-reminder>open",
            "",
        ] {
            assert!(!is_wrapper(text), "{text}");
        }
    }
}
