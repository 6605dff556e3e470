//! The chat protocol, as far as it is used: own small structures, since compatible servers leave out what others insist on.

use memfleet_ports::language_model::{Call, Voice};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::dialect::{Dialect, Format};
use crate::failure::Failure;
use crate::options::AgentOptions;

/// A request.
#[derive(Debug, Serialize)]
pub struct Request<'a> {
    model: &'a str,
    messages: Vec<Value>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

impl<'a> Request<'a> {
    /// A call in words that the endpoint understands.
    pub fn new(call: &Call, options: &'a AgentOptions, dialect: Dialect, stream: bool) -> Self {
        let limit = Some(options.max_tokens);
        let counts = stream && dialect.counts_streams;
        Self {
            model: &options.model,
            messages: messages(call, dialect),
            stream,
            temperature: options.temperature.filter(|_| dialect.has_temperature),
            max_tokens: limit.filter(|_| !dialect.has_newer_limit),
            max_completion_tokens: limit.filter(|_| dialect.has_newer_limit),
            response_format: format(call, dialect),
            stream_options: counts.then(|| json!({"include_usage": true})),
        }
    }
}

fn messages(call: &Call, dialect: Dialect) -> Vec<Value> {
    let role = |voice| match voice {
        Voice::System => "system",
        Voice::User => "user",
        Voice::Assistant => "assistant",
    };
    let said = call.messages.iter();
    let mut messages: Vec<_> = said
        .map(|message| json!({"role": role(message.voice), "content": message.text}))
        .collect();
    let unsaid = call.schema.as_ref();
    let unsaid = unsaid.filter(|_| dialect.format != Format::Schema);
    // Into the instructions: some models insist on turns that alternate.
    if let Some((schema, first)) = unsaid.zip(messages.first_mut()) {
        let text = first["content"].as_str().unwrap_or_default();
        let form = "The reply is one JSON object of this schema, and nothing else:";
        first["content"] = format!("{text}\n\n{form} {schema}").into();
    }
    messages
}

fn format(call: &Call, dialect: Dialect) -> Option<Value> {
    let schema = call.schema.as_ref()?;
    match dialect.format {
        Format::Schema => {
            let schema: Value = serde_json::from_str(schema).expect("schemas are JSON");
            let form = json!({"name": call.prompt.name, "strict": true, "schema": schema});
            Some(json!({"type": "json_schema", "json_schema": form}))
        }
        Format::Object => Some(json!({"type": "json_object"})),
        Format::Text => None,
    }
}

/// A reply, or a piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Response {
    choices: Vec<Choice>,
    usage: Option<Counted>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    #[serde(alias = "delta")]
    message: Option<Words>,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Words {
    content: Option<String>,
    refusal: Option<String>,
}

/// Tokens, as the endpoint counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// Read.
    pub prompt_tokens: u64,
    /// Written.
    pub completion_tokens: u64,
}

impl Response {
    /// Of a body that is JSON.
    pub fn of(body: Value) -> Result<Self, Failure> {
        let wrong = |_| Failure::Garbage("the body is not a reply");
        serde_json::from_value(body).map_err(wrong)
    }

    /// What it cost, where the endpoint says so.
    pub fn counted(&self) -> Option<Counted> {
        self.usage
    }

    /// The words of a whole reply.
    pub fn into_text(self) -> Result<String, Failure> {
        let (text, end) = self.into_piece()?;
        match end {
            _ if text.trim().is_empty() => Err(Failure::Garbage("the reply is empty")),
            Some(End::CutOff) => Err(Failure::Garbage("the reply is longer than `max_tokens`")),
            Some(End::Done) | None => Ok(text),
        }
    }

    /// The words of a piece, and whether it is the last one.
    pub fn into_piece(self) -> Result<(String, Option<End>), Failure> {
        let Some(choice) = self.choices.into_iter().next() else {
            return Ok((String::new(), None));
        };
        let words = choice.message.unwrap_or_default();
        if words.refusal.is_some_and(|refusal| !refusal.is_empty()) {
            return Err(Failure::Refused("the model declined to answer"));
        }
        let end = match choice.finish_reason.as_deref() {
            None | Some("") => None,
            Some("content_filter") => {
                return Err(Failure::Refused("the endpoint filtered the reply"));
            }
            Some("length") => Some(End::CutOff),
            Some(_) => Some(End::Done),
        };
        Ok((words.content.unwrap_or_default(), end))
    }
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Done,
    /// At the limit of tokens.
    CutOff,
}
