//! Removing and correcting memory on request, as a service.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::derivation::{DecidedMemory, Derivation};
use memfleet_domain::graph::Identity;
use memfleet_domain::ids::{ChangeId, SpaceId, TurnId};

use crate::context::Context;
use crate::erasure::Erased;
use crate::filter::TurnFilter;
use crate::knowledge::Recorded;
use crate::knowledge_api::UpdateRequest;

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

    /// True where nothing is gone, or would go.
    pub fn is_empty(&self) -> bool {
        self.erased == Erased::default()
    }

    /// Whether the lists are shorter than what they list.
    pub fn is_cut(&self) -> bool {
        let listed = (self.erased.turns.len(), self.erased.emptied_sessions.len());
        (listed.0 as u64, listed.1 as u64) != (self.turns, self.sessions)
    }
}

/// What a caller says of two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// Whether they are one.
    pub identity: Identity,
    /// Turns that name them.
    pub turns: Vec<TurnId>,
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

    /// Corrects a fact; its new version. `FAILED_PRECONDITION` where the version is not the one that the caller has seen.
    async fn correct(
        &self,
        context: &Context,
        request: &UpdateRequest,
    ) -> Result<Derivation, Fault>;

    /// Notes what a caller says of names; the change that does so. Said again, it is the change that said it first.
    async fn identify(
        &self,
        context: &Context,
        space: &SpaceId,
        namings: &[Naming],
    ) -> Result<ChangeId, Fault>;

    /// Puts back what callers decided about a fact or a naming, with its history, in place of what
    /// agents derived of it here; false where callers decided something about it here that the
    /// history does not have, or all that it has. Its turns must be stored.
    async fn restore(
        &self,
        context: &Context,
        space: &SpaceId,
        memory: &DecidedMemory,
    ) -> Result<bool, Fault>;

    /// Undoes a change; the change that does so. `FAILED_PRECONDITION` where a later change stands on it.
    async fn revert(
        &self,
        context: &Context,
        space: &SpaceId,
        change: ChangeId,
    ) -> Result<Recorded, Fault>;
}
