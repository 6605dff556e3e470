//! Imagined answers to a query (hypothetical document embeddings; Gao et al., 2023): passages that
//! look like the turns which would answer it. They are searched with and never shown.

use memfleet_domain::Timestamp;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Prompt;
use crate::press::Template;
use crate::reading::Misread;
use crate::words;

/// Longest passage, in characters.
const LONGEST: usize = 500;
/// Most passages of one reply.
const MOST: usize = 3;

/// A query whose answers are imagined.
#[derive(Serialize)]
pub struct ImaginingQuery<'a> {
    /// Its words.
    pub query: &'a str,
    /// When it is asked.
    pub now: Timestamp,
}

impl Template for ImaginingQuery<'_> {
    const ID: PromptId = PromptId {
        name: "imagine",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/imagine.v1.j2");
}

/// Reply of the model.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ImaginedPassages {
    passages: Vec<String>,
}

impl Prompt for ImaginingQuery<'_> {
    const AGENT: Agent = Agent::Retriever;
    type Said = ImaginedPassages;
    type Meant = Vec<String>;

    fn check(&self, said: ImaginedPassages) -> Result<Vec<String>, Misread> {
        let lines = said.passages.iter();
        let lines = lines.filter_map(|passage| words::line(passage, LONGEST).ok());
        let passages: Vec<String> = lines.take(MOST).collect();
        if passages.is_empty() {
            let message =
                format!("`passages` must have lines of 1 to {LONGEST} characters, one at least");
            return Err(Misread(message));
        }
        Ok(passages)
    }
}
