//! The judge (AMA section 3.3). On write it holds new facts against current ones of the same subject and attribute, and notes
//! conflicts for the refresher (`write`), so that knowledge is current before anyone asks. It decides; it changes nothing itself.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod write;

use std::sync::Arc;

use memfleet_domain::Clock;
use memfleet_ports::events::Events;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::knowledge::Knowledge;

/// What the judge works with.
#[derive(Clone)]
pub struct LocalJudge {
    /// The facts.
    pub knowledge: Arc<dyn Knowledge>,
    /// How far the spaces are.
    pub feed: Arc<dyn IndexFeed>,
    /// Tells the refresher.
    pub events: Events,
    /// When a conflict was found.
    pub clock: Arc<dyn Clock>,
}
