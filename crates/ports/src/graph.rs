//! The semantic graph of a space: entities, and the triplets between them. It is derived from the facts in the store of record, and lost without
//! loss: the stage that writes it begins again where it is empty.

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{DerivationId, EntityId, TurnId};
use memfleet_domain::time::Timestamp;

use crate::ledger::{Page, PageToken};
use crate::store::{Result, StoreError};

/// What one write does, in this order. Written twice, it is the same.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GraphWrite {
    /// Turns that were forgotten: what comes from them goes.
    pub forgotten: Vec<TurnId>,
    /// Facts whose triplets go: they were withdrawn, or are written anew below.
    pub replaced: Vec<DerivationId>,
    /// Entities. Of one that is there already the name stays.
    pub entities: Vec<Entity>,
    /// Triplets between these.
    pub triplets: Vec<Triplet>,
}

impl GraphWrite {
    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.forgotten.is_empty() && self.replaced.is_empty() && self.triplets.is_empty()
    }
}

/// Which triplets. An empty list and an absent value do not restrict.
#[derive(Debug, Clone, Copy, Default)]
pub struct TripletQuery<'q> {
    /// One of these is an end of it.
    pub ends: &'q [EntityId],
    /// It comes from one of these facts; not together with `ends`.
    pub facts: &'q [DerivationId],
    /// It says one of these.
    pub predicates: &'q [&'q str],
    /// It holds at this instant.
    pub at: Option<Timestamp>,
}

impl<'q> TripletQuery<'q> {
    /// Whatever is said of these entities.
    pub fn touching(ends: &'q [EntityId]) -> Self {
        Self {
            ends,
            ..Self::default()
        }
    }
}

/// What a token of entities begins with, so that it is told from what no listing gave.
const AFTER: &str = "after ";

/// The token of the page behind an entity.
pub fn entity_token(key: &str) -> PageToken {
    PageToken(format!("{AFTER}{key}"))
}

/// The key that a token of entities is behind; none before the first page.
pub fn entity_place(after: Option<&PageToken>) -> Result<&str> {
    let place = after.map_or(Some(""), |token| token.0.strip_prefix(AFTER));
    place.ok_or(StoreError::PageToken)
}

/// The token of the page behind a triplet.
pub fn triplet_token(fact: DerivationId, object: EntityId) -> PageToken {
    PageToken(format!("{fact}{object}"))
}

/// The fact and the object that a token of triplets is behind; none before the first page.
pub fn triplet_place(after: Option<&PageToken>) -> Result<Option<(DerivationId, EntityId)>> {
    let place = |PageToken(text): &PageToken| {
        let (fact, object) = text.split_at_checked(text.len() / 2)?;
        Some((fact.parse().ok()?, object.parse().ok()?))
    };
    let place = after.map(|token| place(token).ok_or(StoreError::PageToken));
    place.transpose()
}

/// Where the graph is kept. An entity without a triplet is gone.
#[async_trait]
pub trait Graph: Send + Sync {
    /// Does all of it, or nothing. In a space that does not exist it is nothing.
    async fn write(&self, scope: &Scope, write: GraphWrite) -> Result<()>;

    /// Removes all that it holds of a space, whether that exists or not. It need not be one transaction: who breaks off begins again.
    async fn clear(&self, scope: &Scope) -> Result<()>;

    /// Whether it answers.
    async fn check(&self) -> Result<()>;

    /// Entities whose key begins so, in the order of their keys.
    async fn entities(
        &self,
        scope: &Scope,
        prefix: &str,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Entity>>;

    /// Those of these entities that are there, in any order.
    async fn named(&self, scope: &Scope, ids: &[EntityId]) -> Result<Vec<Entity>>;

    /// The triplets, in an order that stays.
    async fn triplets(
        &self,
        scope: &Scope,
        query: TripletQuery<'_>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Triplet>>;
}
