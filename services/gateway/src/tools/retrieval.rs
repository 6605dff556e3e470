//! What an exchange keeps of what its model asked for: rounds, tokens, what was given, and every result, so that the same call has it again.

use std::collections::BTreeSet;

use memfleet_domain::assembly::Termination;
use memfleet_domain::ids::{SpaceId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::assembly::AssembledItem;
use memfleet_ports::tools::{ToolCall, ToolResult};
use memfleet_provider::rounds::{Limits, Turn};
use serde::{Deserialize, Serialize};

/// Bytes of results that are kept; the oldest give way, and their calls count as repeated if they come again.
const RESULTS: usize = 512 << 10;

/// Stands before the id of a turn that was given in full.
pub const IN_FULL: &str = "full:";

/// The retrieval of one exchange.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Retrieval {
    /// What is counted.
    pub turn: Turn,
    /// When its first call came.
    pub began_at: Timestamp,
    /// The caller's number of the open round; 0: none.
    pub round: u32,
    /// The spaces that its first call asked.
    #[serde(default)]
    pub spaces: Vec<SpaceId>,
    results: Vec<(String, ToolResult)>,
}

impl Retrieval {
    /// One that has asked nothing. `given` are the ids in the prompt.
    pub fn new(limits: Limits, given: impl IntoIterator<Item = String>, now: Timestamp) -> Self {
        Self {
            turn: Turn::new(limits, given),
            began_at: now,
            round: 0,
            spaces: Vec::new(),
            results: Vec::new(),
        }
    }

    /// One that ends before anything was asked.
    pub fn unlimited(now: Timestamp) -> Self {
        Self::new(Limits::default(), [], now)
    }

    /// What a forget leaves of it: rounds, tokens and ids, no words.
    pub fn tally(&self) -> Self {
        Self {
            turn: self.turn.forgotten(),
            spaces: self.spaces.clone(),
            results: Vec::new(),
            ..*self
        }
    }

    /// The result that a call had before.
    pub fn result(&self, key: &str) -> Option<&ToolResult> {
        let found = self.results.iter().find(|(known, _)| known == key);
        found.map(|(_, result)| result)
    }

    /// Keeps the result of a call.
    pub fn keep(&mut self, key: String, result: ToolResult) {
        self.results.push((key, result));
        let size = |(_, result): &(String, ToolResult)| {
            result.text.len() + 1_024 * (1 + result.items.len())
        };
        let mut bytes: usize = self.results.iter().map(size).sum();
        while bytes > RESULTS && self.results.len() > 1 {
            bytes -= size(&self.results.remove(0));
        }
    }

    /// What the results hold.
    pub fn items(&self) -> impl Iterator<Item = &AssembledItem> {
        self.results.iter().flat_map(|(_, result)| &result.items)
    }

    /// The turns that were given, each once.
    pub fn turns(&self) -> Vec<TurnId> {
        let ids = self.turn.delivered();
        let ids = ids.map(|id| id.strip_prefix(IN_FULL).unwrap_or(id));
        let turns: BTreeSet<TurnId> = ids.filter_map(|id| id.parse().ok()).collect();
        turns.into_iter().collect()
    }

    /// Ends it; what is known here stands over what is `told`.
    pub fn end(&mut self, told: Termination) -> Termination {
        self.turn.resume();
        self.turn.end(told)
    }
}

/// What a call is known again by. Its spaces are part of it: who reaches others does not get what was found in these.
pub fn key(call: &ToolCall) -> String {
    let mut spaces: Vec<_> = call.spaces.iter().map(SpaceId::as_str).collect();
    spaces.sort_unstable();
    let mut hasher = blake3::Hasher::new_derive_key("memfleet gateway 2026 tool call");
    let parts = [call.call_id.as_str(), &call.name, &call.arguments];
    for part in parts.into_iter().chain(spaces) {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
