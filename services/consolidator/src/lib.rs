//! The consolidator (Amory section 3): it binds what episodes tell to the narratives of a space (`bind`), and gives those that nobody speaks of
//! any more their subplots and headlines (`consolidate`); and it keeps the semantic graph as the facts are (`relate`). Every narrative is a derivation: versioned, reverted and forgotten like facts and episodes.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod advised;
mod bind;
mod cast;
mod consolidate;
mod news;
mod rebind;
mod relate;
mod replot;
mod stories;

use std::sync::Arc;

use memfleet_domain::Clock;
use memfleet_ports::events::Events;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::knowledge::Knowledge;
use memfleet_ports::ledger::Ledger;
use memfleet_workers::Indexer;

pub use consolidate::{Mode, Options, Plotter};
pub use rebind::Rebinder;
pub use relate::Relater;
pub use replot::Replotter;
pub use stories::Shelf;

/// What the consolidator works with.
#[derive(Clone)]
pub struct LocalConsolidator {
    /// The turns.
    pub ledger: Arc<dyn Ledger>,
    /// What changed, and vectors.
    pub feed: Arc<dyn IndexFeed>,
    /// Episodes, fragments, narratives.
    pub knowledge: Arc<dyn Knowledge>,
    /// Makes headlines findable.
    pub indexer: Indexer,
    /// Tells who follows.
    pub events: Events,
    /// Recorded time.
    pub clock: Arc<dyn Clock>,
    /// The stories of the spaces that were worked on last.
    pub shelf: Arc<Shelf>,
}
