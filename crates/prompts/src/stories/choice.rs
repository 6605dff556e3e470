//! Which stories a question is about (Amory section 3.3): by their headlines and characters, not by likeness.

use memfleet_domain::Timestamp;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Story;
use crate::ask::Prompt;
use crate::dropped::{Dropped, Why};
use crate::handles::{self, place};
use crate::press::Template;
use crate::reading::Misread;

/// A question, and the stories of a space.
#[derive(Serialize)]
pub struct Choosing<'a> {
    /// The question, so that it stands alone.
    pub query: &'a str,
    /// When it was asked.
    pub now: Timestamp,
    /// The stories.
    #[serde(serialize_with = "handles::stories")]
    pub stories: &'a [Story],
    /// k of Amory section 3.3: how many are chosen, at most.
    pub most: usize,
}

impl Template for Choosing<'_> {
    const ID: PromptId = PromptId {
        name: "coherence",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../../data/coherence.v1.j2");
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// Places of stories, the likeliest first.
    pub stories: Vec<usize>,
    /// What was left out.
    pub dropped: Dropped,
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Said {
    stories: Vec<String>,
}

impl Prompt for Choosing<'_> {
    const AGENT: Agent = Agent::Consolidator;
    type Said = Said;
    type Meant = Choice;

    fn check(&self, said: Said) -> Result<Choice, Misread> {
        let mut choice = Choice::default();
        for handle in &said.stories {
            match place(self.stories, 'S', handle) {
                None => choice.dropped.count(Why::Unknown),
                Some(story) if choice.stories.contains(&story) => {}
                Some(_) if choice.stories.len() == self.most => {
                    choice.dropped.count(Why::Malformed);
                }
                Some(story) => choice.stories.push(story),
            }
        }
        if choice.stories.is_empty() && choice.dropped.unknown > 0 {
            return Err(Misread("none of these stories was shown".to_owned()));
        }
        Ok(choice)
    }
}
