//! `P_con` of AMA section 3.1: the facts of new turns, read in the light of earlier ones. A fact stays only if its quotation is in
//! its turn and its words are supported there, and keeps of its dates and its stance what is told
//! there.

use memfleet_domain::fact::{Claim, Clause, Draft, Pattern, Stance};
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::TimeRange;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Prompt;
use crate::dropped::{Dropped, Why};
use crate::handles::{Turn, named, place};
use crate::press::Template;
use crate::reading::Misread;
use crate::{date, handles, quote, words};

/// Most facts that are taken from one turn.
const MOST: usize = 32;
/// Longest sentence, quotation and part of a clause, in characters.
const SENTENCE: usize = 500;
const QUOTE: usize = 1000;
const PART: usize = 250;

/// Checks of a fact that a model found.
#[derive(Clone, Copy)]
pub struct Checks<'a> {
    /// The claim of a clause, in keys that compare.
    pub claim: &'a (dyn Fn(&Clause) -> Claim + Sync),
    /// Whether the words of a fact are in its turn, or in those of the window that it names.
    pub is_supported: &'a (dyn Fn(&Draft, &Turn, &[Turn]) -> bool + Sync),
    /// The fact with the dates and the stance that its turn tells, and how many it does not tell.
    pub as_told: &'a (dyn Fn(Draft, &Turn) -> (Draft, u32) + Sync),
}

/// Turns to read.
#[derive(Serialize)]
pub struct Facts<'a> {
    /// The window and the new turns after it, in order.
    #[serde(serialize_with = "handles::turns")]
    pub turns: &'a [Turn],
    /// How many of them are the window: nothing is taken from those.
    pub earlier: usize,
    /// Sentences that are known of the people and things in them.
    pub known: &'a [String],
    /// What is checked.
    #[serde(skip)]
    pub checks: Checks<'a>,
}

impl Template for Facts<'_> {
    const ID: PromptId = PromptId {
        name: "facts",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/facts.v1.j2");
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extraction {
    /// Facts with the turns that state them.
    pub drafts: Vec<(TurnId, Draft)>,
    /// What was left out.
    pub dropped: Dropped,
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Said {
    facts: Vec<SaidFact>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SaidFact {
    turn: String,
    quote: String,
    sentence: String,
    pattern: SaidPattern,
    subject: String,
    verb: String,
    #[serde(default)]
    object: Option<String>,
    #[serde(default)]
    complement: Option<String>,
    #[serde(default)]
    negated: bool,
    #[serde(default)]
    correction: bool,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    until: Option<String>,
    #[serde(default)]
    related: Vec<String>,
    confidence: f32,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
enum SaidPattern {
    #[serde(rename = "S-V")]
    Verb,
    #[serde(rename = "S-V-O")]
    VerbObject,
    #[serde(rename = "S-V-C")]
    VerbComplement,
    #[serde(rename = "S-V-O-O")]
    VerbObjectObject,
    #[serde(rename = "S-V-O-C")]
    VerbObjectComplement,
}

impl SaidPattern {
    /// The pattern, if its parts are there and no others.
    fn with(self, clause: &Clause) -> Result<Pattern, Why> {
        let (pattern, parts) = match self {
            Self::Verb => (Pattern::Verb, (false, false)),
            Self::VerbObject => (Pattern::VerbObject, (true, false)),
            Self::VerbComplement => (Pattern::VerbComplement, (false, true)),
            Self::VerbObjectObject => (Pattern::VerbObjectObject, (true, true)),
            Self::VerbObjectComplement => (Pattern::VerbObjectComplement, (true, true)),
        };
        let present = (clause.object.is_some(), clause.complement.is_some());
        (parts == present).then_some(pattern).ok_or(Why::Malformed)
    }
}

impl Prompt for Facts<'_> {
    const AGENT: Agent = Agent::Constructor;
    type Said = Said;
    type Meant = Extraction;

    fn check(&self, said: Said) -> Result<Extraction, Misread> {
        let mut meant = Extraction::default();
        let most = MOST * (self.turns.len() - self.earlier.min(self.turns.len()));
        let excess = said.facts.len().saturating_sub(most);
        meant.dropped.malformed += excess as u32;
        for fact in said.facts.iter().take(most) {
            match self.draft(fact, &mut meant.dropped) {
                Ok(found) if !meant.drafts.contains(&found) => meant.drafts.push(found),
                Ok(_) => meant.dropped.count(Why::Malformed),
                Err(why) => meant.dropped.count(why),
            }
        }
        Ok(meant)
    }
}

impl Facts<'_> {
    fn draft(&self, said: &SaidFact, dropped: &mut Dropped) -> Result<(TurnId, Draft), Why> {
        let place = place(self.turns, 'T', &said.turn).filter(|place| *place >= self.earlier);
        let turn = &self.turns[place.ok_or(Why::Unknown)?];
        let quotation = words::quotation(&said.quote, QUOTE)?;
        let evidence = quote::span(&turn.text, quotation).ok_or(Why::Unsupported)?;
        let clause = said.clause()?;
        let draft = Draft {
            text: words::line(&said.sentence, SENTENCE)?,
            claim: (self.checks.claim)(&clause),
            clause: Some(clause),
            statement: None,
            stance: if said.correction {
                Stance::Corrects
            } else {
                Stance::States
            },
            said_at: Some(turn.said_at),
            evidence,
            valid: said.valid()?,
            related: self.related(turn, &said.related, dropped),
            confidence: words::share(said.confidence)?,
            line: None,
            names: Vec::new(),
            topics: Vec::new(),
        };
        if !(self.checks.is_supported)(&draft, turn, self.turns) {
            return Err(Why::Unsupported);
        }
        let (draft, untold) = (self.checks.as_told)(draft, turn);
        dropped.unsupported += untold;
        Ok((turn.id, draft))
    }

    /// The turns that a fact names besides its own; unknown ones are left out and the fact stays.
    fn related(&self, own: &Turn, named_turns: &[String], dropped: &mut Dropped) -> Vec<TurnId> {
        let mut related = Vec::new();
        for handle in named_turns {
            match named(self.turns, 'T', handle) {
                None => dropped.count(Why::Unknown),
                Some(turn) if turn.id == own.id || related.contains(&turn.id) => {}
                Some(turn) => related.push(turn.id),
            }
        }
        related
    }
}

impl SaidFact {
    fn clause(&self) -> Result<Clause, Why> {
        let mut clause = Clause {
            pattern: Pattern::Verb,
            subject: words::line(&self.subject, PART)?,
            predicate: words::line(&self.verb, PART)?,
            object: words::optional_line(self.object.as_deref(), PART)?,
            complement: words::optional_line(self.complement.as_deref(), PART)?,
            negated: self.negated,
        };
        clause.pattern = self.pattern.with(&clause)?;
        Ok(clause)
    }

    fn valid(&self) -> Result<TimeRange, Why> {
        let start = date::start(self.from.as_deref())?;
        let end = date::start(self.until.as_deref())?;
        let is_empty = start.zip(end).is_some_and(|(start, end)| end <= start);
        (!is_empty)
            .then_some(TimeRange { start, end })
            .ok_or(Why::Malformed)
    }
}
