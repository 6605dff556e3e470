//! The semantic graph as callers read it: entities, what they are connected to, and how two of them are.

mod merging;
mod names;
mod paths;
mod verifying;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{DerivationId, EntityId, SpaceId};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::graph::{Graph, TripletQuery};
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_ports::knowledge_api::{
    Edge, EntityQuery, EntityRequest, NamedEntity, Neighbourhood, Paths, PathsQuery,
};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use crate::Gateway;
use crate::knowledge::key;

/// What is written passes these before it is in the graph.
const RELATED: [Stage; 4] = [Stage::Derive, Stage::Judge, Stage::Settle, Stage::Relate];

/// Facts that are looked up together.
const FACTS: usize = 1_000;

/// Paths whose facts are looked up together, until so many stand as are asked for.
const CANDIDATES: usize = 300;

impl Gateway {
    pub(crate) async fn listed(
        &self,
        context: &Context,
        query: &EntityQuery,
        page: PageRequest,
    ) -> Result<Page<Entity>, Fault> {
        let graph = self.graph()?;
        let waiting = self.derived(context, &query.space, &query.wait_for, &RELATED);
        let scope = waiting.await?;
        let prefix = key(&query.prefix);
        let entities = graph.entities(&scope, &prefix, page.limit, page.after.as_ref());
        Ok(entities.await?)
    }

    pub(crate) async fn neighbourhood(
        &self,
        context: &Context,
        request: &EntityRequest,
        page: PageRequest,
    ) -> Result<Neighbourhood, Fault> {
        let graph = self.graph()?;
        let waiting = self.derived(context, &request.space, &request.wait_for, &RELATED);
        let scope = waiting.await?;
        let entity = entity(&*graph, &scope, &request.entity).await?;
        let names = self.names(&*graph, &scope, entity.id).await?;
        let (limit, after) = (page.limit, page.after.as_ref());
        let all = names.all(entity.id);
        let query = TripletQuery {
            at: request.at,
            ..TripletQuery::touching(&all)
        };
        let triplets = graph.triplets(&scope, query, limit, after).await?;
        let is_bare = triplets.next.is_none() && after.is_none() && request.at.is_none();
        let standing = self.still_stated(&scope, triplets.items).await?;
        if is_bare && standing.is_empty() {
            return Err(missing(&request.entity));
        }
        Ok(Neighbourhood {
            entity,
            edges: Page {
                items: edges(&*graph, &scope, standing).await?,
                next: triplets.next,
            },
        })
    }

    pub(crate) async fn connections(
        &self,
        context: &Context,
        query: &PathsQuery,
    ) -> Result<Paths, Fault> {
        let graph = self.graph()?;
        let space: &SpaceId = &query.from.space;
        let waiting = self.derived(context, space, &query.from.wait_for, &RELATED);
        let scope = waiting.await?;
        let from = entity(&*graph, &scope, &query.from.entity).await?;
        let to = entity(&*graph, &scope, &query.to).await?;
        let from = self.names(&*graph, &scope, from.id).await?.all(from.id);
        let to = self.names(&*graph, &scope, to.id).await?.all(to.id);
        let found = paths::between(&*graph, &scope, (from, to), query).await?;
        let (limit, mut paths) = (query.limit as usize, Vec::new());
        for candidates in found.paths.chunks(CANDIDATES) {
            let standing = self.standing_paths(&scope, candidates).await?;
            for path in standing.into_iter().take(limit - paths.len()) {
                let connected = edges(&*graph, &scope, path.clone()).await?;
                // An end that was forgotten meanwhile leaves no path.
                paths.extend((connected.len() == path.len()).then_some(connected));
            }
            if paths.len() == limit {
                break;
            }
        }
        Ok(Paths {
            paths,
            truncated: found.truncated,
        })
    }

    /// Those of these paths whose facts all stand.
    async fn standing_paths<'p>(
        &self,
        scope: &Scope,
        paths: &'p [Vec<Triplet>],
    ) -> Result<Vec<&'p Vec<Triplet>>, Fault> {
        let triplets = paths.iter().flatten().cloned().collect();
        let standing = self.still_stated(scope, triplets).await?;
        let standing: HashSet<DerivationId> = standing.iter().map(|it| it.fact).collect();
        let stands = |path: &&Vec<Triplet>| path.iter().all(|it| standing.contains(&it.fact));
        Ok(paths.iter().filter(stands).collect())
    }

    pub(crate) async fn named(
        &self,
        context: &Context,
        request: &EntityRequest,
    ) -> Result<NamedEntity, Fault> {
        let graph = self.graph()?;
        let waiting = self.derived(context, &request.space, &request.wait_for, &RELATED);
        let scope = waiting.await?;
        let entity = entity(&*graph, &scope, &request.entity).await?;
        let names = self.names(&*graph, &scope, entity.id).await?;
        names.resolved(&*graph, &scope, entity.id).await
    }

    /// The keys that somebody's facts are told under: that of a name, and of the others that it has. While the graph is away these are not known,
    /// which `degraded` is told.
    pub(crate) async fn keys_of(
        &self,
        scope: &Scope,
        name: &str,
        degraded: &mut Vec<String>,
    ) -> Vec<String> {
        let alone = key(name);
        let Some(graph) = &self.graph else {
            return vec![alone];
        };
        let of = EntityId::of_key(&alone);
        let named = async {
            let names = self.names(&**graph, scope, of).await?;
            let named = graph.named(scope, &names.all(of)).await?;
            Ok::<_, Fault>(named.into_iter().map(|entity| entity.key))
        };
        let named = tokio::time::timeout(self.options.names_within, named);
        let named = named.await.unwrap_or_else(|_| {
            let waited = self.options.names_within;
            let cause = format!("the graph gave no answer within {waited:?}");
            Err(Fault::new(FaultKind::Unavailable, "UNAVAILABLE", cause))
        });
        match named {
            Ok(keys) => keys
                .chain([alone.clone()])
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            Err(fault) => {
                tracing::warn!(%fault, "other names are left out");
                degraded.push(format!("graph: {fault}; other names are left out"));
                vec![alone]
            }
        }
    }

    /// Those of these triplets whose facts the store of record has: a graph in another server hears of a forget a little later.
    async fn still_stated(
        &self,
        scope: &Scope,
        triplets: Vec<Triplet>,
    ) -> Result<Vec<Triplet>, Fault> {
        let mut ids: Vec<DerivationId> = triplets.iter().map(|it| it.fact).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut standing = HashSet::new();
        for ids in ids.chunks(FACTS) {
            let question = Question {
                ids: ids.to_vec(),
                ..Question::default()
            };
            let facts = self.knowledge.all_derivations(scope, &question).await?;
            standing.extend(facts.into_iter().map(|fact| fact.id));
        }
        let stands = |triplet: &Triplet| standing.contains(&triplet.fact);
        Ok(triplets.into_iter().filter(stands).collect())
    }

    fn graph(&self) -> Result<Arc<dyn Graph>, Fault> {
        self.graph.clone().ok_or_else(|| {
            Fault::new(
                FaultKind::FailedPrecondition,
                "GRAPH_MISSING",
                "no semantic graph is kept here: a fleet needs `graph.url`, a Neo4j",
            )
        })
    }
}

/// The entity of a name or an id.
async fn entity(graph: &dyn Graph, scope: &Scope, text: &str) -> Result<Entity, Fault> {
    let named = EntityId::of_key(&key(text));
    let ids = [text.parse().unwrap_or(named)];
    let found = graph.named(scope, &ids).await?.pop();
    found.ok_or_else(|| missing(text))
}

fn missing(text: &str) -> Fault {
    Fault::not_found(format_args!("entity `{text}`"))
}

/// Triplets with the names of their ends. What was forgotten meanwhile is left out.
async fn edges(
    graph: &dyn Graph,
    scope: &Scope,
    triplets: Vec<Triplet>,
) -> Result<Vec<Edge>, Fault> {
    let ends = triplets.iter().flat_map(|it| [it.subject, it.object]);
    let mut ids: Vec<EntityId> = ends.collect();
    ids.sort_unstable();
    ids.dedup();
    let named = graph.named(scope, &ids).await?;
    let named: HashMap<EntityId, Entity> = named.into_iter().map(|it| (it.id, it)).collect();
    let edges = triplets.into_iter().filter_map(|triplet| {
        let end = |id| named.get(&id).cloned();
        Some(Edge {
            subject: end(triplet.subject)?,
            object: end(triplet.object)?,
            triplet,
        })
    });
    Ok(edges.collect())
}
