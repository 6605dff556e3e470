//! Which story each turn is of. A reply has to account for every turn that it was asked about: one that loses a turn, names a story that
//! was not shown, or has a headline that its turns do not bear out is refused as a whole.

use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HEADLINE, Story, headline};
use crate::ask::Prompt;
use crate::handles::{self, Turn, place};
use crate::press::Template;
use crate::reading::Misread;

/// The first turns of a space, of which no story is known.
#[derive(Serialize)]
pub struct Beginning<'a> {
    /// All of them, in order.
    #[serde(serialize_with = "handles::turns")]
    pub turns: &'a [Turn],
    /// Whether a headline is supported by the turns of its story.
    #[serde(skip)]
    pub is_supported: &'a (dyn Fn(&str, &[&Turn]) -> bool + Sync),
}

/// New turns, and the stories that they may go on with.
#[derive(Serialize)]
pub struct Binding<'a> {
    /// The stories, the likeliest first.
    #[serde(serialize_with = "handles::stories")]
    pub stories: &'a [Story],
    /// Turns that were bound before, and the new ones after them, in order.
    #[serde(serialize_with = "handles::turns")]
    pub turns: &'a [Turn],
    /// How many of them were bound before.
    pub earlier: usize,
    /// Whether a headline is supported by the turns of its story.
    #[serde(skip)]
    pub is_supported: &'a (dyn Fn(&str, &[&Turn]) -> bool + Sync),
}

impl Template for Beginning<'_> {
    const ID: PromptId = PromptId {
        name: "stories",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../../data/stories.v1.j2");
}

impl Template for Binding<'_> {
    const ID: PromptId = PromptId {
        name: "binding",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../../data/binding.v1.j2");
}

/// What the turns are bound to. A turn that no decision has is filler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// One for each story.
    pub decisions: Vec<Decision>,
}

/// The turns of one story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Which story.
    pub whose: Whose,
    /// The places of its turns among those that were shown, in order.
    pub turns: Vec<usize>,
}

/// A story that is known, or a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The place of one that was shown.
    Known(usize),
    /// One that begins.
    New {
        /// What it is about.
        headline: String,
        /// Whose it is: a speaker of its turns.
        owner: String,
    },
}

/// The reply to [`Beginning`].
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SaidStories {
    stories: Vec<SaidStory>,
    filler: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SaidStory {
    headline: String,
    owner: String,
    turns: Vec<String>,
}

/// The reply to [`Binding`].
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SaidDecisions {
    decisions: Vec<SaidDecision>,
    filler: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SaidDecision {
    #[serde(default)]
    story: Option<String>,
    #[serde(default)]
    headline: Option<String>,
    #[serde(default)]
    owner: Option<String>,
    turns: Vec<String>,
}

impl Prompt for Beginning<'_> {
    const AGENT: Agent = Agent::Consolidator;
    type Said = SaidStories;
    type Meant = Bound;

    fn check(&self, said: SaidStories) -> Result<Bound, Misread> {
        let shown = Shown {
            stories: &[],
            turns: self.turns,
            earlier: 0,
            is_supported: self.is_supported,
        };
        let decisions = said.stories.into_iter().map(|story| SaidDecision {
            story: None,
            headline: Some(story.headline),
            owner: Some(story.owner),
            turns: story.turns,
        });
        shown.bound(&decisions.collect::<Vec<_>>(), &said.filler)
    }
}

impl Prompt for Binding<'_> {
    const AGENT: Agent = Agent::Consolidator;
    type Said = SaidDecisions;
    type Meant = Bound;

    fn check(&self, said: SaidDecisions) -> Result<Bound, Misread> {
        let shown = Shown {
            stories: self.stories,
            turns: self.turns,
            earlier: self.earlier,
            is_supported: self.is_supported,
        };
        shown.bound(&said.decisions, &said.filler)
    }
}

/// What a reply is held against.
struct Shown<'a> {
    stories: &'a [Story],
    turns: &'a [Turn],
    earlier: usize,
    is_supported: &'a (dyn Fn(&str, &[&Turn]) -> bool + Sync),
}

impl Shown<'_> {
    fn bound(&self, said: &[SaidDecision], filler: &[String]) -> Result<Bound, Misread> {
        let mut decisions: Vec<Decision> = Vec::with_capacity(said.len());
        for said in said {
            let decision = self.decision(said)?;
            let whose = &decision.whose;
            match decisions.iter_mut().find(|known| known.whose == *whose) {
                Some(known) => {
                    known.turns.extend(&decision.turns);
                    known.turns.sort_unstable();
                    known.turns.dedup();
                }
                None => decisions.push(decision),
            }
        }
        let filler = self.places(filler)?;
        for new in self.earlier..self.turns.len() {
            let is_bound = decisions.iter().any(|it| it.turns.contains(&new));
            if is_bound == filler.contains(&new) {
                let why = if is_bound { "both" } else { "neither" };
                let turn = new + 1;
                return Err(Misread(format!(
                    "every new turn is either bound or in `filler`; T{turn} is {why}"
                )));
            }
        }
        Ok(Bound { decisions })
    }

    fn decision(&self, said: &SaidDecision) -> Result<Decision, Misread> {
        let turns = self.places(&said.turns)?;
        if turns.is_empty() {
            return Err(Misread("`turns` of a story is empty".to_owned()));
        }
        let story = said.story.as_deref().filter(|story| !story.is_empty());
        let whose = match story {
            Some(handle) => {
                let known = place(self.stories, 'S', handle);
                Whose::Known(
                    known.ok_or_else(|| Misread(format!("no story `{handle}` was shown")))?,
                )
            }
            None => self.new_story(said, &turns)?,
        };
        Ok(Decision { whose, turns })
    }

    fn new_story(&self, said: &SaidDecision, turns: &[usize]) -> Result<Whose, Misread> {
        let turns: Vec<&Turn> = turns.iter().map(|place| &self.turns[*place]).collect();
        let headline = headline(said.headline.as_deref().unwrap_or_default()).map_err(|_| {
            Misread(format!(
                "`headline` of a new story must be one line of 1 to {HEADLINE} characters"
            ))
        })?;
        if !(self.is_supported)(&headline, &turns) {
            let why = format!("`{headline}` has words that none of its turns has");
            return Err(Misread(why));
        }
        let owner = said.owner.as_deref().unwrap_or_default().trim().to_owned();
        if turns.iter().all(|turn| turn.speaker != owner) {
            let why = format!("`owner` of `{headline}` is none of the speakers of its turns");
            return Err(Misread(why));
        }
        Ok(Whose::New { headline, owner })
    }

    /// The places of new turns, in order.
    fn places(&self, handles: &[String]) -> Result<Vec<usize>, Misread> {
        let places = handles.iter().map(|handle| {
            let place = place(self.turns, 'T', handle).filter(|place| *place >= self.earlier);
            place.ok_or_else(|| Misread(format!("`{handle}` is none of the new turns")))
        });
        let mut places = places.collect::<Result<Vec<usize>, Misread>>()?;
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }
}
