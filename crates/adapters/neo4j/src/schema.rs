//! What makes writes idempotent and look-ups short. Made by whoever comes first; made twice it is the same.

use neo4rs::{Error, Graph, query};

use crate::connection::Outcome;

/// Constraints and indexes. Those of Neo4j Community are enough.
const SCHEMA: [&str; 4] = [
    "CREATE CONSTRAINT memfleet_entity IF NOT EXISTS FOR (e:MemfleetEntity) REQUIRE (e.tenant, e.space, e.id) IS UNIQUE",
    "CREATE INDEX memfleet_entity_key IF NOT EXISTS FOR (e:MemfleetEntity) ON (e.tenant, e.space, e.key)",
    "CREATE INDEX memfleet_fact IF NOT EXISTS FOR ()-[s:MEMFLEET_SAYS]-() ON (s.tenant, s.space, s.fact)",
    // What comes from a turn is looked for among all of a space: a list has no index.
    "CREATE INDEX memfleet_space IF NOT EXISTS FOR ()-[s:MEMFLEET_SAYS]-() ON (s.tenant, s.space)",
];

pub(crate) async fn prepare(graph: &Graph) -> Outcome<()> {
    for statement in SCHEMA {
        match graph.run(query(statement)).await {
            // Two that come at once both see that it is not there.
            Err(Error::Neo4j(error)) if error.code().ends_with("AlreadyExists") => {}
            made => made.map(drop)?,
        }
    }
    tracing::info!("the graph's constraints and indexes are there");
    Ok(())
}
