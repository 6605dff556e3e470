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
    /// What is gone, or would go.
    pub erased: Erased,
    /// Whether nothing was touched.
    pub dry_run: bool,
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
