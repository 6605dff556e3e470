//! Retention of turns by number, a step at a time, and legal holds.

use memfleet_domain::Scope;
use memfleet_domain::space::{LegalHold, SpaceSettings};
use memfleet_domain::turn::AcceptedTurn;

use super::{Store, by_turn, commit, conversation, erase, left};
use crate::conformance::samples::{batch, edit, home, indexed, instant, scope, turn, turn_in};
use crate::erasure::Erased;
use crate::filter::TurnFilter;
use crate::spaces::SpaceCatalog;
use crate::store::StoreError;

const DAY: i64 = 86_400;

/// About as many as a step takes where that does not matter.
const MOST: u32 = 100;

fn newest(turns: u32) -> SpaceSettings {
    SpaceSettings {
        retention_turns: Some(turns),
        ..SpaceSettings::default()
    }
}

async fn put(store: &impl Store, settings: &SpaceSettings) {
    store.put(&home(), settings, instant(0)).await.expect("put");
}

async fn expire(store: &impl Store, most: u32) -> Erased {
    let expired = store.expire(&home(), instant(0), most).await;
    expired.expect("expire")
}

async fn due(store: &impl Store) -> Vec<Scope> {
    store.expired(instant(0)).await.expect("expired")
}

async fn hold(store: &impl Store, reason: &str, second: i64) -> Option<LegalHold> {
    let hold = LegalHold {
        since: instant(second),
        reason: reason.into(),
    };
    let space = store.hold(&home(), Some(&hold)).await.expect("hold");
    space.expect("there is such a space").hold
}

async fn release(store: &impl Store) {
    let space = store.hold(&home(), None).await.expect("hold");
    assert_eq!(space.expect("there is such a space").hold, None);
}

/// By event time, else recorded time; of the same time the later accepted. No turn more, and none twice.
pub async fn the_newest_turns_are_kept(store: &impl Store) {
    let at = |name: &str, event: Option<i64>, recorded| AcceptedTurn {
        event_time: event.map(instant),
        recorded_at: instant(recorded),
        ..turn(name, "x")
    };
    let first = vec![
        at("told late", Some(10), 900),
        at("newest", Some(800), 20),
        at("undated", None, 700),
    ];
    commit(store, "first", first.clone(), 1).await;
    let second = vec![at("same", Some(300), 1), at("same later", Some(300), 0)];
    commit(store, "second", second.clone(), 2).await;
    put(store, &newest(5)).await;
    assert_eq!(due(store).await, []);
    assert_eq!(expire(store, MOST).await, Erased::default());
    put(store, &newest(3)).await;
    assert_eq!(due(store).await, [home()]);
    let erased = expire(store, MOST).await;
    assert_eq!(erased.turns.len(), 2);
    assert_eq!(left(store).await, [first[1].id, first[2].id, second[1].id]);
    assert_eq!(due(store).await, []);
    assert_eq!(expire(store, MOST).await, Erased::default());
}

/// The oldest first, so that one that ends in between leaves the newest.
pub async fn retention_goes_step_by_step(store: &impl Store) {
    let turns = conversation(store).await;
    put(store, &newest(1)).await;
    for gone in [2, 4] {
        assert_eq!(expire(store, 2).await.turns.len(), 2);
        let ids: Vec<_> = turns[gone..].iter().map(|turn| turn.id).collect();
        assert_eq!(left(store).await, ids);
    }
    assert_eq!(expire(store, 2).await.turns, [turns[4].id]);
    assert_eq!(expire(store, 2).await, Erased::default());
    // What went leaves a tombstone, as after a forget.
    commit(store, "again", vec![turns[0].clone()], 1).await;
    assert_eq!(left(store).await, [turns[5].id]);
}

/// Whichever means it.
pub async fn a_period_and_a_number_mean_the_turns_of_either(store: &impl Store) {
    let aged = |days: i64| AcceptedTurn {
        event_time: Some(instant(-days * DAY)),
        ..turn(&days.to_string(), "x")
    };
    let turns: Vec<_> = [40, 20, 5, 1].map(aged).into();
    commit(store, "k", turns.clone(), 1).await;
    let settings = |days, turns| SpaceSettings {
        retention_days: Some(days),
        ..newest(turns)
    };
    put(store, &settings(30, 2)).await;
    assert_eq!(expire(store, MOST).await.turns.len(), 2);
    put(store, &settings(3, 2)).await;
    assert_eq!(expire(store, MOST).await.turns, [turns[2].id]);
    assert_eq!(left(store).await, [turns[3].id]);
}

/// With a turn go the versions that it replaced, as a forget has it; a newer version stays.
pub async fn a_number_counts_replaced_turns(store: &impl Store) {
    let old = turn("old", "before");
    commit(store, "k", vec![old.clone()], 1).await;
    let new = edit(&old, "new", "after");
    commit(store, "l", vec![new.clone()], 2).await;
    put(store, &newest(1)).await;
    assert_eq!(expire(store, MOST).await.turns, [old.id]);
    assert_eq!(left(store).await, [new.id]);
}

/// Of single turns and of the whole, also only to plan it, and the caller hears why.
pub async fn a_space_on_hold_forgets_nothing(store: &impl Store) {
    let turns = conversation(store).await;
    let set = hold(store, "case 7", 50).await.expect("it is on hold");
    assert_eq!((set.since, set.reason.as_str()), (instant(50), "case 7"));
    for filter in [TurnFilter::default(), by_turn(&turns[0])] {
        let held = StoreError::Held { since: instant(50) };
        assert_eq!(store.plan(&home(), &filter).await, Err(held.clone()));
        assert_eq!(store.remove(&home(), &filter).await, Err(held));
    }
    assert_eq!(left(store).await.len(), 6);
    // Another space of the tenant is none of it.
    let other = scope("acme", "bob");
    let told = turn_in(&other, "s", "a", "x");
    let told = crate::conformance::samples::batch_in(&other, "k", vec![told]);
    store.commit(vec![indexed(told, 2)]).await.expect("commit");
    let removed = store.remove(&other, &TurnFilter::default()).await;
    assert!(removed.expect("remove").space);
    release(store).await;
    assert!(erase(store, &TurnFilter::default()).await.space);
}

/// Whatever it may have found to be due before.
pub async fn retention_passes_a_space_on_hold_by(store: &impl Store) {
    conversation(store).await;
    let strict = SpaceSettings {
        retention_days: Some(1),
        retention_superseded_days: Some(1),
        ..newest(1)
    };
    put(store, &strict).await;
    assert_eq!(due(store).await, [home()]);
    hold(store, "case 7", 0).await;
    assert_eq!(due(store).await, []);
    assert_eq!(expire(store, MOST).await, Erased::default());
    assert_eq!(left(store).await.len(), 6);
    release(store).await;
    assert_eq!(expire(store, MOST).await.turns.len(), 5);
}

/// Neither settings, nor turns that come, nor a hold that is set once more, but for its reason.
pub async fn a_hold_stays_until_it_is_lifted(store: &impl Store) {
    let turns = conversation(store).await;
    hold(store, "case 7", 50).await;
    put(store, &newest(3)).await;
    let new = edit(&turns[0], "new", "said anew");
    commit(store, "new", vec![new, turn("other", "x")], 2).await;
    let again = hold(store, "case 8", 60).await.expect("it is on hold");
    assert_eq!(
        (again.since, again.reason.as_str()),
        (instant(50), "case 8")
    );
    let space = store.get(&home()).await.expect("get").expect("exists");
    assert_eq!((space.hold, space.turns), (Some(again.clone()), 8));
    let listed = SpaceCatalog::list(store, &home().tenant, 9, None).await;
    assert_eq!(listed.expect("list").items[0].hold, Some(again));
    release(store).await;
    release(store).await;
}

/// It does not come to exist by it, and one that was forgotten comes again without.
pub async fn only_a_space_that_is_there_can_be_held(store: &impl Store) {
    let hold = LegalHold {
        since: instant(0),
        reason: "case 7".into(),
    };
    assert_eq!(store.hold(&home(), Some(&hold)).await, Ok(None));
    assert_eq!(store.get(&home()).await, Ok(None));
    let told = vec![turn("a", "x")];
    let told = indexed(batch("k", told), 1);
    store.commit(vec![told.clone()]).await.expect("commit");
    erase(store, &TurnFilter::default()).await;
    assert_eq!(store.hold(&home(), Some(&hold)).await, Ok(None));
    let again = vec![turn("b", "x")];
    commit(store, "again", again, 60).await;
    let space = store.get(&home()).await.expect("get").expect("exists");
    assert_eq!(space.hold, None);
}
