//! What enters a prompt, and why.

use std::collections::BTreeMap;
use std::time::Duration;

use memfleet_domain::assembly::{
    Decision, DropReason, Gate, GateBound, GateOutcome, Granularity, Reason, SessionOrigin,
    Strategy,
};
use memfleet_domain::ids::{ExchangeName, InjectionId, SessionId, SpaceId, TurnId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::{Role, Trust};
use serde::{Deserialize, Serialize};

use crate::retriever::SignalScore;

/// A memory system that has an item, and its id there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Source {
    /// The memory system.
    pub system: String,
    /// The id.
    pub id: String,
}

/// An item of the block (AMP item 91).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssembledItem {
    /// Where it comes from; absent for a memory of the caller.
    pub space: Option<SpaceId>,
    /// The id of the turn, or that of the caller's memory. Of a line of a profile it is the turn that
    /// states it.
    pub id: String,
    /// Its score in the search; lower than that of its hit for a neighbour. Of a line of a profile
    /// its worth, 0 to 1.
    pub score: f32,
    /// Its tokens in the block, without headings.
    pub tokens: u32,
    /// Whether it was cut.
    pub excerpt: bool,
    /// Its key in the block; empty where the template shows none.
    pub citation_key: String,
    /// The session it was said in; may be empty for a memory of the caller.
    pub session: String,
    /// Who said it.
    pub speaker: String,
    /// In which part.
    pub role: Role,
    /// When it was said.
    pub event_time: Option<Timestamp>,
    /// When it was recorded.
    pub recorded_at: Option<Timestamp>,
    /// What kind of memory it is.
    pub granularity: Granularity,
    /// Where its words come from.
    pub trust: Trust,
    /// The calibrated probability that it bears on the query.
    pub relevance: Option<f32>,
    /// Its tokens uncut.
    pub original_tokens: u32,
    /// Every source that has it, itself first.
    pub sources: Vec<Source>,
    /// When it holds.
    pub valid: TimeRange,
    /// Whether what it was derived from lies in excluded sessions in part.
    pub mixed_lineage: bool,
    /// BLAKE3 of its text, in hexadecimal digits.
    pub content_hash: String,
    /// Why it was found, when asked for.
    pub signals: Vec<SignalScore>,
    /// The turns that the correction which the block shows with it comes from. They are kept with
    /// it, and no message has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrected_from: Vec<TurnId>,
}

impl AssembledItem {
    /// The turn, where it is one of memory.
    pub fn turn(&self) -> Option<TurnId> {
        self.space.as_ref().and_then(|_| self.id.parse().ok())
    }

    /// The turns of memory whose words the block shows for it. One may come twice.
    pub fn shown_turns(&self) -> impl Iterator<Item = (SpaceId, TurnId)> {
        let turns = self.turn().into_iter();
        let turns = turns.chain(self.corrected_from.iter().copied());
        turns.filter_map(|turn| Some((self.space.clone()?, turn)))
    }
}

/// Section *who this is* at the beginning of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProfileUse {
    /// Person whom it is about; empty in a record.
    pub speaker: String,
    /// Its tokens, with heading and delimiters.
    pub tokens: u32,
    /// Delimiter of its own; empty: it has none.
    pub nonce: String,
}

/// What one gate said, and by what (AMP items 51, 54, 59).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateEntry {
    /// Which.
    pub gate: Gate,
    /// What it said.
    pub outcome: GateOutcome,
    /// Why.
    pub reason: Reason,
    /// The rule that matched; empty: none.
    pub rule: String,
    /// What it matched.
    pub pattern: String,
    /// Version of its rules, examples or scorer; empty: it has none.
    pub version: String,
    /// Likeness to examples that need memory.
    pub similarity_memory: Option<f32>,
    /// Likeness to examples that need none.
    pub similarity_none: Option<f32>,
    /// What it decides by.
    pub margin: Option<f32>,
    /// What that is compared with.
    pub threshold: Option<f32>,
    /// The best relevance of all that was found.
    pub best_score: Option<f32>,
    /// Items that passed.
    pub passed: u32,
    /// Items that did not.
    pub dropped: u32,
    /// How long it took.
    pub duration: Duration,
    /// Every bound that it held a value against, met and unmet.
    #[serde(default)]
    pub bounds: Vec<GateBound>,
}

impl GateEntry {
    /// An entry with nothing to add.
    pub fn new(gate: Gate, outcome: GateOutcome, reason: Reason) -> Self {
        Self {
            gate,
            outcome,
            reason,
            rule: String::new(),
            pattern: String::new(),
            version: String::new(),
            similarity_memory: None,
            similarity_none: None,
            margin: None,
            threshold: None,
            best_score: None,
            passed: 0,
            dropped: 0,
            duration: Duration::ZERO,
            bounds: Vec::new(),
        }
    }
}

/// What the first two gates say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gated {
    /// Whether to go on.
    pub pass: bool,
    /// What decided.
    pub reason: Reason,
    /// What each said.
    pub gates: Vec<GateEntry>,
}

/// A candidate that is not in the block. Without its text: records keep it after the turn is forgotten.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// Where it comes from.
    pub space: Option<SpaceId>,
    /// The memory.
    pub id: String,
    /// Why.
    pub reason: DropReason,
    /// More of it.
    pub detail: String,
    /// Its relevance, where it was scored.
    #[serde(default)]
    pub relevance: Option<f32>,
}

impl Dropped {
    /// The turn, where it is one of memory.
    pub fn turn(&self) -> Option<TurnId> {
        self.space.as_ref().and_then(|_| self.id.parse().ok())
    }
}

/// What an edit does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditOperation {
    /// The text comes at the end of a message's text, or of one of its parts.
    AppendText,
    /// The text is a new part at the end of a message.
    AppendPart,
    /// The text comes at the end of the system prompt.
    AppendSystem,
    /// The text is a new part at the end of the system prompt.
    AppendSystemPart,
    /// The text becomes the system prompt.
    InsertSystem,
    /// A tool joins the tools.
    AddTool,
}

/// One change of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// What to do.
    pub operation: EditOperation,
    /// Which message, as the prompt counts them.
    pub message: Option<u32>,
    /// Which of its parts.
    pub part: Option<u32>,
    /// What is added, exactly.
    pub text: String,
    /// The tool as JSON.
    pub tool: String,
}

/// How the budget came about and what was used of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BudgetUse {
    /// What was allowed.
    pub effective_tokens: u32,
    /// Which bound it was.
    pub limited_by: String,
    /// What the edits add.
    pub added_tokens: u32,
    /// The tokenizer.
    pub tokenizer: String,
    /// Whether it is a bound instead of a count.
    pub approximate: bool,
    /// Tokens of the prompt before, where a bound needed them.
    pub prompt_tokens: u32,
}

/// The memory for a prompt, and what to do with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assembled {
    /// What goes into the prompt; empty when nothing does.
    pub block: String,
    /// Tokens of the block, at most the budget.
    pub tokens: u32,
    /// What is in it, in its order.
    pub items: Vec<AssembledItem>,
    /// Candidates that are not in it.
    pub left_out: u32,
    /// What was missing, as in [`crate::retriever::Found::degraded`].
    pub degraded: Vec<String>,
    /// Its record; absent where none is kept.
    pub injection: Option<InjectionId>,
    /// What became of it.
    pub decision: Decision,
    /// Why, where it is not plainly injected.
    pub reason: Option<Reason>,
    /// What to change in the prompt.
    pub edits: Vec<Edit>,
    /// The provider's request with the edits in it, when asked for.
    pub patched: Option<Vec<u8>>,
    /// What the gates said.
    pub gates: Vec<GateEntry>,
    /// The best of the candidates that are not in the block.
    pub dropped: Vec<Dropped>,
    /// Tokens.
    pub budget: BudgetUse,
    /// The strategy that was asked for first.
    pub strategy_requested: Strategy,
    /// The strategy that is used.
    pub strategy_used: Strategy,
    /// How long its stages took.
    pub timings: Vec<(String, Duration)>,
    /// What it was made by, name to version.
    pub versions: BTreeMap<String, String>,
    /// The session that it was made for.
    pub session: Option<SessionId>,
    /// How the session is known; absent: there is none.
    #[serde(default)]
    pub session_origin: Option<SessionOrigin>,
    /// The conversations that a derived session comes from, the nearest first.
    #[serde(default)]
    pub session_lineage: Vec<SessionId>,
    /// The exchange that it was made for.
    pub exchange: Option<ExchangeName>,
    /// The query as it was searched, where its conversation made it another.
    pub understood: Option<String>,
    /// What delimits the block, without its profile; empty: nothing.
    pub nonce: String,
    /// Section *who this is*; absent: the block has none.
    #[serde(default)]
    pub profile: Option<ProfileUse>,
}

impl Assembled {
    /// Nothing enters the prompt, for this reason.
    pub fn skipped(reason: Reason) -> Self {
        Self {
            block: String::new(),
            tokens: 0,
            items: Vec::new(),
            left_out: 0,
            degraded: Vec::new(),
            injection: None,
            decision: Decision::Skipped,
            reason: Some(reason),
            edits: Vec::new(),
            patched: None,
            gates: Vec::new(),
            dropped: Vec::new(),
            budget: BudgetUse::default(),
            strategy_requested: Strategy::Append,
            strategy_used: Strategy::None,
            timings: Vec::new(),
            versions: BTreeMap::new(),
            session: None,
            session_origin: None,
            session_lineage: Vec::new(),
            exchange: None,
            understood: None,
            nonce: String::new(),
            profile: None,
        }
    }
}
