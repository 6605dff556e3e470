//! The graph follows the facts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use memfleet_agents::relations::told;
use memfleet_consolidator::{LocalConsolidator, Relater};
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::embedding::{EmbeddingSpace, TokenVectors};
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{EntityId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::knowledge::{closing, deriving, fact};
use memfleet_ports::conformance::samples::{batch, home, indexed, instant, turn};
use memfleet_ports::feed::{Changes, IndexFeed, IndexedTurn};
use memfleet_ports::graph::{Graph, GraphWrite, TripletQuery};
use memfleet_ports::knowledge::{Applied, Knowledge, Rewrite, Stage, Work};
use memfleet_ports::ledger::{Ledger, Page, PageToken};
use memfleet_ports::store::{Result, StoreError};
use memfleet_sqlite::SqliteStore;
use memfleet_workers::Agent;

use crate::bench::Bench;

/// A graph that can be away.
struct Away {
    graph: Arc<SqliteStore>,
    is_away: AtomicBool,
}

#[async_trait]
impl Graph for Away {
    async fn write(&self, scope: &Scope, write: GraphWrite) -> Result<()> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("away".into()));
        }
        Graph::write(&*self.graph, scope, write).await
    }

    async fn clear(&self, scope: &Scope) -> Result<()> {
        self.graph.clear(scope).await
    }

    async fn check(&self) -> Result<()> {
        Ok(())
    }

    async fn entities(
        &self,
        scope: &Scope,
        prefix: &str,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Entity>> {
        self.graph.entities(scope, prefix, limit, after).await
    }

    async fn named(&self, scope: &Scope, ids: &[EntityId]) -> Result<Vec<Entity>> {
        self.graph.named(scope, ids).await
    }

    async fn triplets(
        &self,
        scope: &Scope,
        query: TripletQuery<'_>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Triplet>> {
        self.graph.triplets(scope, query, limit, after).await
    }
}

/// A feed whose pages are small, however large they were asked for.
struct SmallPages {
    feed: Arc<SqliteStore>,
    limit: u32,
}

#[async_trait]
impl IndexFeed for SmallPages {
    async fn head(&self, scope: &Scope) -> Result<u64> {
        self.feed.head(scope).await
    }

    async fn changes_in(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        after: u64,
        limit: u32,
    ) -> Result<Changes> {
        let limit = limit.min(self.limit);
        self.feed.changes_in(scope, embedding, after, limit).await
    }

    async fn indexed(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<IndexedTurn>> {
        self.feed.indexed(scope, ids).await
    }

    async fn token_vectors(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        passages: &[u32],
    ) -> Result<Vec<Option<Arc<TokenVectors>>>> {
        self.feed.token_vectors(scope, embedding, passages).await
    }

    async fn with_metadata(
        &self,
        scope: &Scope,
        labels: &[(String, String)],
    ) -> Result<Vec<TurnId>> {
        self.feed.with_metadata(scope, labels).await
    }
}

/// Ada lives in Rome from second 10 on, and in Oslo from second 20 on.
struct Moved {
    bench: Bench,
    graph: Arc<Away>,
    relater: Relater,
    turns: [AcceptedTurn; 2],
    facts: [Derivation; 2],
}

impl Moved {
    async fn new() -> Self {
        let bench = Bench::new().await;
        let turns = [turn("1", "I live in Rome."), turn("2", "I moved to Oslo.")];
        let told = batch("told", turns.to_vec());
        bench.store.commit(vec![indexed(told, 1)]).await.unwrap();
        let facts = [
            fact(&turns[0], "Ada", "Rome", instant(10)),
            fact(&turns[1], "Ada", "Oslo", instant(20)),
        ];
        let graph = Arc::new(Away {
            graph: bench.store.clone(),
            is_away: AtomicBool::new(false),
        });
        let relater = Relater {
            consolidator: Arc::new(bench.consolidator.clone()),
            graph: graph.clone(),
        };
        let moved = Self {
            bench,
            graph,
            relater,
            turns,
            facts,
        };
        for fact in &moved.facts {
            moved.make(deriving(&[fact])).await;
        }
        moved
    }

    async fn make(&self, rewrite: Rewrite) {
        let work = Work {
            rewrites: vec![rewrite],
            ..Work::default()
        };
        let applied = self.bench.store.apply(&home(), work).await.unwrap();
        assert_ne!(applied, Applied::Stale);
    }

    /// Brings the graph up to date; the triplets of Ada then, with when they end.
    async fn relate(&self) -> Vec<(String, Option<Timestamp>)> {
        self.bench.sweep(Stage::Relate, &self.relater).await;
        self.told().await
    }

    /// Triplets of the graph, and those that the facts of now would give.
    async fn compared(&self) -> [Vec<String>; 2] {
        let page = self
            .graph
            .triplets(&home(), TripletQuery::default(), 1_000, None)
            .await;
        let facts = self.bench.of(Kind::Fact).await;
        [page.unwrap().items, told(&facts).1].map(|triplets| {
            let mut shown: Vec<_> = triplets.iter().map(|it| format!("{it:?}")).collect();
            shown.sort();
            shown
        })
    }

    async fn told(&self) -> Vec<(String, Option<Timestamp>)> {
        let ada = [EntityId::of_key("ada")];
        let query = TripletQuery::touching(&ada);
        let page = self.graph.triplets(&home(), query, 9, None).await;
        let triplets = page.unwrap().items;
        let objects: Vec<EntityId> = triplets.iter().map(|it| it.object).collect();
        let named = self.graph.named(&home(), &objects).await.unwrap();
        let mut told: Vec<_> = triplets
            .iter()
            .map(|it| {
                let object = named.iter().find(|named| named.id == it.object).unwrap();
                (object.name.clone(), it.valid.end)
            })
            .collect();
        told.sort();
        told
    }
}

fn open(name: &str) -> (String, Option<Timestamp>) {
    (name.to_owned(), None)
}

#[tokio::test]
async fn facts_are_triplets_and_a_refreshed_fact_refreshes_its_own() {
    let moved = Moved::new().await;
    assert_eq!(moved.relate().await, [open("Oslo"), open("Rome")]);
    let [rome, oslo] = &moved.facts;
    moved.make(closing(rome, oslo, 30)).await;
    let ended = ("Rome".to_owned(), Some(instant(20)));
    assert_eq!(moved.relate().await, [open("Oslo"), ended]);
}

#[tokio::test]
async fn what_is_withdrawn_is_no_triplet() {
    let moved = Moved::new().await;
    moved.relate().await;
    let [rome, oslo] = &moved.facts;
    let mut rewrite = closing(rome, oslo, 30);
    let revision = &mut rewrite.revisions[0];
    revision.derivation = revision.derivation.clone().withdrawn();
    moved.make(rewrite).await;
    assert_eq!(moved.relate().await, [open("Oslo")]);
}

#[tokio::test]
async fn forgetting_a_turn_reaches_its_triplets_at_once() {
    let moved = Moved::new().await;
    moved.relate().await;
    moved.bench.forget(moved.turns[1].id).await;
    // The file holds both: they go together.
    assert_eq!(moved.told().await, [open("Rome")]);
    assert_eq!(moved.relate().await, [open("Rome")]);
}

#[tokio::test]
async fn a_graph_that_was_away_is_caught_up_with() {
    let moved = Moved::new().await;
    moved.graph.is_away.store(true, Ordering::SeqCst);
    let refused = moved.relater.work(&home(), 0).await;
    assert!(refused.is_err());
    let position = moved.bench.store.position(&home(), Stage::Relate).await;
    assert_eq!(position.unwrap().unwrap().reached, 0);
    moved.graph.is_away.store(false, Ordering::SeqCst);
    assert_eq!(moved.relate().await, [open("Oslo"), open("Rome")]);
}

#[tokio::test]
async fn a_round_that_is_done_twice_comes_to_the_same() {
    let moved = Moved::new().await;
    let before = moved.relate().await;
    moved.relater.work(&home(), 0).await.unwrap();
    assert_eq!(moved.told().await, before);
}

#[tokio::test]
async fn in_pages_of_any_size_the_graph_is_as_the_facts_are_after_forgets_and_reverts() {
    for seed in 0..6_u64 {
        let mut moved = Moved::new().await;
        let mut state = seed;
        // A linear congruential generator: runs are the same each time.
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut turns = moved.turns.to_vec();
        let mut facts = moved.facts.to_vec();
        for step in 0..40_u64 {
            let store = moved.bench.store.clone();
            let limit = 1 + next(3) as u32;
            let consolidator = LocalConsolidator {
                feed: Arc::new(SmallPages { feed: store, limit }),
                ..moved.bench.consolidator.clone()
            };
            moved.relater.consolidator = Arc::new(consolidator);
            match next(6) {
                0..3 => {
                    let said = turn(&format!("said {step}"), "I moved.");
                    let told = batch(&format!("told {step}"), vec![said.clone()]);
                    moved
                        .bench
                        .store
                        .commit(vec![indexed(told, 10 + step)])
                        .await
                        .unwrap();
                    let newer = fact(
                        &said,
                        "Ada",
                        &format!("Place {step}"),
                        instant(50 + step as i64),
                    );
                    moved.make(deriving(&[&newer])).await;
                    // It ends several that hold.
                    let current = moved.bench.of(Kind::Fact).await;
                    let open = current
                        .iter()
                        .filter(|it| it.valid.end.is_none() && it.id != newer.id);
                    for older in open.take(next(4)) {
                        moved.make(closing(older, &newer, 60 + step as i64)).await;
                    }
                    turns.push(said);
                    facts.push(newer);
                }
                3 => {
                    let gone = turns.swap_remove(next(turns.len()));
                    moved.bench.forget(gone.id).await;
                    if turns.is_empty() {
                        break;
                    }
                }
                4 => {
                    let current = moved.bench.of(Kind::Fact).await;
                    let ended = current
                        .iter()
                        .find(|it| it.version > 1 && it.valid.end.is_some());
                    if let Some(ended) = ended {
                        moved.bench.undo(ended).await;
                    }
                }
                _ => {
                    moved.bench.store.begin_rebuild(&home()).await.unwrap();
                }
            }
            if next(3) == 0 {
                moved.relate().await;
                let [graph, expected] = moved.compared().await;
                assert_eq!(graph, expected, "seed {seed}, step {step}");
            }
        }
        moved.relate().await;
        let [graph, expected] = moved.compared().await;
        assert_eq!(graph, expected, "seed {seed}");
    }
}
