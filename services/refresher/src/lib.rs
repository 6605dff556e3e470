//! The refresher keeps memory current (AMA section 3.4). It settles the conflicts that the judge found by closing validity intervals
//! (`settle`), opens those that a withdrawn fact had closed (`reopen`), has a language model, where there is one, look at what was settled once
//! more (`review`), takes callers' corrections (`correct`) and their word on names (`identify`), and undoes changes (`revert`); none of these removes anything. It removes memory on an
//! explicit request (`forget`) or because the owner of a space does not want to keep it
//! (`retention`). Nothing else in memfleet removes data. `scrubbing` makes up for what a removal left in the file. `audit`
//! removes what the audit log need not keep any longer, `expiry` exchanges and injections that are past their time.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod audit;
mod correct;
pub mod expiry;
pub mod forget;
mod identify;
mod pause;
mod reopen;
mod restore;
pub mod retention;
mod revert;
mod review;
pub mod scrubbing;
mod settle;

pub use review::Reviewer;

use std::sync::Arc;

use memfleet_domain::Clock;
use memfleet_ports::erasure::Erasure;
use memfleet_ports::events::Events;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::knowledge::Knowledge;
use memfleet_ports::queue::IngestQueue;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_workers::Indexer;

/// What the refresher works with.
#[derive(Clone)]
pub struct LocalRefresher {
    /// Removes from storage.
    pub erasure: Arc<dyn Erasure>,
    /// What was accepted before a forget is applied before it, so that nothing comes back afterwards.
    pub queue: Arc<dyn IngestQueue>,
    /// Which spaces exist.
    pub spaces: Arc<dyn SpaceCatalog>,
    /// Facts, episodes and conflicts.
    pub knowledge: Arc<dyn Knowledge>,
    /// How far the spaces are.
    pub feed: Arc<dyn IndexFeed>,
    /// Makes corrected facts findable.
    pub indexer: Indexer,
    /// Tells caches to let go.
    pub events: Events,
    /// When retention periods end.
    pub clock: Arc<dyn Clock>,
}
