//! A forget reaches what still waits in a queue: the ledger buries it, whoever delivers it later.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::ingestion::{Batch, TurnState};
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::{
    batch, batch_in, home, indexed, scope, speaker, turn, turn_in,
};
use memfleet_ports::erasure::{Erased, Erasure};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{Committed, Ledger};
use memfleet_ports::queue::Accepted;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::{Matching, Parted, Undelivered, Unreadable};
use memfleet_postgres::{PostgresErasure, PostgresStore};

use crate::database::Database;

/// Batches that wait, with their positions.
#[derive(Debug, Default)]
struct Waiting(Mutex<Vec<(u64, Batch)>>);

impl Waiting {
    fn accept(&self, acceptance: u64, batch: &Batch) {
        let mut batches = self.0.lock().expect("nobody panicked");
        batches.push((acceptance, batch.clone()));
    }

    fn turns(&self) -> usize {
        let batches = self.0.lock().expect("nobody panicked");
        batches.iter().map(|(_, batch)| batch.turns.len()).sum()
    }
}

#[async_trait]
impl Undelivered for Waiting {
    async fn last_acceptance(&self) -> Result<u64> {
        let batches = self.0.lock().expect("nobody panicked");
        Ok(batches.iter().map(|(last, _)| *last).max().unwrap_or(0))
    }

    async fn matching(&self, _: &Scope, filter: &TurnFilter, _: Unreadable) -> Result<Matching> {
        let batches = self.0.lock().expect("nobody panicked");
        let parted = batches
            .iter()
            .filter_map(|(acceptance, batch)| Parted::of(batch, *acceptance, filter));
        Ok(Matching {
            queued: parted.collect(),
            letters: Vec::new(),
        })
    }

    async fn withdraw(&self, _: &Scope, matching: &Matching) -> Result<()> {
        let mut batches = self.0.lock().expect("nobody panicked");
        for (acceptance, batch) in batches.iter_mut() {
            let parted = matching
                .all()
                .filter(|parted| parted.acceptance == *acceptance);
            for parted in parted {
                batch.turns.retain(|turn| !parted.gone.contains(&turn.id));
            }
        }
        Ok(())
    }

    async fn with_letters(&self, _: &[Scope]) -> Result<HashSet<Scope>> {
        Ok(HashSet::new())
    }
}

async fn fresh() -> (Database, PostgresStore, Arc<Waiting>, PostgresErasure) {
    let database = Database::migrated().await;
    let store = database.store().await;
    let queue = Arc::new(Waiting::default());
    let erasure = PostgresErasure::new(store.clone(), Arc::clone(&queue) as _);
    (database, store, queue, erasure)
}

fn by(name: &str, external: &str) -> AcceptedTurn {
    AcceptedTurn {
        speaker: speaker(name),
        ..turn(external, &format!("{name} said {external}"))
    }
}

fn of(name: &str) -> TurnFilter {
    TurnFilter {
        speakers: vec![speaker(name)],
        ..TurnFilter::default()
    }
}

async fn deliver(store: &PostgresStore, acceptance: u64, batch: &Batch) -> Committed {
    let committed = store.commit(vec![indexed(batch.clone(), acceptance)]).await;
    committed.expect("commit").remove(0)
}

fn states(committed: &Committed) -> Vec<TurnState> {
    committed.turns.iter().map(|turn| turn.state).collect()
}

#[tokio::test]
async fn a_delivery_under_way_does_not_bring_back_what_was_forgotten() {
    let (_database, store, queue, erasure) = fresh().await;
    let mixed = batch("mixed", vec![by("Ada", "1"), by("Ben", "2")]);
    let only = batch("only", vec![by("Ben", "3")]);
    queue.accept(1, &mixed);
    queue.accept(2, &only);
    let planned = erasure.plan(&home(), &of("Ben")).await;
    let expected = Erased {
        undelivered: 2,
        ..Erased::default()
    };
    assert_eq!(planned.as_ref(), Ok(&expected));
    assert_eq!(erasure.remove(&home(), &of("Ben")).await, planned);
    assert_eq!(queue.turns(), 1);
    let status = store.batch(&home(), only.id).await.expect("batch");
    let status = status.expect("whoever waits for it learns of its end");
    assert_eq!(status.turns[0].state, TurnState::Forgotten);
    assert_eq!(store.batch(&home(), mixed.id).await, Ok(None));
    let late = deliver(&store, 1, &mixed).await;
    assert_eq!(states(&late), [TurnState::Stored, TurnState::Forgotten]);
    let again = batch("again", vec![by("Ben", "2"), by("Ben", "4")]);
    let told = deliver(&store, 3, &again).await;
    assert_eq!(states(&told), [TurnState::Forgotten, TurnState::Stored]);
}

#[tokio::test]
async fn a_space_that_only_waits_goes_as_a_whole_and_may_be_told_again() {
    let (_database, store, queue, erasure) = fresh().await;
    let told = batch("k", vec![turn("a", "one")]);
    queue.accept(7, &told);
    let everything = TurnFilter::default();
    let erased = erasure.remove(&home(), &everything).await.expect("remove");
    assert_eq!((erased.undelivered, erased.space), (1, false));
    assert_eq!(
        states(&deliver(&store, 7, &told).await),
        [TurnState::Forgotten]
    );
    assert_eq!(store.get(&home()).await, Ok(None));
    assert_eq!(store.batch(&home(), told.id).await, Ok(None));
    assert_eq!(
        states(&deliver(&store, 8, &told).await),
        [TurnState::Stored]
    );
    let space = store.get(&home()).await.expect("get").expect("exists");
    assert_eq!(space.turns, 1);
}

/// What was accepted before it, whether it waits or is in the hands of a worker whose queue knows nothing of it any more.
#[tokio::test]
async fn a_forget_of_everything_covers_all_that_was_accepted_by_then() {
    let (_database, store, queue, erasure) = fresh().await;
    deliver(&store, 1, &batch("k1", vec![turn("a", "one")])).await;
    queue.accept(9, &batch("of another space", vec![]));
    erasure
        .remove(&home(), &TurnFilter::default())
        .await
        .expect("remove");
    let late = batch("k2", vec![turn("b", "two")]);
    assert_eq!(
        states(&deliver(&store, 9, &late).await),
        [TurnState::Forgotten]
    );
    assert_eq!(
        states(&deliver(&store, 10, &late).await),
        [TurnState::Stored]
    );
}

/// Of any tenant; a stream that is made anew goes on behind it.
#[tokio::test]
async fn the_highest_acceptance_is_that_of_anything_stored_or_forgotten() {
    let (_database, store, queue, erasure) = fresh().await;
    assert_eq!(store.highest_acceptance().await, Ok(0));
    let bob = scope("globex", "bob");
    let theirs = batch_in(&bob, "k", vec![turn_in(&bob, "s", "a", "x")]);
    deliver(&store, 7, &theirs).await;
    deliver(&store, 3, &batch("k", vec![turn("a", "one")])).await;
    assert_eq!(store.highest_acceptance().await, Ok(7));
    queue.accept(9, &batch("of another space", vec![]));
    let everything = TurnFilter::default();
    erasure.remove(&home(), &everything).await.expect("remove");
    assert_eq!(store.highest_acceptance().await, Ok(9));
}
