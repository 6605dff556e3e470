//! Replicas of one fleet write at the same time.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use futures::future::{join, join_all};
use memfleet_domain::ingestion::TurnState;
use memfleet_domain::space::LegalHold;
use memfleet_domain::turn::Turn;
use memfleet_ports::conformance::knowledge::{closing, deriving, fact};
use memfleet_ports::conformance::samples::{
    batch, batch_in, embedding_space, home, indexed, instant, scope, turn, turn_in, vectors,
    without_vectors,
};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::{Change, IndexFeed};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Applied, Knowledge, Progress, Stage, Work};
use memfleet_ports::ledger::{Committed, IndexedBatch, Ledger, TextVectors};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::store::StoreError;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{PostgresErasure, PostgresStore};

use crate::database::Database;

/// Two replicas, each with connections of its own.
async fn replicas() -> (Database, [PostgresStore; 2]) {
    let database = Database::migrated().await;
    let stores = [database.store().await, database.store().await];
    (database, stores)
}

async fn commit(store: &PostgresStore, batches: Vec<IndexedBatch>) -> Vec<Committed> {
    store.commit(batches).await.expect("commit")
}

async fn all(store: &PostgresStore, space: &str) -> Vec<Turn> {
    let (scope, filter) = (scope("acme", space), TurnFilter::default());
    let page = Ledger::list(store, &scope, &filter, 10_000, None).await;
    page.expect("list").items
}

/// Ten turns of one session, the batch's own and some that others bring too.
fn overlapping(number: u64) -> IndexedBatch {
    let turns = (0..10).map(|n| {
        let text = (number * 7 + n).to_string();
        turn(&text, &text)
    });
    indexed(batch(&format!("k{number}"), turns.collect()), number)
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_batches_are_stored_once_in_the_order_of_acceptance() {
    let (_database, stores) = replicas().await;
    let commits =
        (1..=8).map(|number| commit(&stores[number as usize % 2], vec![overlapping(number)]));
    for committed in join_all(commits).await {
        assert!(
            committed[0]
                .turns
                .iter()
                .all(|turn| turn.state == TurnState::Stored)
        );
    }
    let turns = all(&stores[0], "ada").await;
    let texts: HashSet<_> = turns
        .iter()
        .map(|turn| &turn.accepted.content.text)
        .collect();
    assert_eq!((turns.len(), texts.len()), (59, 59));
    for (place, turn) in (0..).zip(&turns) {
        assert_eq!(turn.position, place);
    }
    let changes = stores[0]
        .changes_after(&home(), 0, 1_000)
        .await
        .expect("changes");
    let orders = changes.changes.iter().map(|change| match change {
        Change::Stored(turn) => turn.order,
        other => panic!("{other:?} was not expected"),
    });
    assert_eq!(orders.collect::<HashSet<_>>().len(), 59);
    assert_eq!(stores[1].head(&home()).await, Ok(59));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_batch_at_the_same_time_has_one_answer() {
    let (_database, stores) = replicas().await;
    for round in 0..10 {
        let told = overlapping(round);
        let commits = (0..8).map(|n| commit(&stores[n % 2], vec![told.clone()]));
        let answers = join_all(commits).await;
        assert!(
            answers.iter().all(|answer| *answer == answers[0]),
            "{answers:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_accepted_in_one_order_and_stored_in_another_stand_in_the_first() {
    let (_database, stores) = replicas().await;
    let tell = |number: u64| {
        let turns = (0..3).map(|n| {
            let text = format!("{:03}", number * 3 + n);
            turn(&text, &text)
        });
        indexed(batch(&number.to_string(), turns.collect()), number)
    };
    let shuffled: Vec<u64> = (0..24).map(|n| n * 7 % 24).collect();
    let groups = shuffled.chunks(3).enumerate().map(|(n, numbers)| {
        let batches = numbers.iter().copied().map(tell).collect();
        commit(&stores[n % 2], batches)
    });
    join_all(groups).await;
    for (place, turn) in (0..).zip(all(&stores[0], "ada").await) {
        assert_eq!(
            (turn.position, turn.accepted.content.text),
            (place, format!("{place:03}"))
        );
    }
}

/// Each commit names the spaces in another order.
#[tokio::test(flavor = "multi_thread")]
async fn commits_to_many_spaces_do_not_stop_each_other() {
    let (_database, stores) = replicas().await;
    let spaces = ["a", "b", "c", "d"];
    let tell = |space: &str, n: usize| {
        let tenant = ["acme", "globex"][(n + usize::from(space.as_bytes()[0])) % 2];
        let here = scope(tenant, space);
        let told = turn_in(&here, "s", &n.to_string(), "x");
        indexed(batch_in(&here, &n.to_string(), vec![told]), n as u64)
    };
    let commits = (0..32).map(|n| {
        let turned = spaces.iter().cycle().skip(n % 4).take(4);
        let batches = turned.map(|space| tell(space, n)).collect();
        commit(&stores[n % 2], batches)
    });
    join_all(commits).await;
    for space in spaces {
        assert_eq!(all(&stores[0], space).await.len(), 16);
    }
}

/// Stores, vectors, forgets of single turns and of everything: whatever comes first, the feed tells the end of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_follows_the_feed_ends_with_what_is_there() {
    let (_database, stores) = replicas().await;
    let [one, two] = &stores;
    let erasure = PostgresErasure::new(one.clone(), Arc::new(NothingWaits));
    let writing = async {
        for number in 1..=20 {
            commit(two, vec![without_vectors(overlapping(number))]).await;
        }
    };
    let model = embedding_space("1");
    let embedding = async {
        for _ in 0..10 {
            let waiting = one.without_vectors(&model, 20).await.expect("waiting");
            let made = waiting.iter().map(|turn| {
                let vectors = turn.ranges.iter().map(|_| vectors("x")).collect();
                TextVectors::of_turn(turn.turn.accepted.id, vectors)
            });
            let made: Vec<_> = made.collect();
            let attached = one.attach_vectors(&home(), &model, &made).await;
            attached.expect("attach");
        }
    };
    let forgetting = async {
        for number in 0..20_u64 {
            let filter = TurnFilter {
                turns: vec![turn(&(number * 5).to_string(), "").id],
                ..TurnFilter::default()
            };
            erasure.remove(&home(), &filter).await.expect("remove");
        }
        erasure
            .remove(&home(), &TurnFilter::default())
            .await
            .expect("remove");
    };
    tokio::join!(writing, embedding, forgetting);
    let mut index = BTreeMap::new();
    let (mut reached, mut more) = (0, true);
    while more {
        let page = two
            .changes_after(&home(), reached, 7)
            .await
            .expect("changes");
        for change in page.changes {
            match change {
                Change::Stored(turn) => index.insert(turn.id, turn.passages.len()),
                Change::Forgotten(id) => index.remove(&id),
                other => panic!("{other:?} was not expected"),
            };
        }
        (reached, more) = (page.reached, page.more);
    }
    let left = all(one, "ada").await;
    let left: Vec<_> = left.iter().map(|turn| turn.accepted.id).collect();
    assert_eq!(index.len(), left.len());
    assert!(left.iter().all(|id| index.contains_key(id)));
}

fn only(rewrite: memfleet_ports::knowledge::Rewrite) -> Work {
    Work {
        rewrites: vec![rewrite],
        ..Work::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_rival_changes_of_one_derivation_one_is_made_and_the_others_are_stale() {
    let (_database, stores) = replicas().await;
    let told = turn("a", "I live in Rome.");
    let batch = indexed(batch("k", vec![told.clone()]), 1);
    commit(&stores[0], vec![batch]).await;
    let rome = fact(&told, "Ada", "Rome", instant(1));
    let derived = only(deriving(&[&rome]));
    stores[0].apply(&home(), derived).await.expect("apply");
    let rivals = (0..8).map(|n| {
        let other = fact(&told, "Ada", &format!("place {n}"), instant(2));
        let work = only(closing(&rome, &other, 30 + n));
        let store = &stores[n as usize % 2];
        async move { store.apply(&home(), work).await.expect("apply") }
    });
    let applied = join_all(rivals).await;
    let stale = applied.iter().filter(|one| **one == Applied::Stale);
    assert_eq!(stale.count(), 7, "{applied:?}");
    let versions = stores[0].versions(&home(), rome.id).await;
    assert_eq!(versions.expect("versions").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_work_applied_at_the_same_time_is_done_once() {
    let (_database, stores) = replicas().await;
    let told = turn("a", "I live in Rome.");
    let batch = indexed(batch("k", vec![told.clone()]), 1);
    commit(&stores[0], vec![batch]).await;
    let rome = fact(&told, "Ada", "Rome", instant(1));
    let here = home();
    let attempts = (0..8).map(|n| stores[n % 2].apply(&here, only(deriving(&[&rome]))));
    let applied = join_all(attempts).await;
    assert!(
        applied.iter().all(|one| *one == Ok(Applied::Done(2))),
        "{applied:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_workers_that_claim_a_space_one_gets_it_and_its_progress_counts_once() {
    let (_database, stores) = replicas().await;
    commit(&stores[0], vec![overlapping(1)]).await;
    let claims = (0..8).map(|n| {
        let store = &stores[n % 2];
        async move {
            store
                .claim(&home(), Stage::Judge, instant(0), instant(9))
                .await
        }
    });
    let claimed = join_all(claims).await;
    let got = claimed.iter().filter(|claim| **claim == Ok(Some(0)));
    assert_eq!(got.count(), 1, "{claimed:?}");
    let here = home();
    let moves = (0..8).map(|n| {
        let progress = Progress {
            stage: Stage::Judge,
            from: 0,
            to: 10,
        };
        let work = Work {
            progress: Some(progress),
            ..Work::default()
        };
        stores[n % 2].apply(&here, work)
    });
    let moved = join_all(moves).await;
    let done = moved.iter().filter(|one| **one != Ok(Applied::Stale));
    assert_eq!(done.count(), 1, "{moved:?}");
    assert_eq!(stores[0].pending(Stage::Judge, 9).await, Ok(Vec::new()));
    // Turns that come while a space is worked on are work again.
    commit(&stores[1], vec![overlapping(2)]).await;
    assert_eq!(stores[0].pending(Stage::Judge, 9).await, Ok(vec![home()]));
}

/// Whichever comes first: nothing goes of a space that is on hold, and what is gone is not put on hold.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_before_a_forget_or_after_it() {
    let (_database, [one, other]) = replicas().await;
    let erasure = PostgresErasure::new(other, Arc::new(NothingWaits));
    for round in 0..20 {
        let here = scope("acme", &format!("space {round}"));
        let told = batch_in(&here, "k", vec![turn_in(&here, "s", "a", "x")]);
        commit(&one, vec![indexed(told, 1)]).await;
        let hold = LegalHold {
            since: instant(0),
            reason: "case 7".into(),
        };
        let everything = TurnFilter::default();
        let (held, removed) = join(
            one.hold(&here, Some(&hold)),
            erasure.remove(&here, &everything),
        )
        .await;
        let held = held.expect("hold").map(|space| (space.hold, space.turns));
        match removed {
            Ok(removed) => assert!(removed.space && held.is_none(), "{held:?}"),
            Err(refused) => {
                let since = instant(0);
                assert_eq!(refused, StoreError::Held { since });
                assert_eq!(held, Some((Some(hold), 1)));
            }
        }
    }
}
