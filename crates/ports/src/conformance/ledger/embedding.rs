//! Vectors that come later.

use memfleet_domain::ids::TurnId;

use super::commit;
use crate::conformance::samples::{
    batch, embedding_space, home, indexed, passages, turn, vectors, without_vectors,
};

use crate::ledger::Ledger;

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
        .attach_vectors(&home(), long.id, &space, vec![vectors("x"), vectors("y")])
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
    let attached = store
        .attach_vectors(&home(), told.id, &new, vec![vectors("x")])
        .await;
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
        .attach_vectors(&home(), gone, &embedding_space("1"), vec![vectors("x")])
        .await;
    assert_eq!(attached, Ok(()));
    commit(store, "k", vec![turn("a", "one")], 1).await;
    let attached = store
        .attach_vectors(&home(), gone, &embedding_space("1"), vec![vectors("x")])
        .await;
    assert_eq!(attached, Ok(()));
}
