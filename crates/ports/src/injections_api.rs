//! The public API of what entered which prompt (AMP items 94 and 95), kept by [`crate::injections`].

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::ids::{ExchangeName, InjectionId, SessionId, SpaceId};
use memfleet_domain::time::Timestamp;

use crate::assembly::Assembled;
use crate::context::Context;
use crate::injections::InjectionFilter;
use crate::ledger::Page;
use crate::memory::PageRequest;

/// An assembly as it is kept; those that injected nothing too.
#[derive(Debug, Clone, PartialEq)]
pub struct PastInjection {
    /// Its id.
    pub id: InjectionId,
    /// When.
    pub at: Timestamp,
    /// For whom, as [`crate::access::Caller::name`].
    pub caller: String,
    /// In which call.
    pub request_id: String,
    /// The conversation that the prompt is of.
    pub session: Option<SessionId>,
    /// The exchange that the prompt is of.
    pub exchange: Option<ExchangeName>,
    /// The spaces that were asked.
    pub spaces: Vec<SpaceId>,
    /// The answer as it was given, without block, edits and whatever else quotes memory.
    pub answer: Assembled,
    /// The exact text, where it is kept, was not forgotten and was asked for.
    pub block: Option<String>,
    /// BLAKE3 of the exact text, where there was one and nothing of it was forgotten.
    pub block_hash: Option<[u8; 32]>,
    /// Whether something in it was forgotten since.
    pub forgotten: bool,
}

/// The `Audit` service. What names a space that the caller does not reach is not there for it.
#[async_trait]
pub trait Audit: Send + Sync {
    /// One of them, with its block.
    async fn injection(&self, context: &Context, id: InjectionId) -> Result<PastInjection, Fault>;

    /// Those that match, the newest first, without blocks. Of any space: only for who reaches all of them.
    async fn injections(
        &self,
        context: &Context,
        filter: InjectionFilter,
        page: PageRequest,
    ) -> Result<Page<PastInjection>, Fault>;
}
