//! The constructor: takes accepted batches from the queue, cuts turns into passages, analyzes and embeds them, and commits
//! turn, terms and vectors in one transaction. From that commit on a turn is searchable.
//!
//! Then, while nobody waits, facts and episodes are derived from it: `derive` is the work,
//! `extract` who finds facts in turns, `topics` the filter of facts by the topics of policies.
//!
//! `worker` owns the loop and what happens when something fails, `early` which edits wait for their
//! originals, `task` the spans of the work; `indexing` makes of turns what the ledger stores:
//! `language` is what a space's turns are analysed in, `passages` is what they become; `backfill`
//! brings the vectors that were missing while the embedder was down, or that a change of the model
//! wants, and `switching` carries such a change on; `gauges` tells how full the queue is, `relay`
//! what happened.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backfill;
mod derive;
mod early;
mod extract;
mod following_language;
mod gauges;
mod indexing;
mod language;
mod passages;
mod relay;
mod switching;
mod task;
mod topics;
mod worker;

use std::sync::Arc;

use memfleet_domain::Clock;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::events::Events;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::model_switch::ModelSwitches;
use memfleet_ports::queue::IngestQueue;
use memfleet_ports::spaces::SpaceCatalog;

pub use self::backfill::Postponed;
pub use self::derive::{Deriver, Rebuilder, Refiner, Reteller, Semanticizer, Summariser};
pub use self::extract::{
    ExtractedFacts, Extractor, ModelExtractor, NoExtractor, StatementExtractor, Utterances,
};
pub use self::relay::Relay;
pub use self::switching::{ModelSwitcher, SwitchSchedule};
pub use self::topics::{TopicFilter, TopicMatcher, topic_threshold};

/// What the constructor works with.
#[derive(Clone)]
pub struct Constructor {
    /// Where batches come from.
    pub queue: Arc<dyn IngestQueue>,
    /// Where turns go.
    pub ledger: Arc<dyn Ledger>,
    /// Where a space's language is.
    pub spaces: Arc<dyn SpaceCatalog>,
    /// Text to vectors.
    pub embedder: Arc<dyn Embedder>,
    /// Which turns came last.
    pub feed: Arc<dyn IndexFeed>,
    /// Where a space is noted whose language another model reads.
    pub switches: Arc<dyn ModelSwitches>,
    /// Tells waiting readers what became visible.
    pub events: Events,
    /// Stamps dead letters.
    pub clock: Arc<dyn Clock>,
    /// Bounds of the work.
    pub options: Options,
}

/// Bounds of the constructor's work.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Turns taken, embedded and committed together. More is faster for imports and slower to become visible.
    pub turns_per_round: u32,
    /// How often a batch that the store refuses is tried before it becomes a dead letter.
    pub attempts: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            turns_per_round: 64,
            attempts: 5,
        }
    }
}
