//! Vectors that come later.

use memfleet_domain::ids::TurnId;

use super::commit;
use crate::conformance::samples::{
    batch, embedding_space, home, indexed, passages, turn, vectors, without_vectors,
};

use crate::feed::{Change, IndexFeed};
use crate::ledger::{Ledger, TextVectors};
use crate::store::StoreError;

/// Vectors of a turn with one passage.
fn made(turn: TurnId) -> TextVectors {
    TextVectors::of_turn(turn, vec![vectors("x")])
}

/// The embedder was down.
pub async fn turns_without_vectors_are_found_and_completed(store: &impl Ledger) {
    let long = turn("a", "a text of more than twenty bytes");
    let waiting = without_vectors(indexed(
        batch("k1", vec![long.clone(), turn("b", "two")]),
        1,
    ));
    store.commit(vec![waiting]).await.expect("commit");
    commit(store, "k2", vec![turn("c", "three")], 2).await;
    let space = embedding_space("1");
    let mut unembedded = store
        .without_vectors(&space, 10)
        .await
        .expect("without vectors");
    unembedded.sort_by_key(|waiting| waiting.first_passage);
    assert_eq!(unembedded.len(), 2);
    assert_eq!(unembedded[0].scope, home());
    assert_eq!(unembedded[0].turn.accepted, long);
    let ranges: Vec<_> = passages(&long.content.text)
        .iter()
        .map(|passage| (passage.start, passage.end))
        .collect();
    assert_eq!(unembedded[0].ranges, ranges);
    assert_eq!(unembedded[1].first_passage, unembedded[0].first_passage + 2);
    assert_eq!(
        store
            .without_vectors(&space, 1)
            .await
            .expect("without vectors")
            .len(),
        1
    );
    store
        .attach_vectors(
            &home(),
            &space,
            &[TextVectors::of_turn(
                long.id,
                vec![vectors("x"), vectors("y")],
            )],
        )
        .await
        .expect("attach");
    let left = store
        .without_vectors(&space, 10)
        .await
        .expect("without vectors");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].turn.accepted.content.text, "two");
}

/// After a change of the model: what a space has is never mixed with vectors of another one.
pub async fn vectors_of_another_embedding_space_have_no_place(store: &impl Ledger) {
    let told = turn("a", "one");
    commit(store, "k", vec![told.clone()], 1).await;
    let (old, new) = (embedding_space("1"), embedding_space("2"));
    assert_eq!(store.without_vectors(&old, 10).await, Ok(vec![]));
    assert_eq!(store.without_vectors(&new, 10).await, Ok(vec![]));
    let attached = store.attach_vectors(&home(), &new, &[made(told.id)]).await;
    assert_eq!(attached, Ok(()));
    let mut other = indexed(batch("k2", vec![turn("b", "two")]), 2);
    other.embedding_space = Some(new.clone());
    store.commit(vec![other]).await.expect("commit");
    assert_eq!(store.without_vectors(&new, 10).await, Ok(vec![]));
    let waiting = store
        .without_vectors(&old, 10)
        .await
        .expect("without vectors");
    assert_eq!(waiting.len(), 1, "its vectors were left out");
    assert_eq!(waiting[0].turn.accepted.content.text, "two");
}

/// It was forgotten while it was being embedded.
pub async fn vectors_for_a_turn_that_is_gone_are_left_alone(store: &impl Ledger) {
    let gone = TurnId::from_bytes([5; 16]);
    let attached = store
        .attach_vectors(&home(), &embedding_space("1"), &[made(gone)])
        .await;
    assert_eq!(attached, Ok(()));
    commit(store, "k", vec![turn("a", "one")], 1).await;
    let attached = store
        .attach_vectors(&home(), &embedding_space("1"), &[made(gone)])
        .await;
    assert_eq!(attached, Ok(()));
}

/// More of them than one transaction takes, one of them forgotten meanwhile: the others have
/// theirs, and the feed brings them in the order given.
pub async fn vectors_of_many_turns_come_at_once(store: &(impl Ledger + IndexFeed)) {
    let turns: Vec<_> = (0..150)
        .map(|number| turn(&number.to_string(), "a text"))
        .collect();
    let told = without_vectors(indexed(batch("k", turns.clone()), 1));
    store.commit(vec![told]).await.expect("commit");
    let head = store.head(&home()).await.expect("head");
    let space = embedding_space("1");
    let mut texts: Vec<_> = turns.iter().rev().map(|turn| made(turn.id)).collect();
    texts.insert(20, made(TurnId::from_bytes([5; 16])));
    let attached = store.attach_vectors(&home(), &space, &texts).await;
    assert_eq!(attached, Ok(()));
    assert_eq!(store.without_vectors(&space, 10).await, Ok(vec![]));
    let changes = store.changes_after(&home(), head, 1_000).await;
    let changes = changes.expect("changes");
    assert_eq!(changes.reached, head + 150);
    let ids = changes.changes.iter().map(|change| match change {
        Change::Stored(turn) => {
            assert_eq!(turn.passages[0].sentence, Some(vectors("x").sentence));
            turn.id
        }
        change => panic!("{change:?}"),
    });
    let ids: Vec<_> = ids.collect();
    let expected: Vec<_> = turns.iter().rev().map(|turn| turn.id).collect();
    assert_eq!(ids, expected);
}

/// The call fails, and what came with them is made again.
pub async fn vectors_for_other_passages_are_refused(store: &(impl Ledger + IndexFeed)) {
    let turns = vec![turn("a", "one"), turn("b", "two")];
    let told = without_vectors(indexed(batch("k", turns.clone()), 1));
    store.commit(vec![told]).await.expect("commit");
    let space = embedding_space("1");
    let mut wrong = made(turns[1].id);
    wrong.vectors.push(vectors("y"));
    let texts = [made(turns[0].id), wrong];
    let attached = store.attach_vectors(&home(), &space, &texts).await;
    assert!(
        matches!(attached, Err(StoreError::Unexpected(_))),
        "{attached:?}"
    );
    let waiting = store.without_vectors(&space, 10).await;
    assert_eq!(waiting.expect("waiting").len(), 2);
}
