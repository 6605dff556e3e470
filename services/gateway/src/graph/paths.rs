//! Short paths: what touches both ends and, for three hops, what touches the neighbours of the first is read, at most so much of
//! each, and searched in memory.

use std::collections::{BTreeSet, HashMap};

use memfleet_domain::graph::Triplet;
use memfleet_domain::ids::EntityId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::graph::{Graph, TripletQuery};
use memfleet_ports::knowledge_api::PathsQuery;

/// Triplets that are read of an end, and of all neighbours together.
const TRIPLETS: u32 = 2_000;

/// Paths that are compared before the best are taken …
const COMPARED: usize = 10_000;

/// … and how many of these may stand or fall with their facts.
const CANDIDATES: usize = 300;

/// A path on its way.
struct Search<'q> {
    to: &'q [EntityId],
    hops: usize,
    visited: Vec<EntityId>,
    path: Vec<usize>,
}

/// The triplets around two entities.
struct Surroundings {
    triplets: Vec<Triplet>,
    around: HashMap<EntityId, Vec<usize>>,
    truncated: bool,
}

/// Paths as the graph has them, the best first.
#[derive(Default)]
pub(super) struct Found {
    pub(super) paths: Vec<Vec<Triplet>>,
    pub(super) truncated: bool,
}

/// The paths between two entities, each under all its names.
pub(super) async fn between(
    graph: &dyn Graph,
    scope: &Scope,
    (from, to): (&[EntityId], &[EntityId]),
    query: &PathsQuery,
) -> Result<Found, Fault> {
    if from.iter().any(|name| to.contains(name)) {
        return Ok(Found::default());
    }
    let mut read = Surroundings::new();
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
    let mut found = Vec::new();
    for name in from {
        let mut search = Search {
            to,
            hops: query.hops as usize,
            visited: from.to_vec(),
            path: Vec::new(),
        };
        read.search(*name, &mut search, &mut found);
    }
    let doubt = |path: &[usize]| -> f32 {
        let doubts = path
            .iter()
            .map(|place| 1.0 - read.triplets[*place].confidence);
        doubts.sum()
    };
    found.sort_by(|one, other| {
        let by_length = one.len().cmp(&other.len());
        by_length.then(doubt(one).total_cmp(&doubt(other)))
    });
    let triplets = |path: Vec<usize>| {
        let triplets = path.iter().map(|place| read.triplets[*place].clone());
        triplets.collect()
    };
    Ok(Found {
        paths: found.into_iter().take(CANDIDATES).map(triplets).collect(),
        truncated: read.truncated,
    })
}

impl Surroundings {
    fn new() -> Self {
        Self {
            triplets: Vec::new(),
            around: HashMap::new(),
            truncated: false,
        }
    }

    /// Takes what is not known yet; the answer is all of it.
    fn take(&mut self, page: memfleet_ports::ledger::Page<Triplet>) -> Vec<Triplet> {
        self.truncated |= page.next.is_some();
        for triplet in &page.items {
            let is_known = self.around.get(&triplet.subject).is_some_and(|known| {
                let mut known = known.iter().map(|place| &self.triplets[*place]);
                known.any(|it| it.fact == triplet.fact && it.object == triplet.object)
            });
            if !is_known {
                let place = self.triplets.len();
                for end in [triplet.subject, triplet.object] {
                    self.around.entry(end).or_default().push(place);
                }
                self.triplets.push(triplet.clone());
            }
        }
        page.items
    }

    /// Goes on from an entity, and to nobody twice.
    fn search(&self, from: EntityId, on: &mut Search<'_>, found: &mut Vec<Vec<usize>>) {
        for place in self.around.get(&from).into_iter().flatten() {
            let next = self.triplets[*place].other(from);
            if on.visited.contains(&next) || found.len() >= COMPARED {
                continue;
            }
            on.path.push(*place);
            if on.to.contains(&next) {
                found.push(on.path.clone());
            } else if on.path.len() < on.hops {
                on.visited.push(next);
                self.search(next, on, found);
                on.visited.pop();
            }
            on.path.pop();
        }
    }
}
