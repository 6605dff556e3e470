//! The suite of every graph. All cases share a server: each has tenants of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{EntityId, TenantId};
use memfleet_neo4j::Neo4jGraph;
use memfleet_ports::graph::{Graph, GraphWrite, TripletQuery};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use memfleet_servers::NEO4J_URL;

use crate::options;

/// A graph whose tenants are nobody else's.
struct Own {
    graph: Neo4jGraph,
    number: u64,
}

async fn fresh() -> (Own, ()) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let url = std::env::var(NEO4J_URL).expect("`cargo xtask test` starts the servers");
    let own = Own {
        graph: Neo4jGraph::new(&options(&url)).unwrap(),
        number: NUMBER.fetch_add(1, Ordering::SeqCst),
    };
    (own, ())
}

impl Own {
    fn of(&self, scope: &Scope) -> Scope {
        let name = format!("{} {} {}", scope.tenant, std::process::id(), self.number);
        Scope {
            tenant: TenantId::new(name).unwrap(),
            ..scope.clone()
        }
    }
}

#[async_trait]
impl Graph for Own {
    async fn write(&self, scope: &Scope, write: GraphWrite) -> Result<()> {
        self.graph.write(&self.of(scope), write).await
    }

    async fn clear(&self, scope: &Scope) -> Result<()> {
        self.graph.clear(&self.of(scope)).await
    }

    async fn check(&self) -> Result<()> {
        self.graph.check().await
    }

    async fn entities(
        &self,
        scope: &Scope,
        prefix: &str,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Entity>> {
        let scope = self.of(scope);
        self.graph.entities(&scope, prefix, limit, after).await
    }

    async fn named(&self, scope: &Scope, ids: &[EntityId]) -> Result<Vec<Entity>> {
        self.graph.named(&self.of(scope), ids).await
    }

    async fn triplets(
        &self,
        scope: &Scope,
        query: TripletQuery<'_>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Triplet>> {
        let scope = self.of(scope);
        self.graph.triplets(&scope, query, limit, after).await
    }
}

memfleet_ports::graph_conformance!(fresh);
