//! `P_jud` of AMA section 3.3, second half: which new facts cannot hold together with known ones, the conflict set C.

use memfleet_domain::Timestamp;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::DerivationId;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Prompt;
use crate::dropped::{Dropped, Why};
use crate::handles::{self, named};
use crate::press::Template;
use crate::reading::Misread;
use crate::words;

/// A fact as prompts show it: its sentence or, of a statement in its own words, these with their
/// speaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// Which it is.
    #[serde(skip)]
    pub id: DerivationId,
    /// Its words.
    pub text: String,
    /// Key of the name of the person who said them, where they are a statement's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Since when it holds.
    pub from: Option<Timestamp>,
    /// Until when.
    pub until: Option<Timestamp>,
}

impl Sentence {
    /// The sentence of a derivation, if it is a fact.
    pub fn of(derivation: &Derivation) -> Option<Self> {
        let fact = derivation.fact()?;
        Some(Self {
            id: derivation.id,
            text: fact.text.clone(),
            speaker: fact.is_statement().then(|| fact.claim.subject.clone()),
            from: derivation.valid.start,
            until: derivation.valid.end,
        })
    }
}

/// Facts to compare.
#[derive(Serialize)]
pub struct Comparing<'a> {
    /// Those of the newest turns.
    #[serde(serialize_with = "handles::news")]
    pub new: &'a [Sentence],
    /// Those that hold so far and may be meant by them.
    #[serde(serialize_with = "handles::facts")]
    pub known: &'a [Sentence],
}

impl Template for Comparing<'_> {
    const ID: PromptId = PromptId {
        name: "conflicts",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/conflicts.v1.j2");
}

/// How two facts exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// It was so, and now is otherwise.
    Change,
    /// It was never so.
    Correction,
    /// One of the two is wrong, and nothing tells which.
    Contradiction,
}

/// Two facts that cannot both hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exclusion {
    /// The new one.
    pub new: DerivationId,
    /// The known one.
    pub known: DerivationId,
    /// How.
    pub relation: Relation,
    /// How sure the model is, 0 to 1.
    pub confidence: f32,
}

/// C, with what was left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exclusions {
    /// Each pair once.
    pub found: Vec<Exclusion>,
    /// What was left out.
    pub dropped: Dropped,
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Said {
    conflicts: Vec<SaidConflict>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SaidConflict {
    new: String,
    known: String,
    relation: Relation,
    confidence: f32,
}

impl Prompt for Comparing<'_> {
    const AGENT: Agent = Agent::Judge;
    type Said = Said;
    type Meant = Exclusions;

    fn check(&self, said: Said) -> Result<Exclusions, Misread> {
        let mut exclusions = Exclusions::default();
        for said in &said.conflicts {
            match self.exclusion(said, &exclusions.found) {
                Ok(found) => exclusions.found.push(found),
                Err(why) => exclusions.dropped.count(why),
            }
        }
        Ok(exclusions)
    }
}

impl Comparing<'_> {
    fn exclusion(&self, said: &SaidConflict, before: &[Exclusion]) -> Result<Exclusion, Why> {
        let new = named(self.new, 'N', &said.new).ok_or(Why::Unknown)?.id;
        let known = named(self.known, 'F', &said.known).ok_or(Why::Unknown)?.id;
        let is_told = |before: &Exclusion| (before.new, before.known) == (new, known);
        if new == known || before.iter().any(is_told) {
            return Err(Why::Malformed);
        }
        Ok(Exclusion {
            new,
            known,
            relation: said.relation,
            confidence: words::share(said.confidence)?,
        })
    }
}
