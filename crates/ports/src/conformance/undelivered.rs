//! What every erasure does to what is not stored yet.

use memfleet_domain::ingestion::{Batch, TurnReceipt, TurnState};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::AcceptedTurn;

use super::samples::{batch, home, indexed, instant, scope, session, speaker, turn, turn_in};
use crate::erasure::{Erased, Erasure};
use crate::filter::TurnFilter;
use crate::ledger::Ledger;
use crate::queue::{Bounds, DeadLetter, Delivery, Depth, IngestQueue};
use crate::spaces::SpaceCatalog;

/// Runs every case on a store that is queue, ledger and erasure.
#[macro_export]
macro_rules! undelivered_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            undelivered,
            [
                queued_turns_that_match_are_removed_and_the_others_stay,
                dead_letters_that_match_are_removed_and_the_others_stay,
                dead_letters_are_subject_to_retention,
                a_delivery_in_the_hands_of_a_worker_does_not_bring_back_what_was_forgotten,
                a_delivery_leaves_nothing_in_a_space_that_was_forgotten_as_a_whole,
                a_letter_holds_nothing_that_was_forgotten_before_it_was_written,
                a_batch_of_which_nothing_is_left_is_settled,
                everything_reaches_a_space_that_is_still_in_the_queue,
                a_retry_of_a_batch_that_lost_turns_is_no_conflict,
            ]
        );
    };
}

/// A store that all this can be asked of.
pub trait Store: IngestQueue + Ledger + Erasure {}

impl<S: IngestQueue + Ledger + Erasure> Store for S {}

/// The letter of a delivery that failed for good.
fn letter(delivery: Delivery) -> DeadLetter {
    DeadLetter {
        acceptance: delivery.acceptance,
        batch: delivery.batch,
        reason: "POISON: x".into(),
        failed_at: instant(1),
        attempts: 3,
    }
}

fn by(name: &str, external: &str) -> AcceptedTurn {
    AcceptedTurn {
        speaker: speaker(name),
        ..turn(external, &format!("{name} said {external}"))
    }
}

fn of(name: &str) -> TurnFilter {
    TurnFilter {
        speakers: vec![speaker(name)],
        ..TurnFilter::default()
    }
}

async fn publish(store: &impl Store, batch: &Batch) -> u64 {
    store
        .publish(batch, instant(0), Bounds::NONE)
        .await
        .expect("publish")
        .acceptance
}

async fn depth(store: &impl Store) -> Depth {
    store.depth(Some(&home().tenant)).await.expect("depth").own
}

async fn queued(store: &impl Store) -> Vec<Batch> {
    let deliveries = store.take(1_000).await.expect("take");
    deliveries
        .into_iter()
        .map(|delivery| delivery.batch)
        .collect()
}

/// The plan counts them.
pub async fn queued_turns_that_match_are_removed_and_the_others_stay(store: &impl Store) {
    let mixed = batch(
        "mixed",
        vec![by("Ada", "1"), by("Ben", "2"), by("Ada", "3")],
    );
    let only = batch("only", vec![by("Ben", "4")]);
    let other = batch("other", vec![by("Ada", "5")]);
    for batch in [&mixed, &only, &other] {
        publish(store, batch).await;
    }
    let planned = store.plan(&home(), &of("Ben")).await.expect("plan");
    assert_eq!(
        planned,
        Erased {
            undelivered: 2,
            ..Erased::default()
        }
    );
    let before = depth(store).await;
    assert_eq!(before.turns, 5);
    assert_eq!(store.erase(&home(), &of("Ben")).await, Ok(planned));
    let depth = depth(store).await;
    assert_eq!((depth.batches, depth.turns), (2, 3));
    assert!((before.bytes / 5..before.bytes).contains(&depth.bytes));
    let rest = batch("mixed", vec![by("Ada", "1"), by("Ada", "3")]);
    assert_eq!(queued(store).await, [rest, other]);
}

/// As in the queue.
pub async fn dead_letters_that_match_are_removed_and_the_others_stay(store: &impl Store) {
    let mixed = batch("mixed", vec![by("Ada", "1"), by("Ben", "2")]);
    let only = batch("only", vec![by("Ben", "4")]);
    for batch in [&mixed, &only] {
        publish(store, batch).await;
    }
    for delivery in store.take(100).await.expect("take") {
        store
            .dead_letter(&letter(delivery))
            .await
            .expect("dead letter");
    }
    let erased = store.erase(&home(), &of("Ben")).await.expect("erase");
    assert_eq!(
        erased,
        Erased {
            undelivered: 2,
            ..Erased::default()
        }
    );
    let letters = store
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await
        .expect("dead letters")
        .items;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].batch, batch("mixed", vec![by("Ada", "1")]));
}

/// Also in a space with nothing else that is past its period.
pub async fn dead_letters_are_subject_to_retention(store: &(impl Store + SpaceCatalog)) {
    let keep = SpaceSettings {
        retention_days: Some(10),
        ..SpaceSettings::default()
    };
    store.put(&home(), &keep, instant(0)).await.expect("put");
    publish(store, &batch("k", vec![by("Ada", "1")])).await;
    let delivery = store.take(100).await.expect("take").remove(0);
    store
        .dead_letter(&letter(delivery))
        .await
        .expect("dead letter");
    let left_at = async |now| {
        for scope in store.expired(now).await.expect("expired") {
            store.expire(&scope, now, 100).await.expect("expire");
        }
        let letters = store
            .dead_letters(&home().tenant, Some(&home().space), 10, None)
            .await;
        letters.expect("dead letters").items.len()
    };
    assert_eq!(left_at(instant(9 * 86_400)).await, 1);
    assert_eq!(left_at(instant(11 * 86_400)).await, 0);
}

/// It had read the text before the forget, and commits after it.
pub async fn a_delivery_in_the_hands_of_a_worker_does_not_bring_back_what_was_forgotten(
    store: &impl Store,
) {
    let mixed = batch("mixed", vec![by("Ada", "1"), by("Ben", "2")]);
    let acceptance = publish(store, &mixed).await;
    let delivery = store.take(100).await.expect("take").remove(0);
    store.erase(&home(), &of("Ben")).await.expect("erase");
    let committed = store
        .commit(vec![indexed(delivery.batch, acceptance)])
        .await
        .expect("commit");
    let states: Vec<_> = committed[0]
        .turns
        .iter()
        .map(|receipt| receipt.state)
        .collect();
    assert_eq!(states, [TurnState::Stored, TurnState::Forgotten]);
    let page = store
        .list(&home(), &TurnFilter::default(), 10, None)
        .await
        .expect("list");
    assert_eq!(page.items.len(), 1);
    let again = batch("sent again", vec![by("Ben", "2"), by("Ben", "3")]);
    let acceptance = publish(store, &again).await;
    store
        .commit(vec![indexed(again, acceptance)])
        .await
        .expect("commit");
    let page = store
        .list(&home(), &TurnFilter::default(), 10, None)
        .await
        .expect("list");
    let left: Vec<_> = page.items.iter().map(|turn| turn.accepted.id).collect();
    assert_eq!(left, [by("Ada", "1").id, by("Ben", "3").id]);
}

/// The worker had read the text before the forget.
pub async fn a_letter_holds_nothing_that_was_forgotten_before_it_was_written(store: &impl Store) {
    let bury = async |delivery: Delivery| {
        store
            .dead_letter(&letter(delivery))
            .await
            .expect("dead letter");
        let letters = store
            .dead_letters(&home().tenant, Some(&home().space), 10, None)
            .await;
        letters.expect("dead letters").items
    };
    publish(store, &batch("mixed", vec![by("Ada", "1"), by("Ben", "2")])).await;
    let delivery = store.take(100).await.expect("take").remove(0);
    store.erase(&home(), &of("Ben")).await.expect("erase");
    let letters = bury(delivery).await;
    assert_eq!(letters[0].batch.turns, [by("Ada", "1")]);
    publish(store, &batch("sent again", vec![by("Ben", "2")])).await;
    let delivery = store.take(100).await.expect("take").remove(0);
    assert_eq!(bury(delivery).await.len(), 1, "the first letter alone");
    publish(store, &batch("all", vec![by("Ada", "3")])).await;
    let delivery = store.take(100).await.expect("take").remove(0);
    let everything = TurnFilter::default();
    store.erase(&home(), &everything).await.expect("erase");
    assert_eq!(bury(delivery).await, []);
}

/// Nor a receipt, which would keep the same batch from being told anew.
pub async fn a_delivery_leaves_nothing_in_a_space_that_was_forgotten_as_a_whole(
    store: &impl Store,
) {
    let everything = TurnFilter::default();
    let told = batch("k", vec![by("Ada", "1"), by("Ben", "2")]);
    let acceptance = publish(store, &told).await;
    let delivery = store.take(100).await.expect("take").remove(0);
    store.erase(&home(), &everything).await.expect("erase");
    let committed = store
        .commit(vec![indexed(delivery.batch, acceptance)])
        .await
        .expect("commit");
    let is_forgotten = |receipt: &TurnReceipt| receipt.state == TurnState::Forgotten;
    assert_eq!(committed[0].turns.len(), 2);
    assert!(committed[0].turns.iter().all(is_forgotten));
    let left = store.plan(&home(), &everything).await;
    assert_eq!(left, Ok(Erased::default()), "the space stays gone");
    assert_eq!(store.batch(&home(), told.id).await, Ok(None));
    let again = publish(store, &told).await;
    let committed = store.commit(vec![indexed(told, again)]).await;
    let is_stored = |receipt: &TurnReceipt| receipt.state == TurnState::Stored;
    assert!(committed.expect("commit")[0].turns.iter().all(is_stored));
}

/// Whoever waits for it learns that.
pub async fn a_batch_of_which_nothing_is_left_is_settled(store: &impl Store) {
    let only = batch("only", vec![by("Ben", "1")]);
    publish(store, &only).await;
    store.erase(&home(), &of("Ben")).await.expect("erase");
    assert_eq!(store.waiting(&home(), only.id).await, Ok(None));
    let status = store
        .batch(&home(), only.id)
        .await
        .expect("batch")
        .expect("settled");
    assert_eq!(status.payload_hash, None);
    assert_eq!(status.turns.len(), 1);
    assert_eq!(
        (status.turns[0].id, status.turns[0].state),
        (only.turns[0].id, TurnState::Forgotten)
    );
}

/// And no other space.
pub async fn everything_reaches_a_space_that_is_still_in_the_queue(store: &impl Store) {
    let bob = scope("acme", "bob");
    let theirs = super::samples::batch_in(&bob, "k", vec![turn_in(&bob, "s", "a", "stays")]);
    publish(store, &theirs).await;
    publish(store, &batch("k", vec![by("Ben", "1")])).await;
    let erased = store
        .erase(&home(), &TurnFilter::default())
        .await
        .expect("erase");
    assert_eq!(
        erased,
        Erased {
            undelivered: 1,
            ..Erased::default()
        }
    );
    assert_eq!(queued(store).await, [theirs]);
}

/// Its hash is gone with what it was about.
pub async fn a_retry_of_a_batch_that_lost_turns_is_no_conflict(store: &impl Store) {
    let told = batch(
        "k",
        vec![
            turn_in(&home(), "s1", "1", "x"),
            turn_in(&home(), "s2", "2", "y"),
        ],
    );
    let acceptance = publish(store, &told).await;
    let filter = TurnFilter {
        sessions: vec![session("s2")],
        ..TurnFilter::default()
    };
    store.erase(&home(), &filter).await.expect("erase");
    let again = store
        .publish(&told, instant(0), Bounds::NONE)
        .await
        .expect("publish");
    assert_eq!((again.acceptance, again.duplicate), (acceptance, true));
    assert_eq!(queued(store).await[0].turns.len(), 1);
}
