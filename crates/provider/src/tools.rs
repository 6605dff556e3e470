//! The tools with which a model asks memory: their names, their definitions in every provider's shape, and what it asks.

mod arguments;
mod schema;

pub use arguments::{
    Ask, BadArguments, Get, Granularity, MAX_IDS, MAX_LIMIT, MAX_QUERY_BYTES, Search,
};
pub use schema::{GET_DESCRIPTION, SEARCH_DESCRIPTION, get_schema, search_schema};

use crate::Format;
use crate::conversation::Conversation;
use crate::edit::Edit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;

/// What every name begins with (AMP item 21).
pub const PREFIX: &str = "memfleet_";
const SEARCH: &str = "memory_search";
const GET: &str = "memory_get";
/// How many suffixes are tried before a collision is refused.
const MAX_SUFFIX: u32 = 99;

/// The names that the tools have in one request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Names {
    /// Of the search.
    pub search: String,
    /// Of reading memories by their ids.
    pub get: String,
}

impl Default for Names {
    fn default() -> Self {
        Self::with_suffix("")
    }
}

impl Names {
    fn with_suffix(suffix: &str) -> Self {
        Self {
            search: format!("{PREFIX}{SEARCH}{suffix}"),
            get: format!("{PREFIX}{GET}{suffix}"),
        }
    }

    /// Names that no tool of the client has: both with the same numeric suffix where one is needed. `None` where all are taken.
    pub fn free(conversation: &Conversation<'_>) -> Option<Self> {
        let taken: HashSet<&str> = conversation.tools.iter().map(|tool| &*tool.name).collect();
        let suffixes = (2..=MAX_SUFFIX).map(|number| Self::with_suffix(&format!("_{number}")));
        std::iter::once(Self::default())
            .chain(suffixes)
            .find(|names| !taken.contains(&*names.search) && !taken.contains(&*names.get))
    }

    /// Whether a tool is one of these.
    pub fn contains(&self, name: &str) -> bool {
        name == self.search || name == self.get
    }
}

/// Both definitions, each as an element of the provider's list of tools; of Gemini, a function declaration.
pub fn definitions(format: Format, names: &Names) -> Vec<String> {
    vec![
        definition(format, &names.search, SEARCH_DESCRIPTION, search_schema()),
        definition(format, &names.get, GET_DESCRIPTION, get_schema()),
    ]
}

/// Both definitions as name, description and JSON Schema, for callers that make a provider's shape of their own.
pub fn neutral_definitions(names: &Names) -> Vec<String> {
    let one = |name: &str, description: &str, schema: Value| {
        json!({"name": name, "description": description, "parameters": schema}).to_string()
    };
    vec![
        one(&names.search, SEARCH_DESCRIPTION, search_schema()),
        one(&names.get, GET_DESCRIPTION, get_schema()),
    ]
}

fn definition(format: Format, name: &str, description: &str, schema: Value) -> String {
    let definition = match format {
        Format::OpenaiChat | Format::OllamaChat => json!({
            "type": "function",
            "function": {"name": name, "description": description, "parameters": schema},
        }),
        Format::OpenaiResponses => json!({
            "type": "function", "name": name, "description": description, "parameters": schema,
            "strict": false,
        }),
        Format::AnthropicMessages => json!({
            "name": name, "description": description, "input_schema": schema,
        }),
        Format::Gemini => json!({
            "name": name, "description": description, "parameters": schema::without_extras(schema),
        }),
    };
    definition.to_string()
}

/// The edits after which the model cannot ask memory again, for a request that has the tools (AMP item 23). The client's other tools stay;
/// where there are none, calling is forbidden and the definitions stay, since some providers want them beside the calls in the history.
pub fn finalize(format: Format, conversation: &Conversation<'_>, names: &Names) -> Vec<Edit> {
    let ours: Vec<Edit> = conversation
        .tools
        .iter()
        .filter(|tool| names.contains(&tool.name))
        .map(|tool| Edit::RemoveTool {
            name: tool.name.clone().into_owned(),
        })
        .collect();
    let only_ours = ours.len() == conversation.tools.len();
    match format {
        _ if ours.is_empty() => Vec::new(),
        Format::OllamaChat => ours,
        _ if only_ours => vec![Edit::ForbidTools],
        _ => ours,
    }
}
