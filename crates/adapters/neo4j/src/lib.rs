//! The semantic graph in Neo4j 5. Every node and relationship carries tenant and space, and every query names both; what comes from callers
//! is a parameter, never a part of a query. The store of record stays the truth: the graph may be lost, and is caught up with.
//!
//! `connection` has the deadline around the driver's own retries, `schema` makes constraints and indexes, `read` and `write` are the port.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod connection;
mod read;
mod schema;
mod write;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::EntityId;
use memfleet_ports::graph::{Graph, GraphWrite, TripletQuery, entity_place, triplet_place};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;

pub use connection::{Neo4jGraph, Options};

#[async_trait]
impl Graph for Neo4jGraph {
    async fn write(&self, scope: &Scope, write: GraphWrite) -> Result<()> {
        self.within("a write", write::apply(self, scope, &write))
            .await
    }

    async fn clear(&self, scope: &Scope) -> Result<()> {
        // As many triplets as are removed together have a deadline of their own, not all that there are.
        while self.within("a removal", write::clear(self, scope)).await? {}
        Ok(())
    }

    async fn check(&self) -> Result<()> {
        self.within("the check", read::check(self)).await
    }

    async fn entities(
        &self,
        scope: &Scope,
        prefix: &str,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Entity>> {
        let after = entity_place(after)?;
        let listing = read::entities(self, scope, prefix, limit, after);
        self.within("a listing", listing).await
    }

    async fn named(&self, scope: &Scope, ids: &[EntityId]) -> Result<Vec<Entity>> {
        self.within("entities", read::named(self, scope, ids)).await
    }

    async fn triplets(
        &self,
        scope: &Scope,
        query: TripletQuery<'_>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Triplet>> {
        let after = triplet_place(after)?;
        let triplets = read::triplets(self, scope, query, limit, after);
        self.within("triplets", triplets).await
    }
}
