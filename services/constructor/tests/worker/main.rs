//! The constructor on a real store, with a stand-in for the model.

#![allow(clippy::unwrap_used, reason = "tests")]

mod backfill;
mod bench;
mod edits;
mod poison;
mod switching;

use std::sync::Arc;

use memfleet_constructor::Postponed;
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::ingestion::TurnState;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::events::Event;
use memfleet_ports::feed::{Change, IndexFeed};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::IngestQueue;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::testing::WordEmbedder;

use crate::bench::{Bench, batch, batch_in, bench, scope, space};

#[tokio::test]
async fn what_is_queued_is_stored_with_vectors_announced_and_acknowledged() {
    let bench = bench().await;
    let batch = batch(&["I moved to Lisbon.", "The cat is called Pixel."]);
    let mut heard = bench.constructor.events.listen();
    bench.publish(&batch).await;
    assert!(bench.constructor.round().await.unwrap());
    let status = bench
        .store
        .batch(&scope(), batch.id)
        .await
        .unwrap()
        .unwrap();
    assert!(
        status
            .turns
            .iter()
            .all(|turn| turn.state == TurnState::Stored)
    );
    assert_eq!(bench.vectors_in_feed().await, [true, true]);
    assert_eq!(
        heard.recv().await.unwrap(),
        Event::Settled {
            scope: scope(),
            batch: batch.id
        }
    );
    assert_eq!(bench.depth().await.batches, 0);
    assert!(!bench.constructor.round().await.unwrap());
}

#[tokio::test]
async fn a_space_begins_with_vectors_of_the_model_that_reads_its_texts() {
    let mut bench = bench().await;
    let embedder = Arc::new(WordEmbedder::default());
    embedder.pull_second();
    bench.constructor.embedder = embedder.clone();
    let (english, other) = (space("ada"), space("боб"));
    bench.publish(&batch_in(&english, &["one"])).await;
    bench.publish(&batch_in(&other, &["один"])).await;
    bench.publish(&batch_in(&other, &["two"])).await;
    bench.constructor.round().await.unwrap();
    bench.publish(&batch_in(&other, &["three"])).await;
    bench.constructor.round().await.unwrap();
    for (scope, model) in [
        (&english, &embedder.space().await.unwrap()),
        (&other, embedder.second()),
    ] {
        let held = bench.store.embeddings(scope).await.unwrap();
        assert_eq!((held.served.as_ref(), held.other), (Some(model), None));
        let left = bench.store.without_vectors(model, 10).await.unwrap();
        assert!(left.iter().all(|turn| turn.scope != *scope));
    }
}

#[tokio::test]
async fn a_delivery_that_comes_twice_is_applied_once() {
    let bench = bench().await;
    let batch = batch(&["Once is enough."]);
    bench.publish(&batch).await;
    bench.constructor.round().await.unwrap();
    // The crash between commit and acknowledgement: the queue hands the same batch out again.
    bench.publish(&batch).await;
    bench.constructor.round().await.unwrap();
    assert_eq!(bench.vectors_in_feed().await.len(), 1);
}

#[tokio::test]
async fn a_large_batch_is_stored_with_the_vectors_of_its_first_turns_and_the_others_follow() {
    let bench = bench().await;
    let mut batch = batch(&["1", "2", "3", "4", "5", "6"]);
    for turn in &mut batch.turns {
        turn.content.text = "We walked along the river for an hour. ".repeat(1_500);
    }
    bench.publish(&batch).await;
    bench.constructor.round().await.unwrap();
    let stored = [true, true, true, true, false, false];
    assert_eq!(bench.vectors_in_feed().await, stored);
    let mut postponed = Postponed::default();
    let backfilled = bench.constructor.backfill_once(&mut postponed).await;
    assert_eq!(backfilled.unwrap(), 2);
    assert_eq!(bench.vectors_in_feed().await, [true; 6]);
}

#[tokio::test]
async fn an_embedder_that_is_down_delays_vectors_and_never_turns() {
    let bench = bench().await;
    bench.embedder.set_down(true);
    let batch = batch(&["Stored all the same."]);
    bench.publish(&batch).await;
    bench.constructor.round().await.unwrap();
    assert_eq!(bench.vectors_in_feed().await, [false]);
    let backfill = async || {
        let mut postponed = Postponed::default();
        bench.constructor.backfill_once(&mut postponed).await
    };
    assert!(backfill().await.is_err());
    bench.embedder.set_down(false);
    assert_eq!(backfill().await.unwrap(), 1);
    assert_eq!(bench.vectors_in_feed().await, [true]);
    assert_eq!(backfill().await.unwrap(), 0);
}

#[tokio::test]
async fn a_taken_external_id_becomes_a_dead_letter_and_its_neighbours_are_stored() {
    let bench = bench().await;
    let first = batch(&["The original."]);
    let mut second = batch(&["The original.", "A neighbour."]);
    second.turns[0].content.text = "Another text under the same external id.".to_owned();
    bench.publish(&first).await;
    bench.publish(&second).await;
    bench.constructor.round().await.unwrap();
    let status = bench
        .store
        .batch(&scope(), second.id)
        .await
        .unwrap()
        .unwrap();
    let states = status
        .turns
        .iter()
        .map(|turn| turn.state)
        .collect::<Vec<_>>();
    assert_eq!(states, [TurnState::DeadLettered, TurnState::Stored]);
    let letters = bench
        .store
        .dead_letters(&scope().tenant, Some(&scope().space), 10, None)
        .await
        .unwrap()
        .items;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].batch.turns.len(), 1);
    assert!(
        letters[0].reason.starts_with("EXTERNAL_ID_CONFLICT"),
        "{}",
        letters[0].reason
    );
    assert_eq!(bench.depth().await.batches, 0);
}

#[tokio::test]
async fn text_in_any_script_and_of_any_length_is_stored() {
    let bench = bench().await;
    let long = "a long tale without an end ".repeat(2_000);
    let batch = batch(&["私は京都に引っ越しました。", "Привет 👋🏽 мир", "\u{202e}rtl"]);
    let mut longer = batch.clone();
    longer.turns[0].content.text = long;
    longer.turns.truncate(1);
    longer.turns[0].id = TurnId::from_bytes([7; 16]);
    longer.turns[0].external_id = None;
    longer.id = BatchId::from_bytes([7; 16]);
    bench.publish(&batch).await;
    bench.publish(&longer).await;
    bench.constructor.round().await.unwrap();
    assert_eq!(bench.vectors_in_feed().await, [true; 4]);
}

/// The terms of the turns in the index, by turn.
async fn terms(bench: &Bench) -> Vec<Vec<String>> {
    let changes = bench.store.changes_after(&scope(), 0, 100).await.unwrap();
    let terms = |change: Change| match change {
        Change::Stored(turn) => {
            let passages = turn.passages.into_iter();
            passages
                .flat_map(|passage| passage.terms)
                .map(|(term, _)| term)
                .collect()
        }
        _ => Vec::new(),
    };
    changes.changes.into_iter().map(terms).collect()
}

#[tokio::test]
async fn a_space_keeps_the_language_of_its_first_turns_whatever_a_later_one_is_in() {
    let bench = bench().await;
    let german = [
        "Gestern bin ich mit meiner Schwester in die Stadt gefahren.",
        "Wir haben dort ein neues Fahrrad für unseren Vater gekauft, weil das alte gestohlen wurde.",
        "Danach gingen wir noch in ein kleines Café am Fluss und sprachen über die Ferien.",
    ];
    bench.publish(&batch(&["Ja."])).await;
    bench.constructor.round().await.unwrap();
    let language = async || {
        let space = bench.store.get(&scope()).await.unwrap().unwrap();
        space.language().map(str::to_owned)
    };
    assert_eq!(language().await, None);
    bench.publish(&batch(&german)).await;
    bench.constructor.round().await.unwrap();
    assert_eq!(language().await.as_deref(), Some("de"));
    let english = "The sister, and the brother who was with her, bought two bicycles because theirs had been stolen.";
    bench.publish(&batch(&[english, "Fahrräder"])).await;
    bench.constructor.round().await.unwrap();
    assert_eq!(language().await.as_deref(), Some("de"));
    let terms = terms(&bench).await;
    let found = |turn: &[String]| turn.iter().any(|term| term.starts_with("fahrrad"));
    assert!(found(&terms[2]) && found(&terms[5]), "{terms:?}");
}
