//! `P_epi` of AMA section 3.1: what an episode was about. Every sentence names the turns that it sums up; one that names none, or
//! that the rules find unsupported there, is left out.

use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Prompt;
use crate::dropped::{Dropped, Why};
use crate::handles::{self, Turn, named};
use crate::press::Template;
use crate::reading::Misread;
use crate::words;

/// Most sentences of a summary, and the longest ones, in characters.
const MOST: usize = 8;
const SENTENCE: usize = 500;
const TITLE: usize = 120;

/// The turns of an episode.
#[derive(Serialize)]
pub struct Summing<'a> {
    /// All of them, in order.
    #[serde(serialize_with = "handles::turns")]
    pub turns: &'a [Turn],
    /// Whether a sentence is supported by the turns that it names.
    #[serde(skip)]
    pub is_supported: &'a (dyn Fn(&str, &[&Turn]) -> bool + Sync),
}

impl Template for Summing<'_> {
    const ID: PromptId = PromptId {
        name: "episode",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/episode.v1.j2");
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The head.
    pub title: String,
    /// A few sentences.
    pub summary: String,
    /// What was left out.
    pub dropped: Dropped,
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Said {
    title: String,
    sentences: Vec<Sentence>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Sentence {
    text: String,
    turns: Vec<String>,
}

impl Prompt for Summing<'_> {
    const AGENT: Agent = Agent::Constructor;
    type Said = Said;
    type Meant = Summary;

    fn check(&self, said: Said) -> Result<Summary, Misread> {
        let title = words::line(&said.title, TITLE).map_err(|_| {
            Misread(format!(
                "`title` must be one line of 1 to {TITLE} characters"
            ))
        })?;
        let every: Vec<_> = self.turns.iter().collect();
        if !(self.is_supported)(&title, &every) {
            return Err(Misread("`title` has words that no turn has".to_owned()));
        }
        let mut dropped = Dropped::default();
        dropped.malformed += said.sentences.len().saturating_sub(MOST) as u32;
        let mut sentences = Vec::new();
        for sentence in said.sentences.iter().take(MOST) {
            match self.sentence(sentence) {
                Ok(text) => sentences.push(text),
                Err(why) => dropped.count(why),
            }
        }
        if sentences.is_empty() {
            let why = "no sentence names turns that were shown and keeps to what they say";
            return Err(Misread(why.to_owned()));
        }
        Ok(Summary {
            title,
            summary: sentences.join(" "),
            dropped,
        })
    }
}

impl Summing<'_> {
    fn sentence(&self, said: &Sentence) -> Result<String, Why> {
        let text = words::line(&said.text, SENTENCE)?;
        let handles = said.turns.iter();
        let turns: Option<Vec<_>> = handles.map(|name| named(self.turns, 'T', name)).collect();
        let turns = turns
            .filter(|turns| !turns.is_empty())
            .ok_or(Why::Unknown)?;
        (self.is_supported)(&text, &turns)
            .then_some(text)
            .ok_or(Why::Unsupported)
    }
}
