//! The judge (AMA section 3.3). On write it holds new statements against current ones, by the
//! reader of turns (`statements`), and notes conflicts for the refresher (`write`), so that
//! knowledge is current before anyone asks. A language model, where there is one, compares facts
//! once more behind it (`compare`). It decides; it changes nothing itself.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod compare;
mod statements;
mod write;

pub use compare::Comparer;

use std::sync::Arc;

use memfleet_agents::conflicts::Verdict;
use memfleet_domain::Clock;
use memfleet_domain::derivation::{Conflict, Status};
use memfleet_domain::ids::ConflictId;
use memfleet_ports::events::Events;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::knowledge::Knowledge;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::retriever::Retriever;
use memfleet_ports::turn_reader::TurnReader;

/// What the judge works with.
#[derive(Clone)]
pub struct LocalJudge {
    /// The facts.
    pub knowledge: Arc<dyn Knowledge>,
    /// How far the spaces are.
    pub feed: Arc<dyn IndexFeed>,
    /// Turns of the statements.
    pub ledger: Arc<dyn Ledger>,
    /// Finds turns that a new one may bear on.
    pub retriever: Arc<dyn Retriever>,
    /// Reads whether one statement ends another.
    pub reader: Arc<dyn TurnReader>,
    /// Tells the refresher.
    pub events: Events,
    /// When a conflict was found.
    pub clock: Arc<dyn Clock>,
}

impl LocalJudge {
    fn conflict(&self, id: ConflictId, verdict: Verdict, judge: &str) -> Conflict {
        Conflict {
            id,
            older: verdict.older,
            newer: verdict.newer,
            contradiction: verdict.contradiction,
            ends: verdict.ends,
            found_at: self.clock.now(),
            status: Status::Found,
            judge: judge.to_owned(),
            probability: None,
        }
    }
}
