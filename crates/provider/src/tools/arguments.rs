//! What a model asks of memory. Wrong arguments are told to the model as the result of its call (AMP item 31).

use super::Names;
use crate::json::Node;
use crate::malformed::Reason;
use crate::session::is_id;
use chrono::{DateTime, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// The most results of a search.
pub const MAX_LIMIT: u32 = 20;
/// The longest query, in bytes.
pub const MAX_QUERY_BYTES: usize = 2048;
/// The most memories read by one call.
pub const MAX_IDS: usize = 20;

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A search.
    Search(Search),
    /// Memories by id.
    Get(Get),
}

/// A search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// What to look for: not blank, at most [`MAX_QUERY_BYTES`].
    pub query: String,
    /// The most results, 1 to [`MAX_LIMIT`].
    pub limit: Option<u32>,
    /// Only what was said at or after this instant.
    #[serde(default, deserialize_with = "time_from")]
    pub time_from: Option<DateTime<Utc>>,
    /// Only what was said before this instant.
    #[serde(default, deserialize_with = "time_to")]
    pub time_to: Option<DateTime<Utc>>,
    /// Only from this conversation. It narrows what the credential allows and never widens it (AMP item 120).
    pub session: Option<String>,
    /// How much of a conversation a result is.
    pub granularity: Option<Granularity>,
}

/// How much of a conversation a result is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// What was found alone.
    #[default]
    Raw,
    /// With what was said right before and after it.
    Episode,
}

/// Reading by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// 1 to [`MAX_IDS`] ids.
    pub ids: Vec<String>,
}

/// What is wrong with arguments, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadArguments {
    /// No memory tool has this name.
    #[error("there is no memory tool of this name")]
    UnknownTool,
    /// Not JSON, or not an object.
    #[error("the arguments must be one JSON object; send the call again")]
    NotAnObject,
    /// A field is missing, unknown, twice or of a wrong type.
    #[error("the arguments are wrong: {0}")]
    Field(String),
    /// The query says nothing.
    #[error("`query` must say what to look for")]
    BlankQuery,
    /// The query is too long.
    #[error("`query` has {0} bytes and may have 2048; ask for one thing in a few words")]
    LongQuery(usize),
    /// Outside of its range.
    #[error("`limit` must be from 1 to 20")]
    Limit,
    /// No instant is in the range.
    #[error("`time_from` must be before `time_to`")]
    EmptyTimeRange,
    /// No id, too many, or one that cannot be an id.
    #[error("`ids` must be 1 to 20 ids that a search returned")]
    Ids,
    /// A session that cannot be one.
    #[error("`session` must be the id of a conversation that a search returned")]
    Session,
}

impl Ask {
    /// Reads the arguments of a call; blank ones count as none.
    pub fn parse(names: &Names, name: &str, arguments: &str) -> Result<Self, BadArguments> {
        if !names.contains(name) {
            return Err(BadArguments::UnknownTool);
        }
        let arguments = match arguments.trim() {
            "" => "{}",
            arguments => arguments,
        };
        let node = Node::of_text(arguments).map_err(|_| BadArguments::NotAnObject)?;
        match node.object().map_err(|error| error.reason) {
            Ok(_) => {}
            Err(Reason::DuplicateKey(key)) => {
                return Err(BadArguments::Field(format!("`{key}` stands there twice")));
            }
            Err(_) => return Err(BadArguments::NotAnObject),
        }
        if name == names.search {
            let search: Search = fields(arguments)?;
            search.checked().map(Self::Search)
        } else {
            let get: Get = fields(arguments)?;
            get.checked().map(Self::Get)
        }
    }
}

fn time_from<'a, D: Deserializer<'a>>(value: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    instant(value, "time_from")
}

fn time_to<'a, D: Deserializer<'a>>(value: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    instant(value, "time_to")
}

fn instant<'a, D: Deserializer<'a>>(
    value: D,
    field: &str,
) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = Option::<String>::deserialize(value)?;
    let read = |text: String| {
        let read = DateTime::parse_from_rfc3339(&text);
        read.map(|it| it.to_utc()).map_err(|_| {
            let wanted = "must be an instant as in RFC 3339, such as 2026-05-01T00:00:00Z";
            D::Error::custom(format!("`{field}` {wanted}"))
        })
    };
    text.map(read).transpose()
}

fn fields<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, BadArguments> {
    serde_json::from_str(arguments).map_err(|error| {
        let text = error.to_string();
        // The place in the text tells a model nothing.
        let text = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(text, _)| text);
        BadArguments::Field(text.chars().take(200).collect())
    })
}

impl Search {
    fn checked(self) -> Result<Self, BadArguments> {
        if self.query.trim().is_empty() {
            return Err(BadArguments::BlankQuery);
        }
        if self.query.len() > MAX_QUERY_BYTES {
            return Err(BadArguments::LongQuery(self.query.len()));
        }
        if self
            .limit
            .is_some_and(|limit| limit == 0 || limit > MAX_LIMIT)
        {
            return Err(BadArguments::Limit);
        }
        if let (Some(from), Some(to)) = (self.time_from, self.time_to)
            && from >= to
        {
            return Err(BadArguments::EmptyTimeRange);
        }
        match &self.session {
            Some(session) if !is_id(session) => Err(BadArguments::Session),
            _ => Ok(self),
        }
    }
}

impl Get {
    fn checked(self) -> Result<Self, BadArguments> {
        let number = 1..=MAX_IDS;
        if !number.contains(&self.ids.len()) || !self.ids.iter().all(|id| is_id(id)) {
            return Err(BadArguments::Ids);
        }
        Ok(self)
    }
}
