//! Whole spaces, and retention.

use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::AcceptedTurn;

use super::{Store, commit, conversation, erase};
use crate::conformance::samples::{batch, batch_in, home, indexed, instant, scope, turn, turn_in};

use crate::erasure::Erased;
use crate::feed::Change;
use crate::filter::TurnFilter;
use crate::ledger::Ledger;
use crate::spaces::SpaceCatalog;

/// Settings and all.
pub async fn forgetting_everything_removes_the_space_and_no_other(store: &impl Store) {
    let turns = conversation(store).await;
    let others = [scope("globex", "ada"), scope("acme", "bob")];
    for other in &others {
        let told = turn_in(other, "s1", "a", "stays");
        store
            .commit(vec![indexed(batch_in(other, "k", vec![told]), 2)])
            .await
            .expect("commit");
    }
    let everything = TurnFilter::default();
    let planned = store.plan(&home(), &everything).await.expect("plan");
    assert!(planned.space);
    assert_eq!(erase(store, &everything).await, planned);
    assert_eq!(planned.turns.len(), turns.len());
    assert_eq!(planned.emptied_sessions.len(), 3);
    assert_eq!(store.get(&home()).await, Ok(None));
    let names = SpaceCatalog::list(store, &home().tenant, 10, None)
        .await
        .expect("list")
        .items;
    assert_eq!(
        names
            .iter()
            .map(|space| space.id.as_str())
            .collect::<Vec<_>>(),
        ["bob"]
    );
    for other in &others {
        let page = Ledger::list(store, other, &everything, 10, None)
            .await
            .expect("list");
        assert_eq!(page.items.len(), 1);
        assert_eq!(
            store
                .get(other)
                .await
                .expect("get")
                .map(|space| space.turns),
            Some(1)
        );
    }
    assert_eq!(erase(store, &everything).await, Erased::default());
}

/// Who forgets a space and sends its turns again means it.
pub async fn the_batches_of_a_space_go_with_it(store: &impl Store) {
    let turns = conversation(store).await;
    erase(store, &TurnFilter::default()).await;
    let id = batch("conversation", vec![]).id;
    assert_eq!(store.batch(&home(), id).await, Ok(None));
    commit(store, "conversation", turns, 60).await;
    let space = store.get(&home()).await.expect("get").expect("exists");
    assert_eq!(space.turns, 6);
}

/// An index from before learns what went; settings start anew.
pub async fn a_space_told_again_goes_on_counting(store: &impl Store) {
    let turns = conversation(store).await;
    let settings = SpaceSettings {
        retention_days: Some(3),
        ..SpaceSettings::default()
    };
    store
        .put(&home(), &settings, instant(0))
        .await
        .expect("put");
    let before = store.head(&home()).await.expect("head");
    erase(store, &TurnFilter::default()).await;
    commit(
        store,
        "new",
        vec![AcceptedTurn {
            recorded_at: instant(900),
            ..turn("new", "told anew")
        }],
        60,
    )
    .await;
    let space = store.get(&home()).await.expect("get").expect("exists");
    assert_eq!(
        (space.settings, space.created_at, space.turns),
        (SpaceSettings::default(), instant(900), 1)
    );
    let changes = store
        .changes_after(&home(), before, 100)
        .await
        .expect("changes")
        .changes;
    let forgotten = changes
        .iter()
        .filter(|change| matches!(change, Change::Forgotten(_)));
    assert_eq!(
        (forgotten.count(), changes.len()),
        (turns.len(), turns.len() + 1)
    );
}

/// By event time, else recorded time.
pub async fn spaces_with_turns_past_their_retention_are_expired(store: &impl Store) {
    const DAY: i64 = 86_400;
    let keep = |days| SpaceSettings {
        retention_days: Some(days),
        ..SpaceSettings::default()
    };
    for (space, days, event_time) in [
        ("old", Some(10), Some(instant(-11 * DAY))),
        ("young", Some(10), Some(instant(-9 * DAY))),
        ("for ever", None, Some(instant(-9_999 * DAY))),
        ("undated", Some(10), None),
    ] {
        let scope = scope("acme", space);
        let told = AcceptedTurn {
            event_time,
            ..turn_in(&scope, "s", "a", "x")
        };
        store
            .commit(vec![indexed(batch_in(&scope, "k", vec![told]), 1)])
            .await
            .expect("commit");
        if let Some(days) = days {
            store
                .put(&scope, &keep(days), instant(0))
                .await
                .expect("put");
        }
    }
    store
        .put(&scope("acme", "empty"), &keep(0), instant(0))
        .await
        .expect("put");
    let expired = store.expired(instant(0)).await;
    assert_eq!(expired, Ok(vec![scope("acme", "old")]));
    let expired = store.expired(instant(11 * DAY)).await.expect("expired");
    assert_eq!(expired.len(), 3);
}
