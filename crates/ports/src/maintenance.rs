//! The public API for whoever runs a node: what it is doing, and what it could not do.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::time::Timestamp;

use crate::context::Context;
use crate::knowledge::Rebuilding;
use crate::ledger::{Page, PageToken};
use crate::memory::PageRequest;
use crate::queue::{DeadLetter, Depth};

/// A part that a node needs, and whether it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// For example `store`, `embedder`.
    pub name: String,
    /// Absent when it works.
    pub trouble: Option<String>,
    /// Since when it is in trouble.
    pub since: Option<Timestamp>,
}

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Version of memfleet.
    pub version: String,
    /// Where new vectors live; absent while no embedder could say.
    pub embedding_space: Option<EmbeddingSpace>,
    /// Each part.
    pub parts: Vec<Part>,
    /// The ingestion queue, as far as it is the caller's.
    pub queue: Depth,
}

/// What a page of a space's graph is like, held against the facts that it follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphCheck {
    /// Triplets that facts and callers say.
    pub compared: u64,
    /// Those of them that the graph does not have …
    pub missing: u64,
    /// … or has otherwise.
    pub different: u64,
    /// Triplets of the graph that nobody says.
    pub surplus: u64,
    /// Changes of the space that the graph has yet to follow: what differs may be one of these.
    pub behind: u64,
    /// The next page; absent on the last.
    pub next: Option<PageToken>,
}

/// The `Maintenance` service.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// What the node is doing.
    async fn status(&self, context: &Context) -> Result<Status, Fault>;

    /// What could not be applied in a space, or in any of the tenant's.
    async fn dead_letters(
        &self,
        context: &Context,
        space: Option<&SpaceId>,
        page: PageRequest,
    ) -> Result<Page<DeadLetter>, Fault>;

    /// Puts dead letters back into the queue, all of them when `acceptances` is empty; how many batches.
    async fn replay(
        &self,
        context: &Context,
        space: &SpaceId,
        acceptances: &[u64],
    ) -> Result<u64, Fault>;

    /// Begins to derive a space's facts once more; one that is under way goes on.
    async fn rebuild(&self, context: &Context, space: &SpaceId) -> Result<Rebuilding, Fault>;

    /// Holds a page of a space's graph against its facts.
    async fn verify_graph(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
    ) -> Result<GraphCheck, Fault>;

    /// The same, and makes the graph as the facts are; what it found before it did.
    async fn rebuild_graph(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
    ) -> Result<GraphCheck, Fault>;

    /// The rebuild of a space that is under way.
    async fn rebuilding(
        &self,
        context: &Context,
        space: &SpaceId,
    ) -> Result<Option<Rebuilding>, Fault>;
}
