//! What the last fragments of a story come to: its subplots, and a headline that covers them. A reply that drops a fragment or has one
//! twice is refused.

use std::ops::Range;

use memfleet_domain::Timestamp;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HEADLINE, Story, headline};
use crate::ask::Prompt;
use crate::handles::{self, place};
use crate::press::Template;
use crate::reading::Misread;

/// A fragment of a story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fragment {
    /// When it was said.
    pub said_at: Timestamp,
    /// What was said, and by whom.
    pub text: String,
}

/// The headlines that a reply may have: of these fragments, by place, or of the whole story.
pub type IsSupported<'a> = &'a (dyn Fn(&str, Range<usize>) -> bool + Sync);

/// A story and its last fragments.
#[derive(Serialize)]
pub struct Plotting<'a> {
    /// The story, with the subplots that stay.
    pub story: &'a Story,
    /// The fragments, in the order in which they were said.
    #[serde(serialize_with = "handles::facts")]
    pub fragments: &'a [Fragment],
    /// Whether a headline is supported by these fragments. That of the story may have words of its headlines too.
    #[serde(skip)]
    pub is_supported: IsSupported<'a>,
}

impl Template for Plotting<'_> {
    const ID: PromptId = PromptId {
        name: "plot",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../../data/plot.v1.j2");
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// Runs of fragments, by place, which have all of them, each with its headline.
    pub subplots: Vec<(Range<usize>, String)>,
    /// A headline that covers all, where the story's own does not.
    pub headline: Option<String>,
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Said {
    subplots: Vec<SaidSubplot>,
    headline: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SaidSubplot {
    headline: String,
    from: String,
    to: String,
}

impl Prompt for Plotting<'_> {
    const AGENT: Agent = Agent::Consolidator;
    type Said = Said;
    type Meant = Plot;

    fn check(&self, said: Said) -> Result<Plot, Misread> {
        let mut subplots = Vec::with_capacity(said.subplots.len());
        let mut next = 0;
        for subplot in &said.subplots {
            let fragments = self.run(subplot, next)?;
            next = fragments.end;
            let headline = self.headline(&subplot.headline, fragments.clone())?;
            subplots.push((fragments, headline));
        }
        if next < self.fragments.len() {
            let dropped = next + 1;
            return Err(Misread(format!("F{dropped} is in no subplot")));
        }
        let broader = said.headline.as_deref().map(str::trim);
        let broader = broader.filter(|it| !it.is_empty() && *it != self.story.headline);
        let broader = broader.map(|it| self.headline(it, 0..self.fragments.len()));
        Ok(Plot {
            subplots,
            headline: broader.transpose()?,
        })
    }
}

impl Plotting<'_> {
    /// The fragments of a subplot, the first of which is `next`.
    fn run(&self, said: &SaidSubplot, next: usize) -> Result<Range<usize>, Misread> {
        let place = |handle| place(self.fragments, 'F', handle);
        let run = place(&said.from).zip(place(&said.to));
        match run {
            Some((from, to)) if from == next && to >= from => Ok(from..to + 1),
            _ => Err(Misread(format!(
                "subplots have all fragments in order, each once; `{}` to `{}` does not go on where the one before ends",
                said.from, said.to
            ))),
        }
    }

    fn headline(&self, said: &str, fragments: Range<usize>) -> Result<String, Misread> {
        let headline = headline(said).map_err(|_| {
            Misread(format!(
                "`headline` must be one line of 1 to {HEADLINE} characters"
            ))
        })?;
        if !(self.is_supported)(&headline, fragments) {
            let why = format!("`{headline}` has words that the fragments do not have");
            return Err(Misread(why));
        }
        Ok(headline)
    }
}
