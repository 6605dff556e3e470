//! Short paths: what touches both ends and, for three hops, what touches the neighbours of the first is read, at most so much of
//! each, and searched in memory (`search`).

mod search;

use std::collections::BTreeSet;

use memfleet_domain::graph::Triplet;
use memfleet_domain::ids::EntityId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::graph::{Graph, TripletQuery};
use memfleet_ports::knowledge_api::PathsQuery;

use search::Surroundings;

/// Triplets that are read of an end, and of all neighbours together.
const TRIPLETS: u32 = 2_000;

/// Paths as the graph has them, the best first.
#[derive(Default)]
pub(super) struct Found {
    pub(super) paths: Vec<Vec<Triplet>>,
    /// Whether something was not looked at.
    pub(super) truncated: bool,
}

/// The paths between two entities, each under all its names.
pub(super) async fn between(
    graph: &dyn Graph,
    scope: &Scope,
    (from, to): (Vec<EntityId>, Vec<EntityId>),
    query: &PathsQuery,
) -> Result<Found, Fault> {
    if from.iter().any(|name| to.contains(name)) {
        return Ok(Found::default());
    }
    let read = read(graph, scope, (&from, &to), query).await?;
    let hops = query.hops;
    // Around hubs it is a million steps.
    tokio::task::spawn_blocking(move || read.paths(&from, &to, hops))
        .await
        .map_err(|error| Fault::internal(format!("the search for paths stopped: {error}")))
}

async fn read(
    graph: &dyn Graph,
    scope: &Scope,
    (from, to): (&[EntityId], &[EntityId]),
    query: &PathsQuery,
) -> Result<Surroundings, Fault> {
    let mut read = Surroundings::default();
    let around = async |ends: &[EntityId]| {
        let query = TripletQuery {
            at: query.from.at,
            ..TripletQuery::touching(ends)
        };
        graph.triplets(scope, query, TRIPLETS, None).await
    };
    let first = read.take(around(from).await?);
    if query.hops > 1 {
        read.take(around(to).await?);
    }
    if query.hops > 2 {
        let ends = first.iter().flat_map(|it| [it.subject, it.object]);
        let next: BTreeSet<EntityId> = ends.filter(|end| !from.contains(end)).collect();
        let next: Vec<EntityId> = next.into_iter().collect();
        // No condition on ends would be the whole graph.
        if !next.is_empty() {
            read.take(around(&next).await?);
        }
    }
    Ok(read)
}
