//! The public API of memory, as the gateway offers it and as clients call it.

use std::pin::Pin;

use async_trait::async_trait;
use futures::Stream;
use memfleet_domain::Fault;
use memfleet_domain::derivation::DecidedMemory;
use memfleet_domain::ids::{
    BatchId, ExternalId, IdempotencyKey, SessionId, SpaceId, Speaker, TurnId,
};
use memfleet_domain::ingestion::{Receipt, TurnReceipt};
use memfleet_domain::policy::Policy;
use memfleet_domain::space::{LegalHold, Session, Space, SpaceSettings};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{Content, Metadata, Role, Trust, Turn};

use crate::context::Context;
use crate::filter::TurnFilter;
use crate::ledger::{Page, PageToken};
use crate::refresher::{ForgetReceipt, ForgetRequest};
use crate::retriever::{Found, Query};
use crate::subject::{Subject, SubjectForget, SubjectProgress};

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
    /// Least relevance of a hit, from 0 to 1; absent: any, or none.
    pub min_relevance: Option<f32>,
    /// Unit of a hit.
    pub granularity: HitGranularity,
}

impl From<Query> for RecallRequest {
    /// A search for turns of any relevance that waits for no write.
    fn from(query: Query) -> Self {
        Self {
            query,
            wait_for: Vec::new(),
            min_relevance: None,
            granularity: HitGranularity::Turn,
        }
    }
}

/// Unit of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HitGranularity {
    /// A turn.
    #[default]
    Turn,
    /// A fact that a turn states: the passage is its words, and it is the only fact of the hit.
    Statement,
}

/// A question to memory.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerRequest {
    /// The question as a query for the turns to look at, 1 to 100; without neighbours and breakdown.
    pub query: Query,
    /// Writes that the answer must see.
    pub wait_for: Vec<BatchId>,
    /// Who answers.
    pub mode: AnswerMode,
}

/// Who answers a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerMode {
    /// A language model if one is configured and says something, else rules.
    #[default]
    Auto,
    /// Rules: no language model is asked.
    Rules,
    /// A language model, or a fault.
    Model,
}

/// Part of an answer. The end comes last, and once.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerPart {
    /// More of its words.
    Text(String),
    /// Where the words before it are from.
    Citation(Box<Citation>),
    /// How it ended.
    End(AnswerEnd),
}

/// A turn that an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// Where the turn is.
    pub space: SpaceId,
    /// The turn.
    pub turn: TurnId,
    /// The conversation it belongs to.
    pub session: SessionId,
    /// Who spoke.
    pub speaker: Speaker,
    /// Event time, else recorded time.
    pub time: Timestamp,
    /// Bytes of its searchable text that say so; empty where they are not known.
    pub evidence: (u32, u32),
    /// These words; where they are not known, how the turn begins.
    pub quote: String,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There is an answer.
    Answered,
    /// Memory does not hold it.
    Abstained,
}

/// A model that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweringModel {
    /// Its name.
    pub model: String,
    /// Prompt and version that it was asked with.
    pub prompt: String,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerEnd {
    /// What became of the question.
    pub outcome: Outcome,
    /// The model that answered; absent where the answer is quotations.
    pub model: Option<AnsweringModel>,
    /// What was missing, by name; empty when all was there.
    pub degraded: Vec<String>,
    /// How many turns were looked at.
    pub looked_at: u32,
    /// Citations of what was not shown, which are left out.
    pub dropped_citations: u32,
    /// The question as it was searched, where its conversation made it another.
    pub understood: Option<String>,
    /// Searches that followed the first, for what it did not find.
    pub retries: u32,
    /// True where statements are quoted that contradict each other, and it is not certain which holds.
    pub is_uncertain: bool,
}

/// One line of an export: enough to rebuild the space elsewhere, equal in everything.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// Comes before its turns.
    Space(SpaceId, SpaceSettings),
    /// Comes right behind its space, where there is something to say.
    Rules(Box<SpaceRules>),
    /// The turns, in the order of acceptance.
    Turn(Box<Turn>),
    /// Decisions of callers about a fact or a naming; behind the turns, by id.
    Decided(Box<DecidedMemory>),
}

/// Rules of a space besides its settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpaceRules {
    /// The legal hold that it is on.
    pub hold: Option<LegalHold>,
    /// Its own policy.
    pub policy: Option<Policy>,
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
    /// Facts and namings that took on what callers had decided about them.
    pub decided: u64,
    /// Parts of the records that were left out for another reason than that they are there or were
    /// forgotten, and why.
    pub left_out: Vec<String>,
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

    /// Answers a question from what memory holds of it, and from nothing else.
    async fn answer(
        &self,
        context: &Context,
        request: AnswerRequest,
    ) -> Result<Answers<AnswerPart>, Fault>;

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

    /// Removes the turns of one person from every space of the tenant, one space after the other. A
    /// space on legal hold is reported and left. Run again after it broke off it ends in the same
    /// state.
    async fn forget_subject(
        &self,
        context: &Context,
        request: SubjectForget,
    ) -> Result<Answers<SubjectProgress>, Fault>;

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

    /// The turns of one person in every space of the tenant as records: each space in which they
    /// spoke, then their turns there.
    async fn export_subject(
        &self,
        context: &Context,
        subject: &Subject,
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
