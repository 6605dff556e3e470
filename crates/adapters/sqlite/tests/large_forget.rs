//! A forget of many turns is several transactions: other writers come in between, and one that was
//! cut off is finished by the next.

use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::{batch, home, indexed, instant, session, turn_in};
use memfleet_ports::erasure::{Erased, Erasure};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::{Bounds, IngestQueue};
use memfleet_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// Turns of the session that is forgotten.
const MANY: usize = 3_000;

fn of_session(name: &str) -> TurnFilter {
    TurnFilter {
        sessions: vec![session(name)],
        ..TurnFilter::default()
    }
}

/// A store with two long sessions.
async fn told() -> (TempDir, SqliteStore) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    let opened = SqliteStore::open(&path, Options::default()).await;
    let store = opened.expect("open");
    for (place, name) in ["s1", "s2"].into_iter().enumerate() {
        let said = |number| turn_in(&home(), name, &format!("{name} {number}"), "It was said.");
        let turns = (0..MANY).map(said).collect();
        let told = indexed(batch(name, turns), place as u64 + 1);
        store.commit(vec![told]).await.expect("commit");
    }
    (directory, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forget_of_many_turns_lets_other_writers_in_between() {
    let (_directory, store) = told().await;
    let removing = tokio::spawn({
        let store = store.clone();
        async move { store.remove(&home(), &of_session("s1")).await }
    });
    let mut published = 0;
    while !removing.is_finished() {
        let name = format!("beside {published}");
        let told = turn_in(&home(), "s2", &name, "It was said meanwhile.");
        let told = batch(&name, vec![told]);
        let accepted = store.publish(&told, instant(0), Bounds::NONE).await;
        accepted.expect("publish");
        published += 1;
    }
    let erased = removing.await.expect("a task").expect("remove");
    assert!(published >= 3, "{published} batches meanwhile");
    assert_eq!(erased.turns.len(), MANY);
    assert_eq!(erased.emptied_sessions, [session("s1")]);
    let left = store.plan(&home(), &of_session("s1")).await.expect("plan");
    assert_eq!(left, Erased::default());
    let other = store.plan(&home(), &of_session("s2")).await.expect("plan");
    assert_eq!(other.turns.len(), MANY);
}

#[tokio::test]
async fn a_forget_that_was_cut_off_is_finished_by_the_next() {
    let (_directory, store) = told().await;
    // Found by the edit alone: the turn that it replaces is of another session.
    let first = turn_in(&home(), "s2", "s2 0", "It was said.");
    let edited = AcceptedTurn {
        replaces: Some(first.id),
        ..turn_in(&home(), "s1", "edit", "It was said otherwise.")
    };
    let told = indexed(batch("edit", vec![edited]), 3);
    store.commit(vec![told]).await.expect("commit");
    let filter = of_session("s1");
    let cut_off = async {
        store.remove(&home(), &filter).await.expect("remove");
    };
    // Dropped at its first transaction or a later one, wherever that is.
    let soon = std::time::Duration::from_millis(60);
    let _cut_off = tokio::time::timeout(soon, cut_off).await;
    store.remove(&home(), &filter).await.expect("remove");
    let left = store.plan(&home(), &filter).await.expect("plan");
    assert_eq!(left, Erased::default());
    let other = store.plan(&home(), &of_session("s2")).await.expect("plan");
    assert_eq!(other.turns.len(), MANY - 1, "the edited turn is gone too");
}
