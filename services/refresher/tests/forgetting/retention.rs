//! Turns that are older than the owner of their space wants to keep.

use std::sync::atomic::Ordering;

use memfleet_domain::Scope;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::{instant, scope, turn_in};
use memfleet_ports::events::Event;
use memfleet_ports::spaces::SpaceCatalog;

use crate::bench::{Bench, TODAY, bench, day, home};
use crate::watched::watched;

impl Bench {
    async fn keep(&self, scope: &Scope, retention_days: Option<u32>) {
        let settings = SpaceSettings {
            retention_days,
            ..SpaceSettings::default()
        };
        self.store.put(scope, &settings, instant(0)).await.unwrap();
    }
}

/// Named by event time and recorded time, in days before today.
fn turns(scope: &Scope) -> Vec<AcceptedTurn> {
    let turn = |(event, recorded): (Option<i64>, i64)| AcceptedTurn {
        event_time: event.map(|days| day(TODAY - days)),
        recorded_at: day(TODAY - recorded),
        ..turn_in(scope, "s1", &format!("{event:?} {recorded}"), "x")
    };
    [
        (Some(40), 40),
        (Some(31), 1),
        (Some(30), 40),
        (Some(2), 40),
        (None, 31),
        (None, 29),
    ]
    .map(turn)
    .into()
}

const KEPT: [&str; 3] = ["Some(30) 40", "Some(2) 40", "None 29"];

#[tokio::test]
async fn turns_past_the_period_go_by_event_time_else_recorded_time() {
    let bench = bench().await;
    bench.commit(&home(), 1, turns(&home())).await;
    bench.keep(&home(), Some(30)).await;
    let mut heard = bench.refresher.events.listen();
    assert_eq!(bench.refresher.apply_retention().await.unwrap().turns, 3);
    assert_eq!(bench.left(&home()).await, KEPT);
    assert_eq!(
        heard.try_recv().unwrap(),
        Event::Forgotten { scope: home() }
    );
    assert_eq!(bench.refresher.apply_retention().await.unwrap().turns, 0);
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn a_space_without_a_period_and_other_spaces_keep_everything() {
    let bench = bench().await;
    let scopes = [home(), scope("acme", "bob"), scope("globex", "ada")];
    for (position, scope) in scopes.iter().enumerate() {
        bench.commit(scope, position as u64 + 1, turns(scope)).await;
    }
    bench.keep(&home(), Some(30)).await;
    bench.keep(&scopes[1], None).await;
    bench.keep(&scopes[2], Some(400)).await;
    assert_eq!(bench.refresher.apply_retention().await.unwrap().turns, 3);
    assert_eq!(bench.left(&home()).await, KEPT);
    assert_eq!(bench.left(&scopes[1]).await.len(), 6);
    assert_eq!(bench.left(&scopes[2]).await.len(), 6);
}

#[tokio::test]
async fn a_space_outlives_its_last_turn() {
    let bench = bench().await;
    bench.commit(&home(), 1, turns(&home())).await;
    bench.keep(&home(), Some(1)).await;
    assert_eq!(bench.refresher.apply_retention().await.unwrap().turns, 6);
    let space = bench.store.get(&home()).await.unwrap().unwrap();
    assert_eq!((space.turns, space.settings.retention_days), (0, Some(1)));
}

#[tokio::test]
async fn a_space_that_fails_keeps_no_other_from_its_period_and_all_share_a_scrub() {
    let scopes = [scope("acme", "bob"), home(), scope("globex", "ada")];
    let (bench, watched) = watched(Some(home())).await;
    for (position, scope) in scopes.iter().enumerate() {
        bench.commit(scope, position as u64 + 1, turns(scope)).await;
        bench.keep(scope, Some(30)).await;
    }
    assert_eq!(bench.refresher.apply_retention().await.unwrap().turns, 6);
    assert_eq!(bench.left(&scopes[0]).await, KEPT);
    assert_eq!(bench.left(&scopes[1]).await.len(), 6);
    assert_eq!(bench.left(&scopes[2]).await, KEPT);
    assert_eq!(watched.scrubs.load(Ordering::SeqCst), 1);
}
