//! Semanticization (Amory section 3.2): what is peripheral in the turns of a story, standalone facts that do not advance it and that its
//! headlines do not lead to. They are facts like any other, in the same form and under the same checks ([`Facts`]).

use memfleet_ports::language_model::{Agent, PromptId};
use serde::Serialize;

use crate::ask::Prompt;
use crate::facts::{Extraction, Facts, Said};
use crate::press::Template;
use crate::reading::Misread;
use crate::stories::Story;

/// A story and the turns that it is told in.
#[derive(Serialize)]
pub struct Peripheral<'a> {
    /// The story.
    pub story: &'a Story,
    /// The turns, with what is known of them.
    #[serde(flatten)]
    pub facts: Facts<'a>,
    /// Whether the headlines say a sentence already.
    #[serde(skip)]
    pub is_plot: &'a (dyn Fn(&str) -> bool + Sync),
}

impl Template for Peripheral<'_> {
    const ID: PromptId = PromptId {
        name: "semantics",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/semantics.v1.j2");
}

impl Prompt for Peripheral<'_> {
    const AGENT: Agent = Agent::Constructor;
    type Said = Said;
    type Meant = Extraction;

    /// A reply of which nothing is left says nothing of use, other than one that found nothing.
    fn check(&self, said: Said) -> Result<Extraction, Misread> {
        let mut meant = self.facts.check(said)?;
        let found = meant.drafts.len();
        meant
            .drafts
            .retain(|(_, draft)| !(self.is_plot)(&draft.text));
        meant.dropped.malformed += (found - meant.drafts.len()) as u32;
        if meant.drafts.is_empty() && !meant.dropped.is_none() {
            let why = "no fact of it is peripheral, in the words of its turn and of the form that was asked for";
            return Err(Misread(why.to_owned()));
        }
        Ok(meant)
    }
}
