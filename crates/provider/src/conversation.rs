//! What a request says, whoever's shape it has: the view that placement, gates and budget work on.
//!
//! Text is borrowed from the request where it has no escapes. A conversation can also be made of messages without bytes.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation<'a> {
    /// The model asked for, where the body names it (Gemini's URL does).
    pub model: Option<Cow<'a, str>>,
    /// The system prompt of formats that have a field for it; `None` where it is absent. Others have messages of role system.
    pub system: Option<Content<'a>>,
    /// Whether a system prompt has a field of its own in this format. False for messages without bytes.
    pub system_field: bool,
    /// In their order. In `OpenAI` responses each item of the input is one.
    pub messages: Vec<Message<'a>>,
    /// The client's tools.
    pub tools: Vec<Tool<'a>>,
    /// What the client says about the use of tools.
    pub tool_choice: ToolChoice,
    /// Whether the reply is to be streamed, where the body says so.
    pub streams: bool,
    /// How many alternative replies are asked for; 0 where the request does not say.
    pub candidates: u64,
    /// The most tokens of a reply, where given.
    pub max_output_tokens: Option<u64>,
    /// The context window, where the request sets it (Ollama's `num_ctx`).
    pub window_tokens: Option<u64>,
    /// What names the conversation.
    pub hints: Hints<'a>,
}

/// What in a body may name the conversation it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints<'a> {
    /// An id that the client gives, in metadata or in a field for it.
    pub session: Option<Cow<'a, str>>,
    /// The reply that this request goes on from, instead of sending the history again (`OpenAI` responses).
    pub previous_reply: Option<Cow<'a, str>>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content<'a>,
}

/// The content of a message or of a system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// The form it is given in, which an edit keeps.
    pub shape: Shape,
    /// Its parts. Of shape `Text` the first is the text.
    pub parts: Vec<Part<'a>>,
}

/// The form of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A string.
    Text,
    /// A list of parts.
    List,
    /// None that text could be added to: an assistant's tool calls, an item of its own kind.
    Absent,
}

/// A part of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// What it is.
    pub kind: PartKind,
    /// Its text: of a tool call the arguments as JSON, of a tool's result what it says.
    pub text: Option<Cow<'a, str>>,
    /// Of a tool call its name and id, of a result the id of its call.
    pub call: Option<CallId<'a>>,
    /// Whether the provider is told to cache up to here. Such a part is never edited (AMP item 4).
    pub cached: bool,
}

/// What names a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallId<'a> {
    /// Its id; some providers give none.
    pub id: Option<Cow<'a, str>>,
    /// The tool; some results do not repeat it.
    pub name: Option<Cow<'a, str>>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The operator.
    System,
    /// The operator, in newer words.
    Developer,
    /// The user, or a client that hands in a tool's results in the user's place.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A role that is not known here. It is passed on and never edited.
    Other,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// Text.
    Text,
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// A file or a search result.
    Document,
    /// A call of a tool.
    ToolCall,
    /// What a tool answered.
    ToolResult,
    /// The model's reasoning, perhaps signed or encrypted.
    Reasoning,
    /// Anything else; passed on.
    Opaque,
}

/// A tool of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Its name; of a tool that the provider runs its type.
    pub name: Cow<'a, str>,
    /// Its definition as JSON.
    pub definition: Cow<'a, str>,
}

/// What a client says about the use of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolChoice {
    /// Nothing, or that the model may choose.
    #[default]
    Auto,
    /// No tool may be used.
    None,
    /// Some tool must be used.
    Required,
    /// A certain tool, or one of certain tools, is to be used.
    Forced,
}

impl Role {
    /// The role of this name in any format.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "system" => Self::System,
            "developer" => Self::Developer,
            "user" => Self::User,
            "assistant" | "model" => Self::Assistant,
            "tool" | "function" => Self::Tool,
            _ => Self::Other,
        }
    }

    /// Whether the operator speaks.
    pub fn is_system(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

impl<'a> Part<'a> {
    /// Plain text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::of(PartKind::Text)
        }
    }

    /// A part without text.
    pub fn of(kind: PartKind) -> Self {
        Self {
            kind,
            text: None,
            call: None,
            cached: false,
        }
    }
}

impl<'a> Content<'a> {
    /// A string.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            shape: Shape::Text,
            parts: vec![Part::text(text)],
        }
    }

    /// A list of parts.
    pub fn list(parts: Vec<Part<'a>>) -> Self {
        Self {
            shape: Shape::List,
            parts,
        }
    }

    /// Its parts that are text, in their order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts
            .iter()
            .filter(|part| part.kind == PartKind::Text)
            .filter_map(|part| part.text.as_deref())
    }
}

impl<'a> Message<'a> {
    /// A message that is a string.
    pub fn text(role: Role, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role,
            content: Content::text(text),
        }
    }

    /// Whether a user wrote it: not everything in it is a tool's result (AMP item 5).
    pub fn is_authored(&self) -> bool {
        self.role == Role::User
            && self
                .content
                .parts
                .iter()
                .any(|part| part.kind != PartKind::ToolResult)
    }
}

impl Conversation<'_> {
    /// Every text that the model reads, tool definitions among them: what a prompt's tokens are counted over.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let contents = self
            .system
            .iter()
            .chain(self.messages.iter().map(|message| &message.content));
        contents
            .flat_map(|content| content.parts.iter())
            .filter_map(|part| part.text.as_deref())
            .chain(self.tools.iter().map(|tool| &*tool.definition))
    }
}
