//! What comes twice is stored once.

use memfleet_domain::ingestion::TurnState;
use memfleet_domain::turn::AcceptedTurn;

use super::{commit, listed, states, texts};
use crate::conformance::samples::{batch, edit, home, instant, turn};

use crate::filter::TurnFilter;
use crate::ledger::Ledger;

/// At least once becomes exactly once.
pub async fn a_batch_delivered_again_changes_nothing(store: &impl Ledger) {
    let taken = commit(store, "k0", vec![turn("x", "taken")], 1).await;
    let turns = vec![
        turn("a", "one"),
        turn("x", "other content"),
        turn("b", "two"),
    ];
    let first = commit(store, "k", turns.clone(), 2).await;
    assert!(first.change > taken.change);
    let before = listed(store, &TurnFilter::default()).await;
    let later = commit(store, "k2", vec![turn("c", "three")], 3).await;
    let again = commit(store, "k", turns, 2).await;
    assert_eq!(again, first);
    assert!(later.change > first.change);
    let after = listed(store, &TurnFilter::default()).await;
    assert_eq!(after[..3], before[..]);
    assert_eq!(after.len(), 4);
}

/// The same external id and content, under another key.
pub async fn a_turn_that_is_there_already_is_left_alone(store: &impl Ledger) {
    commit(store, "k1", vec![turn("a", "one")], 1).await;
    let late = AcceptedTurn {
        recorded_at: instant(60),
        ..turn("a", "one")
    };
    let second = commit(store, "k2", vec![late, turn("b", "two")], 2).await;
    assert_eq!(states(&second), [TurnState::Stored, TurnState::Stored]);
    let turns = listed(store, &TurnFilter::default()).await;
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[0].accepted.recorded_at, instant(0));
}

/// Both hashes are in the reason.
pub async fn an_external_id_with_other_content_is_dead_lettered_and_the_rest_is_stored(
    store: &impl Ledger,
) {
    let (kept, other) = (turn("a", "one"), turn("a", "uno"));
    commit(store, "k1", vec![kept.clone()], 1).await;
    let second = commit(store, "k2", vec![other.clone(), turn("b", "two")], 2).await;
    assert_eq!(
        states(&second),
        [TurnState::DeadLettered, TurnState::Stored]
    );
    let reason = second.turns[0].reason.clone().unwrap_or_default();
    assert!(reason.starts_with("EXTERNAL_ID_CONFLICT: "), "{reason}");
    assert!(
        reason.contains(&kept.content_hash().to_string()),
        "{reason}"
    );
    assert!(
        reason.contains(&other.content_hash().to_string()),
        "{reason}"
    );
    assert_eq!(texts(store, &TurnFilter::default()).await, ["one", "two"]);
}

/// The first stands; the second is the same turn, or a conflict.
pub async fn a_turn_named_twice_in_a_batch_is_stored_once(store: &impl Ledger) {
    let turns = vec![turn("a", "one"), turn("a", "one"), turn("a", "uno")];
    let first = commit(store, "k", turns.clone(), 1).await;
    assert_eq!(
        states(&first),
        [
            TurnState::Stored,
            TurnState::Stored,
            TurnState::DeadLettered
        ]
    );
    assert_eq!(commit(store, "k", turns, 1).await, first);
    assert_eq!(texts(store, &TurnFilter::default()).await, ["one"]);
}

/// A replay brings only what failed, under the same batch id and position.
pub async fn a_dead_lettered_turn_is_tried_again_when_its_batch_comes_back(store: &impl Ledger) {
    let original = turn("a", "one");
    let failing = edit(&original, "b", "uno");
    let first = commit(store, "k", vec![failing.clone(), turn("c", "two")], 2).await;
    assert_eq!(states(&first), [TurnState::DeadLettered, TurnState::Stored]);
    commit(store, "k0", vec![original], 1).await;
    let replay = commit(store, "k", vec![failing.clone()], 2).await;
    assert_eq!(states(&replay), [TurnState::Stored]);
    let all = TurnFilter {
        include_replaced: true,
        ..TurnFilter::default()
    };
    assert_eq!(texts(store, &all).await, ["one", "uno", "two"]);
    let status = store
        .batch(&home(), batch("k", vec![]).id)
        .await
        .expect("batch")
        .expect("known");
    assert_eq!(status.change, replay.change);
    assert!(
        status
            .turns
            .iter()
            .all(|receipt| receipt.state == TurnState::Stored)
    );
    assert_eq!(status.turns.len(), 2);
}
