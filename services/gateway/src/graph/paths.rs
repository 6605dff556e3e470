//! Short paths: what touches both ends and, for three hops, what touches the neighbours of the first is read, at most so much of
//! each, and searched in memory.

use std::collections::HashMap;

use memfleet_domain::graph::Triplet;
use memfleet_domain::ids::EntityId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::graph::Graph;
use memfleet_ports::knowledge_api::PathsQuery;

/// Triplets that are read of an end, and of all neighbours together.
const TRIPLETS: u32 = 2_000;

/// Paths that are compared before the best are taken …
const COMPARED: usize = 10_000;

/// … and how many of these may stand or fall with their facts.
const CANDIDATES: usize = 300;

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

/// The paths between two entities.
pub(super) async fn between(
    graph: &dyn Graph,
    scope: &Scope,
    (from, to): (EntityId, EntityId),
    query: &PathsQuery,
) -> Result<Found, Fault> {
    if from == to {
        return Ok(Found::default());
    }
    let mut read = Surroundings::new();
    let at = query.from.at;
    let first = read.take(graph.touching(scope, &[from], at, TRIPLETS, None).await?);
    if query.hops > 1 {
        read.take(graph.touching(scope, &[to], at, TRIPLETS, None).await?);
    }
    if query.hops > 2 {
        let mut next: Vec<EntityId> = first.iter().map(|it| it.other(from)).collect();
        next.sort_unstable();
        next.dedup();
        read.take(graph.touching(scope, &next, at, TRIPLETS, None).await?);
    }
    let mut found = Vec::new();
    read.search(
        to,
        query.hops as usize,
        &mut vec![from],
        &mut Vec::new(),
        &mut found,
    );
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

    /// Goes on from the last of `visited`, and to nobody twice.
    fn search(
        &self,
        to: EntityId,
        hops: usize,
        visited: &mut Vec<EntityId>,
        path: &mut Vec<usize>,
        found: &mut Vec<Vec<usize>>,
    ) {
        let Some(last) = visited.last().copied() else {
            return;
        };
        for place in self.around.get(&last).into_iter().flatten() {
            let next = self.triplets[*place].other(last);
            if visited.contains(&next) || found.len() >= COMPARED {
                continue;
            }
            path.push(*place);
            if next == to {
                found.push(path.clone());
            } else if path.len() < hops {
                visited.push(next);
                self.search(to, hops, visited, path, found);
                visited.pop();
            }
            path.pop();
        }
    }
}
