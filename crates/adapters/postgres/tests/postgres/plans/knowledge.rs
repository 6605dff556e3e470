//! The same of derived memory.

use memfleet_domain::Scope;
use memfleet_domain::derivation::{Derivation, Status};
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact};
use memfleet_ports::conformance::samples::{instant, scope};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{
    Applied, ChangeFilter, Knowledge, Progress, Question, Stage, Staging, Work,
};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{PostgresErasure, PostgresStore};

use super::{OTHERS, TURNS, home, told};

/// What a turn states. Every other turn of the space that is asked about is left.
fn stated(scope: &Scope, number: usize) -> Derivation {
    let (subject, value) = (format!("Ada {}", number / 10), format!("place {number}"));
    fact(
        &told(scope, number),
        &subject,
        &value,
        instant(number as i64),
    )
}

async fn derive(store: &PostgresStore, scope: &Scope, numbers: impl Iterator<Item = usize>) {
    let facts: Vec<_> = numbers.map(|number| stated(scope, number)).collect();
    let pairs = facts.windows(2).step_by(2);
    let mut found: Vec<_> = pairs
        .clone()
        .map(|pair| conflict(&pair[0], &pair[1]))
        .collect();
    // Nearly all were settled.
    for conflict in found.iter_mut().skip(2) {
        conflict.status = Status::Settled;
    }
    let closed = pairs.map(|pair| closing(&pair[0], &pair[1], 10_000));
    let rewrites = facts.iter().map(|fact| deriving(&[fact])).chain(closed);
    let work = Work {
        rewrites: rewrites.collect(),
        found,
        ..Work::default()
    };
    store.apply(scope, work).await.expect("apply");
    store.begin_rebuild(scope).await.expect("a rebuild");
    let confirmed = facts.iter().map(|fact| fact.id).collect();
    let staging = Staging {
        new: Vec::new(),
        confirmed,
    };
    let work = Work {
        staging,
        ..Work::default()
    };
    store.apply(scope, work).await.expect("apply");
}

/// Days, in seconds.
const DAY: i64 = 86_400;

/// Rebuilds are under way, and agents have worked through all spaces but a few.
pub async fn fill(store: &PostgresStore) {
    for number in 0..OTHERS {
        let other = scope(&format!("tenant {number}"), "space");
        derive(store, &other, 0..5).await;
        retain(store, &other).await;
        if number >= 5 {
            catch_up(store, &other).await;
        }
    }
    derive(store, &home(), (1..TURNS).step_by(2)).await;
    let settings = SpaceSettings {
        retention_days: Some(36_500),
        retention_turns: Some(10),
        retention_superseded_days: Some(1),
        ..SpaceSettings::default()
    };
    let put = store.put(&home(), &settings, instant(0)).await;
    put.expect("put");
}

/// Some of what ended is gone.
async fn retain(store: &PostgresStore, scope: &Scope) {
    let erasure = PostgresErasure::new(store.clone(), std::sync::Arc::new(NothingWaits));
    let settings = SpaceSettings {
        retention_superseded_days: Some(1),
        ..SpaceSettings::default()
    };
    for settings in [settings, SpaceSettings::default()] {
        let put = store.put(scope, &settings, instant(0)).await;
        put.expect("put");
        let expired = erasure.expire(scope, instant(9 * DAY), 1).await;
        expired.expect("expire");
    }
}

async fn catch_up(store: &PostgresStore, scope: &Scope) {
    let to = store.head(scope).await.expect("head");
    let following = Stage::ALL
        .into_iter()
        .filter(|stage| *stage != Stage::Rebuild);
    for stage in following {
        let claim = store.claim(scope, stage, instant(0), instant(1)).await;
        let from = claim.expect("claim").expect("nobody has it");
        let work = Work {
            progress: Some(Progress { stage, from, to }),
            ..Work::default()
        };
        store.apply(scope, work).await.expect("apply");
        let released = store.release(scope, stage, instant(1)).await;
        released.expect("release");
    }
}

/// What is asked or told again and again.
pub const CALLS: [&str; 13] = [
    "pending",
    "rebuilding",
    "follow",
    "derivations by claim",
    "derivations by turn",
    "derivations after",
    "versions",
    "changes",
    "conflicts",
    "apply",
    "forget",
    "expired",
    "retention",
];

pub async fn call(store: &PostgresStore, name: &str, round: usize) {
    let here = home();
    let number = TURNS / 2 + 1 + round * 2;
    let of = |question: Question| {
        let here = here.clone();
        async move {
            drop(
                store
                    .derivations(&here, &question, 20, None)
                    .await
                    .expect(name),
            )
        }
    };
    match name {
        "pending" => {
            let behind = store.pending(Stage::Derive, 3).await.expect(name);
            assert_eq!(behind.len(), 3);
        }
        "rebuilding" => drop(store.rebuilding(&here).await.expect(name)),
        "follow" => catch_up(store, &scope("tenant 7", "space")).await,
        "derivations by claim" => {
            let subject = Some(format!("ada {round}"));
            let attribute = Some("residence".into());
            of(Question {
                subject,
                attribute,
                ..Question::default()
            })
            .await;
        }
        "derivations by turn" => {
            let turns = vec![told(&here, number).id];
            of(Question {
                turns,
                ..Question::default()
            })
            .await;
        }
        "derivations after" => {
            let after = store.head(&here).await.expect(name) - 10;
            of(Question {
                after,
                ..Question::default()
            })
            .await;
        }
        "versions" => drop(
            store
                .versions(&here, stated(&here, 1).id)
                .await
                .expect(name),
        ),
        "changes" => {
            let of_one = ChangeFilter {
                derivation: Some(stated(&here, 1).id),
                ..ChangeFilter::default()
            };
            for filter in [ChangeFilter::default(), of_one] {
                drop(store.changes(&here, &filter, 10, None).await.expect(name));
            }
        }
        "conflicts" => drop(
            store
                .conflicts(&here, &[Status::Found], 10, None)
                .await
                .expect(name),
        ),
        "apply" => {
            let turn = told(&here, number);
            let new = fact(&turn, "Ben", "Kyiv", instant(1));
            let (old, work) = (stated(&here, number + 400), Work::default());
            let current = store.versions(&here, old.id).await.expect(name);
            let mut rewrite = closing(current.last().expect("a version"), &new, 20_000);
            rewrite.revisions[0].passage = deriving(&[&new]).revisions.remove(0).passage;
            let found = vec![conflict(&old, &new)];
            let settled = vec![(found[0].id, Status::Open)];
            let work = Work {
                rewrites: vec![rewrite],
                found,
                settled,
                ..work
            };
            assert_ne!(store.apply(&here, work).await, Ok(Applied::Stale));
        }
        "expired" | "retention" => expire(store, name).await,
        _ => {
            let queue = std::sync::Arc::new(NothingWaits);
            let erasure = PostgresErasure::new(store.clone(), queue);
            let filter = TurnFilter {
                turns: vec![told(&here, number).id],
                ..TurnFilter::default()
            };
            drop(erasure.remove(&here, &filter).await.expect(name));
        }
    }
}

async fn expire(store: &PostgresStore, name: &str) {
    let erasure = PostgresErasure::new(store.clone(), std::sync::Arc::new(NothingWaits));
    let now = instant(9 * DAY);
    if name == "expired" {
        assert_eq!(erasure.expired(now).await.expect(name), [home()]);
        return;
    }
    // One of the many that are due: of more, where a space fills a partition, to read all of that is right.
    let expired = erasure.expire(&home(), now, 1).await.expect(name);
    assert!(
        !expired.turns.is_empty() && expired.versions > 0,
        "{expired:?}"
    );
}
