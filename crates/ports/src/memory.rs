//! The public API of memory, as the gateway offers it and as clients call it.

use std::pin::Pin;

use async_trait::async_trait;
use futures::Stream;
use memfleet_domain::Fault;
use memfleet_domain::ids::{
    BatchId, ExternalId, IdempotencyKey, SessionId, SpaceId, Speaker, TurnId,
};
use memfleet_domain::ingestion::{Receipt, TurnReceipt};
use memfleet_domain::space::{Session, Space, SpaceSettings};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{Content, Metadata, Role, Trust, Turn};

use crate::context::Context;
use crate::filter::TurnFilter;
use crate::ledger::{Page, PageToken};
use crate::refresher::{ForgetReceipt, ForgetRequest};
use crate::retriever::{Found, Query};

/// A stream of answers; it ends after the first fault.
pub type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Fault>> + Send>>;

/// A turn as a caller gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTurn {
    /// The conversation it belongs to.
    pub session: SessionId,
    /// The caller's id; a second turn with it is the same turn.
    pub external_id: Option<ExternalId>,
    /// Who spoke.
    pub speaker: Speaker,
    /// In which part.
    pub role: Role,
    /// What was said.
    pub content: Content,
    /// When it was said, if known.
    pub event_time: Option<Timestamp>,
    /// The caller's labels.
    pub metadata: Metadata,
    /// Where the words come from.
    pub trust: Trust,
    /// The turn that this one replaces.
    pub replaces: Option<TurnId>,
}

/// Turns to remember, together.
#[derive(Debug, Clone, PartialEq)]
pub struct RememberRequest {
    /// Where.
    pub space: SpaceId,
    /// 1 to 1,000 turns, in the order in which they were said.
    pub turns: Vec<NewTurn>,
    /// The same key with the same turns is the same request. Without one, turns without external ids are new each time.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallRequest {
    /// What to look for.
    pub query: Query,
    /// Writes that the answer must see.
    pub wait_for: Vec<BatchId>,
}

/// One line of an export: enough to rebuild the space elsewhere, equal in everything.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// Comes first.
    Space(SpaceId, SpaceSettings),
    /// The turns, in the order of acceptance.
    Turn(Box<Turn>),
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// Turns accepted now.
    pub accepted: u64,
    /// Turns that were there already, or were on their way.
    pub duplicates: u64,
    /// Turns that were forgotten here, and are left out.
    pub forgotten: u64,
    /// The batches of the turns accepted and of those on their way, in order; as text they are consistency tokens.
    pub batches: Vec<BatchId>,
}

/// The `Memory` service.
#[async_trait]
pub trait Memory: Send + Sync {
    /// Accepts turns: when it returns they survive a crash.
    async fn remember(&self, context: &Context, request: RememberRequest)
    -> Result<Receipt, Fault>;

    /// Finds turns.
    async fn recall(&self, context: &Context, request: RecallRequest) -> Result<Found, Fault>;

    /// The turns with these ids.
    async fn get(
        &self,
        context: &Context,
        space: &SpaceId,
        ids: &[TurnId],
        wait_for: &[BatchId],
    ) -> Result<Vec<Turn>, Fault>;

    /// The turns that match, session by session.
    async fn list(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: &TurnFilter,
        page: PageRequest,
        wait_for: &[BatchId],
    ) -> Result<Page<Turn>, Fault>;

    /// Every version of a turn, oldest first.
    async fn history(
        &self,
        context: &Context,
        space: &SpaceId,
        turn: TurnId,
    ) -> Result<Vec<Turn>, Fault>;

    /// Removes turns for good.
    async fn forget(
        &self,
        context: &Context,
        request: ForgetRequest,
    ) -> Result<ForgetReceipt, Fault>;

    /// The states of a batch's turns: the present ones, then each change; ends when all are final.
    async fn watch(
        &self,
        context: &Context,
        space: &SpaceId,
        batch: BatchId,
    ) -> Result<Answers<TurnReceipt>, Fault>;

    /// A space as records.
    async fn export(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: &TurnFilter,
    ) -> Result<Answers<Record>, Fault>;

    /// Records of an export into `space`; turns keep their ids and recorded times. The settings are those of the records only
    /// where the space does not exist yet. What was forgotten in the space is not brought back, unless all of it was forgotten.
    async fn import(
        &self,
        context: &Context,
        space: &SpaceId,
        records: Answers<Record>,
    ) -> Result<Imported, Fault>;

    /// Creates a space or changes its settings.
    async fn put_space(
        &self,
        context: &Context,
        space: &SpaceId,
        settings: SpaceSettings,
    ) -> Result<Space, Fault>;

    /// Puts a space on legal hold, or lifts the hold.
    async fn set_legal_hold(
        &self,
        context: &Context,
        space: &SpaceId,
        held: bool,
        reason: String,
    ) -> Result<Space, Fault>;

    /// The tenant's spaces by name.
    async fn spaces(&self, context: &Context, page: PageRequest) -> Result<Page<Space>, Fault>;

    /// The sessions of a space.
    async fn sessions(
        &self,
        context: &Context,
        space: &SpaceId,
        page: PageRequest,
    ) -> Result<Page<Session>, Fault>;
}

/// Which part of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRequest {
    /// Items a page, 1 to 1,000. Default 100.
    pub limit: u32,
    /// Where the page before ended.
    pub after: Option<PageToken>,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self {
            limit: 100,
            after: None,
        }
    }
}
