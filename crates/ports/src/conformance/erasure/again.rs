//! What comes after a forget.

use memfleet_domain::ingestion::TurnState;
use memfleet_domain::turn::AcceptedTurn;

use super::{Store, by_turn, commit, conversation, erase, left};
use crate::conformance::samples::{
    batch, edit, home, instant, scope, session, speaker, turn, turn_in,
};

use crate::feed::Change;
use crate::filter::TurnFilter;
use crate::ledger::Known;

/// Of the same batch, or of another one from before.
pub async fn a_redelivery_does_not_bring_back_what_was_forgotten(store: &impl Store) {
    let turns = conversation(store).await;
    commit(
        store,
        "later",
        vec![turn_in(&home(), "s9", "x", "something else")],
        9,
    )
    .await;
    erase(
        store,
        &TurnFilter {
            sessions: vec![session("s0"), session("s1")],
            ..TurnFilter::default()
        },
    )
    .await;
    commit(store, "conversation", turns.clone(), 1).await;
    commit(
        store,
        "on its way before the forget",
        vec![turns[0].clone()],
        1,
    )
    .await;
    assert_eq!(left(store).await.len(), 3);
    let id = batch("on its way before the forget", vec![]).id;
    let status = store
        .batch(&home(), id)
        .await
        .expect("batch")
        .expect("known");
    assert_eq!(status.turns[0].state, TurnState::Forgotten);
}

/// A client that keeps its history sends it again. Its next message may be the same words.
pub async fn a_message_that_was_forgotten_and_is_sent_again_stays_away(store: &impl Store) {
    let turns = conversation(store).await;
    erase(store, &by_turn(&turns[0])).await;
    let said = AcceptedTurn {
        content: turns[0].content.clone(),
        ..turn("in a new message", "")
    };
    let mut history = turns.clone();
    history.push(said.clone());
    commit(store, "again", history, 50).await;
    let status = store.batch(&home(), batch("again", vec![]).id).await;
    let states: Vec<_> = status.expect("batch").expect("known").turns;
    let states: Vec<_> = states.into_iter().map(|turn| turn.state).collect();
    let mut expected = vec![TurnState::Stored; 7];
    expected[0] = TurnState::Forgotten;
    assert_eq!(states, expected);
    let left = left(store).await;
    assert!(left.len() == 6 && left.contains(&said.id) && !left.contains(&turns[0].id));
}

/// A caller who forgets all of a space may fill it again.
pub async fn what_is_told_again_after_its_space_was_forgotten_is_stored_again(store: &impl Store) {
    let turns = conversation(store).await;
    erase(store, &TurnFilter::default()).await;
    let before = store.head(&home()).await.expect("head");
    commit(store, "again", turns.clone(), 50).await;
    assert_eq!(left(store).await.len(), 6);
    let changes = store
        .changes_after(&home(), before, 100)
        .await
        .expect("changes")
        .changes;
    assert_eq!(changes.len(), 6);
    let all = store
        .changes_after(&home(), 0, 100)
        .await
        .expect("changes")
        .changes;
    assert!(all.iter().all(|change| matches!(change, Change::Stored(_))));
}

/// However late it comes: whoever imports a file does not mean single turns that were forgotten. A whole space it may bring back.
pub async fn an_import_brings_back_a_space_and_no_single_turn(store: &impl Store) {
    let turns = conversation(store).await;
    let imported = |turn: &AcceptedTurn| AcceptedTurn {
        place: Some(0),
        ..turn.clone()
    };
    let file: Vec<_> = turns.iter().map(imported).collect();
    erase(store, &by_turn(&turns[0])).await;
    commit(store, "read before the forget", file.clone(), 50).await;
    assert_eq!(left(store).await.len(), 5);
    let status = store
        .batch(&home(), batch("read before the forget", vec![]).id)
        .await
        .expect("batch")
        .expect("known");
    assert_eq!(status.turns[0].state, TurnState::Forgotten);
    erase(store, &TurnFilter::default()).await;
    commit(store, "after the space was forgotten", file, 60).await;
    assert_eq!(left(store).await.len(), 6);
}

/// Otherwise the old words would come up again.
pub async fn forgetting_an_edit_forgets_the_versions_it_replaced(store: &impl Store) {
    let first = turn("a", "one");
    let second = edit(&first, "b", "two");
    let third = AcceptedTurn {
        speaker: speaker("Ben"),
        ..edit(&second, "c", "three")
    };
    commit(
        store,
        "k",
        vec![first.clone(), second.clone(), third.clone(), turn("d", "x")],
        1,
    )
    .await;
    let filter = TurnFilter {
        speakers: vec![speaker("Ben")],
        ..TurnFilter::default()
    };
    let planned = store.plan(&home(), &filter).await.expect("plan");
    assert_eq!(planned.turns, [first.id, second.id, third.id]);
    assert_eq!(erase(store, &filter).await, planned);
    assert_eq!(left(store).await, [turn("d", "x").id]);
}

/// It names nothing that is gone.
pub async fn forgetting_an_old_version_leaves_the_newer_one(store: &impl Store) {
    let first = turn("a", "one");
    let second = edit(&first, "b", "two");
    commit(store, "k", vec![first.clone(), second.clone()], 1).await;
    assert_eq!(erase(store, &by_turn(&first)).await.turns, [first.id]);
    let history = store.history(&home(), second.id).await.expect("history");
    assert_eq!(history.len(), 1);
    assert_eq!(
        (history[0].accepted.replaces, history[0].position),
        (None, 1)
    );
    commit(store, "retry", vec![second], 2).await;
    assert_eq!(left(store).await.len(), 1);
}

/// It was on its way while the old one was forgotten.
pub async fn an_edit_of_a_forgotten_turn_is_stored(store: &impl Store) {
    let first = turn("a", "one");
    commit(store, "k1", vec![first.clone()], 1).await;
    erase(store, &by_turn(&first)).await;
    let second = edit(&first, "b", "two");
    commit(store, "k2", vec![second.clone()], 2).await;
    assert_eq!(left(store).await, [second.id]);
}

/// In listings, as in a space that never held what was forgotten.
pub async fn a_session_starts_with_the_first_turn_that_is_left(store: &impl Store) {
    let tell = |name: &str, in_session: &str, second| AcceptedTurn {
        recorded_at: instant(second),
        ..turn_in(&home(), in_session, name, name)
    };
    let turns = [
        tell("a", "s1", 1),
        tell("b", "s2", 2),
        tell("c", "s1", 3),
        tell("d", "s3", 4),
    ];
    commit(store, "k", turns.to_vec(), 1).await;
    erase(store, &by_turn(&turns[0])).await;
    assert_eq!(left(store).await, [1, 2, 3].map(|n| turns[n].id));
}

/// Until the whole space is forgotten.
pub async fn a_space_knows_what_it_had_to_forget(store: &impl Store) {
    let turns = conversation(store).await;
    let ids: Vec<_> = turns.iter().map(|turn| turn.id).collect();
    let elsewhere = scope("globex", "ada");
    assert_eq!(store.known(&elsewhere, &ids).await, Ok(Known::default()));
    erase(store, &by_turn(&turns[0])).await;
    erase(store, &by_turn(&turns[1])).await;
    let known = store.known(&home(), &ids).await.expect("known");
    assert_eq!(known.stored, ids[2..].iter().copied().collect());
    assert_eq!(known.forgotten, ids[..2].iter().copied().collect());
    commit(store, "again", vec![turns[0].clone()], 50).await;
    let known = store.known(&home(), &ids).await.expect("known");
    assert_eq!(known.forgotten, ids[..2].iter().copied().collect());
    erase(store, &TurnFilter::default()).await;
    assert_eq!(store.known(&home(), &ids).await, Ok(Known::default()));
}
