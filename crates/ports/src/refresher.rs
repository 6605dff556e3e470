//! Removing memory on request, as a service.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;

use crate::context::Context;
use crate::erasure::Erased;
use crate::filter::TurnFilter;

/// What to forget.
#[derive(Debug, Clone, PartialEq)]
pub struct ForgetRequest {
    /// In which space.
    pub space: SpaceId,
    /// Which turns; a filter without any condition is refused unless `everything` says so.
    pub filter: TurnFilter,
    /// The whole space, settings included.
    pub everything: bool,
    /// Only say what would go.
    pub dry_run: bool,
}

/// What went.
#[derive(Debug, Clone, PartialEq)]
pub struct ForgetReceipt {
    /// What is gone, or would go. Its lists hold only the first turns and sessions where an answer could not hold them all.
    pub erased: Erased,
    /// How many turns, listed or not.
    pub turns: u64,
    /// How many sessions have no turn left, listed or not.
    pub sessions: u64,
    /// Whether nothing was touched.
    pub dry_run: bool,
}

impl ForgetReceipt {
    /// A receipt that lists everything.
    pub fn of(erased: Erased, dry_run: bool) -> Self {
        Self {
            turns: erased.turns.len() as u64,
            sessions: erased.emptied_sessions.len() as u64,
            erased,
            dry_run,
        }
    }

    /// Whether the lists are shorter than what they list.
    pub fn is_cut(&self) -> bool {
        let listed = (self.erased.turns.len(), self.erased.emptied_sessions.len());
        (listed.0 as u64, listed.1 as u64) != (self.turns, self.sessions)
    }
}

/// The refresher role.
#[async_trait]
pub trait Refresher: Send + Sync {
    /// Forgets, everywhere, including what is still queued.
    async fn forget(
        &self,
        context: &Context,
        request: &ForgetRequest,
    ) -> Result<ForgetReceipt, Fault>;
}
