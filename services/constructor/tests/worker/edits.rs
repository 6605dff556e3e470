//! Edits that come before what they replace.

use memfleet_domain::ingestion::{Batch, TurnState};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::IngestQueue;

use crate::bench::{Bench, batch, bench, scope};

/// An edit of the first turn of a batch.
fn edit_of(original: &Batch, text: &str) -> Batch {
    let mut edit = batch(&[text]);
    edit.turns[0].replaces = Some(original.turns[0].id);
    edit
}

/// What became of a batch, or nothing while it waits.
async fn state(bench: &Bench, batch: &Batch) -> Option<TurnState> {
    let status = bench.store.batch(&scope(), batch.id).await.unwrap();
    status.map(|status| status.turns[0].state)
}

/// Rounds until nothing waits.
async fn settle(bench: &Bench) {
    while bench.depth().await.batches > 0 {
        if !bench.constructor.round().await.unwrap() {
            bench.store.ready().await;
        }
    }
}

#[tokio::test]
async fn an_edit_waits_for_an_original_that_another_constructor_holds() {
    let bench = bench().await;
    let original = batch(&["I live in Lisbon."]);
    let edit = edit_of(&original, "I live in Porto.");
    let again = edit_of(&edit, "I live in Braga.");
    bench.publish(&original).await;
    let held = bench.store.take(1).await.unwrap()[0].acceptance;
    bench.publish(&edit).await;
    bench.publish(&again).await;
    bench.publish(&batch(&["The cat is called Pixel."])).await;
    for _ in 0..3 {
        bench.constructor.round().await.unwrap();
    }
    assert_eq!(state(&bench, &edit).await, None);
    assert_eq!(state(&bench, &again).await, None);
    let depth = bench.depth().await;
    assert_eq!(
        (depth.batches, depth.dead_letters),
        (3, 0),
        "what is no edit was stored"
    );
    bench.store.release(&[held]).await.unwrap();
    settle(&bench).await;
    assert_eq!(state(&bench, &edit).await, Some(TurnState::Stored));
    assert_eq!(state(&bench, &again).await, Some(TurnState::Stored));
    let old = bench.store.turns(&scope(), &[original.turns[0].id]).await;
    let by = old.unwrap()[0].replaced.unwrap().by;
    assert_eq!(by, edit.turns[0].id);
}

#[tokio::test]
async fn an_edit_of_what_never_came_is_a_letter_once_nothing_older_waits() {
    let bench = bench().await;
    let other = batch(&["Something else."]);
    bench.publish(&other).await;
    let held = bench.store.take(1).await.unwrap()[0].acceptance;
    let edit = edit_of(&batch(&["Never told."]), "An edit of nothing.");
    bench.publish(&edit).await;
    bench.constructor.round().await.unwrap();
    assert_eq!(
        state(&bench, &edit).await,
        None,
        "the older batch could bring it"
    );
    bench.store.release(&[held]).await.unwrap();
    settle(&bench).await;
    assert_eq!(state(&bench, &edit).await, Some(TurnState::DeadLettered));
    let letters = bench
        .store
        .dead_letters(&scope().tenant, Some(&scope().space), 10, None)
        .await
        .unwrap();
    assert_eq!(letters.items[0].attempts, 1, "waiting is no attempt");
}
