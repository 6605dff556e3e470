//! The public API of derived memory: what is known, since when, from which turns, what contradicts
//! it, and how to correct it.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::derivation::{Conflict, Derivation, Status};
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{
    BatchId, ChangeId, ConflictId, DerivationId, SessionId, SpaceId, Speaker, TurnId,
};
use memfleet_domain::time::{AsOf, TimeRange, Timestamp};

use crate::context::Context;
use crate::knowledge::Recorded;
use crate::ledger::Page;
use crate::memory::PageRequest;

/// Which facts. An empty list and an absent value do not restrict.
#[derive(Debug, Clone, PartialEq)]
pub struct FactQuery {
    /// Where.
    pub space: SpaceId,
    /// About this subject, by name.
    pub about: Option<String>,
    /// Of this attribute: `residence`, `employer`, …, else the verb.
    pub attribute: Option<String>,
    /// Those that come from one of these turns.
    pub turns: Vec<TurnId>,
    /// What held when (default: now), as it was known when (default: now).
    pub as_of: AsOf,
    /// Also what held at other times.
    pub ended: bool,
    /// Writes that the answer must see, with what is derived from them.
    pub wait_for: Vec<BatchId>,
}

/// Which episodes.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeQuery {
    /// Where.
    pub space: SpaceId,
    /// Those that hold one of these turns; empty: all.
    pub turns: Vec<TurnId>,
    /// As they were known when (default: now).
    pub as_of: AsOf,
    /// Writes that the answer must see, with what is derived from them.
    pub wait_for: Vec<BatchId>,
}

/// Which narratives.
#[derive(Debug, Clone, PartialEq)]
pub struct NarrativeQuery {
    /// Where.
    pub space: SpaceId,
    /// As they were known when (default: now), and what had begun by when (default: all).
    pub as_of: AsOf,
    /// Writes that the answer must see, with what is derived from them.
    pub wait_for: Vec<BatchId>,
}

/// A narrative and what was said of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// The narrative.
    pub narrative: Derivation,
    /// Its fragments, in the order in which they were first bound.
    pub fragments: Page<Derivation>,
}

/// Whose profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileQuery {
    /// Where.
    pub space: SpaceId,
    /// Of whom or what, by name.
    pub about: String,
    /// What held when (default: now), as it was known when (default: now).
    pub as_of: AsOf,
    /// Writes that the answer must see, with what is derived from them.
    pub wait_for: Vec<BatchId>,
}

/// A page of what is known, and what it lacks.
#[derive(Debug, Clone, PartialEq)]
pub struct Told<T> {
    /// What is known.
    pub page: Page<T>,
    /// What was missing, as in [`crate::retriever::Found::degraded`].
    pub degraded: Vec<String>,
}

/// A line of a profile: a fact that holds, and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileLine {
    /// The fact.
    pub fact: Derivation,
    /// Who said so.
    pub evidence: Evidence,
    /// Conflicts that it is in and that are not settled yet.
    pub conflicts: Vec<ConflictId>,
}

/// The words that a fact rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The turn that states it.
    pub turn: TurnId,
    /// Its session.
    pub session: SessionId,
    /// Who said so.
    pub speaker: Speaker,
    /// What they said, word for word.
    pub quote: String,
}

/// What a timeline is of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TimelineOf {
    /// The whole space.
    #[default]
    Space,
    /// A person or a thing, by name.
    About(String),
    /// What a search for these words finds.
    Topic(String),
}

/// Which timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineQuery {
    /// Where.
    pub space: SpaceId,
    /// Of what.
    pub of: TimelineOf,
    /// What begins in this interval.
    pub begins: TimeRange,
    /// As it was known when; absent: now.
    pub known_at: Option<Timestamp>,
    /// Writes that the answer must see, with what is derived from them.
    pub wait_for: Vec<BatchId>,
}

/// Which entities.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityQuery {
    /// Where.
    pub space: SpaceId,
    /// How their names begin; case and articles do not count. Empty: all.
    pub prefix: String,
    /// Writes that the answer must see, with what is derived from them.
    pub wait_for: Vec<BatchId>,
}

/// An entity of a space, by name or by id.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityRequest {
    /// Where.
    pub space: SpaceId,
    /// Which.
    pub entity: String,
    /// The instant whose graph it is; absent: what held at any.
    pub at: Option<Timestamp>,
    /// Writes that the answer must see, with what is derived from them.
    pub wait_for: Vec<BatchId>,
}

/// An entity with all its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedEntity {
    /// Under the name that the others are names of.
    pub entity: Entity,
    /// Its other names, in the order of their keys.
    pub names: Vec<EntityName>,
}

/// Another name of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityName {
    /// The entity under that name.
    pub entity: Entity,
    /// The facts that tell so, and what callers said.
    pub because: Vec<DerivationId>,
}

/// Two entities that are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeRequest {
    /// Where.
    pub space: SpaceId,
    /// The entity, by name or by id: the name that it goes by.
    pub entity: String,
    /// The same under another name.
    pub other: String,
}

/// What a merge did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The entity with its names.
    pub entity: NamedEntity,
    /// The change; absent where they were one already.
    pub change: Option<ChangeId>,
}

/// A name that is of an entity of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitRequest {
    /// Where.
    pub space: SpaceId,
    /// The name, or its id.
    pub entity: String,
}

/// What a split did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The entity, alone.
    pub entity: Entity,
    /// The names that it was one with by a fact or a merge.
    pub parted: Vec<Entity>,
    /// The change; absent where it was alone already.
    pub change: Option<ChangeId>,
}

/// A triplet with its ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Of whom it is said.
    pub subject: Entity,
    /// Of what else.
    pub object: Entity,
    /// What.
    pub triplet: Triplet,
}

/// An entity and what it is connected to.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbourhood {
    /// The entity.
    pub entity: Entity,
    /// What is said of it and others.
    pub edges: Page<Edge>,
}

/// How two entities are connected.
#[derive(Debug, Clone, PartialEq)]
pub struct PathsQuery {
    /// From whom, and as of when.
    pub from: EntityRequest,
    /// To whom, by name or by id.
    pub to: String,
    /// Triplets of a path at most, 1 to 3.
    pub hops: u32,
    /// Paths at most, 1 to 100.
    pub limit: u32,
}

/// Paths between two entities.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Paths {
    /// The shortest first; of equal length those that are surer.
    pub paths: Vec<Vec<Edge>>,
    /// Whether there is so much around the entities, or so many paths, that not all was looked at.
    pub truncated: bool,
}

/// A conflict and the facts in it, as they are now.
#[derive(Debug, Clone, PartialEq)]
pub struct Disagreement {
    /// The conflict.
    pub conflict: Conflict,
    /// The fact that was true first.
    pub older: Option<Derivation>,
    /// The one that speaks against it.
    pub newer: Option<Derivation>,
}

/// A caller's correction of a fact. It outranks what is extracted, now and later.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateRequest {
    /// Where.
    pub space: SpaceId,
    /// Which fact.
    pub id: DerivationId,
    /// The version that the caller has seen; another one is `FAILED_PRECONDITION`. Absent:
    /// whichever is current.
    pub version: Option<u32>,
    /// How it is.
    pub correction: Correction,
}

/// How a fact is to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Correction {
    /// It says something else.
    Says {
        /// The atomic sentence; absent where only the time changes.
        text: Option<String>,
        /// The value alone, where the text does not tell it by itself.
        value: Option<String>,
        /// When it holds; absent: as before.
        valid: Option<TimeRange>,
    },
    /// It was never true.
    Withdrawn,
}

/// The `Knowledge` service.
#[async_trait]
pub trait KnowledgeService: Send + Sync {
    /// Facts, in the order in which they were first derived.
    async fn facts(
        &self,
        context: &Context,
        query: &FactQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault>;

    /// Episodes, in the order in which they were first derived.
    async fn episodes(
        &self,
        context: &Context,
        query: &EpisodeQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault>;

    /// Narratives, in the order in which they began.
    async fn narratives(
        &self,
        context: &Context,
        query: &NarrativeQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault>;

    /// The narrative of this id with a page of its fragments.
    async fn narrative(
        &self,
        context: &Context,
        query: &NarrativeQuery,
        id: DerivationId,
        page: PageRequest,
    ) -> Result<Story, Fault>;

    /// What is true of a person or a thing, by when it began.
    async fn profile(
        &self,
        context: &Context,
        query: &ProfileQuery,
        page: PageRequest,
    ) -> Result<Told<ProfileLine>, Fault>;

    /// Facts and episodes, by when they began.
    async fn timeline(
        &self,
        context: &Context,
        query: &TimelineQuery,
        page: PageRequest,
    ) -> Result<Told<Derivation>, Fault>;

    /// Entities of the semantic graph, in the order of their keys.
    async fn entities(
        &self,
        context: &Context,
        query: &EntityQuery,
        page: PageRequest,
    ) -> Result<Page<Entity>, Fault>;

    /// One entity, and what it is connected to.
    async fn neighbours(
        &self,
        context: &Context,
        request: &EntityRequest,
        page: PageRequest,
    ) -> Result<Neighbourhood, Fault>;

    /// How two entities are connected.
    async fn paths(&self, context: &Context, query: &PathsQuery) -> Result<Paths, Fault>;

    /// An entity with all its names; whenever they hold.
    async fn entity(
        &self,
        context: &Context,
        request: &EntityRequest,
    ) -> Result<NamedEntity, Fault>;

    /// Notes that two names are of one entity.
    async fn merge(&self, context: &Context, request: &MergeRequest) -> Result<Merged, Fault>;

    /// Notes that a name is not of the entity that it was taken for.
    async fn split(&self, context: &Context, request: &SplitRequest) -> Result<Split, Fault>;

    /// Every version of what is derived, oldest first.
    async fn versions(
        &self,
        context: &Context,
        space: &SpaceId,
        id: DerivationId,
    ) -> Result<Vec<Derivation>, Fault>;

    /// Conflicts with one of these statuses (none: with any but [`Status::Possible`]), oldest
    /// first.
    async fn conflicts(
        &self,
        context: &Context,
        space: &SpaceId,
        statuses: &[Status],
        page: PageRequest,
    ) -> Result<Page<Disagreement>, Fault>;

    /// What changed in derived memory, newest first; of one derivation, or of all.
    async fn changes(
        &self,
        context: &Context,
        space: &SpaceId,
        of: Option<DerivationId>,
        page: PageRequest,
    ) -> Result<Page<Recorded>, Fault>;

    /// Undoes a change: what it wrote is as it was before. The answer is the change that does so.
    async fn revert(
        &self,
        context: &Context,
        space: &SpaceId,
        change: ChangeId,
    ) -> Result<Recorded, Fault>;

    /// Corrects a fact. The answer is its new version.
    async fn update(&self, context: &Context, request: UpdateRequest) -> Result<Derivation, Fault>;
}
