//! The prompts of narratives (Amory appendix A.1): how they begin ([`Beginning`]), what new turns are bound to ([`Binding`]), what their
//! parts are ([`plot`]), and which of them a question is about ([`choice`]).

mod binding;
pub mod choice;
pub mod plot;

use serde::Serialize;

pub use binding::{Beginning, Binding, Bound, Decision, Whose};

use crate::dropped::Why;
use crate::words;

/// Longest headline, in characters.
const HEADLINE: usize = 160;

/// A story as prompts show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Story {
    /// What it is about.
    pub headline: String,
    /// Whose it is.
    pub owner: String,
    /// Who takes part.
    pub characters: Vec<String>,
    /// The headlines of its parts.
    pub subplots: Vec<String>,
}

impl From<&memfleet_domain::narrative::Narrative> for Story {
    fn from(narrative: &memfleet_domain::narrative::Narrative) -> Self {
        let subplots = narrative.subplots.iter();
        Self {
            headline: narrative.headline.clone(),
            owner: narrative.owner.to_string(),
            characters: narrative
                .characters
                .iter()
                .map(ToString::to_string)
                .collect(),
            subplots: subplots.map(|subplot| subplot.headline.clone()).collect(),
        }
    }
}

fn headline(text: &str) -> Result<String, Why> {
    words::line(text, HEADLINE)
}
