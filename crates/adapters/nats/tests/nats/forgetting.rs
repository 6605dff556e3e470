//! What a forget takes out of the queue and the dead letters.

use std::time::Duration;

use memfleet_domain::ingestion::Batch;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_nats::NatsQueue;
use memfleet_ports::conformance::samples::{
    batch, batch_in, home, instant, scope, speaker, turn, turn_in,
};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::queue::{Bounds, DeadLetter, Delivery, IngestQueue};
use memfleet_ports::undelivered::{Matching, Undelivered, Unreadable};

use crate::server::{fresh, options, replicas, soon};

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

fn letter(delivery: Delivery) -> DeadLetter {
    DeadLetter {
        acceptance: delivery.acceptance,
        batch: delivery.batch,
        reason: "POISON: x\nand more".into(),
        failed_at: instant(1),
        attempts: 3,
    }
}

async fn publish(queue: &NatsQueue, batch: &Batch) -> u64 {
    let published = queue
        .publish(batch, instant(0), Bounds::NONE)
        .await
        .unwrap();
    published.acceptance
}

async fn take(queue: &NatsQueue) -> Vec<Delivery> {
    queue.take(1_000).await.unwrap()
}

async fn matching(queue: &NatsQueue, filter: &TurnFilter) -> Matching {
    let matching = queue.matching(&home(), filter, Unreadable::All).await;
    matching.unwrap()
}

async fn forget(queue: &NatsQueue, filter: &TurnFilter) -> Matching {
    let matching = matching(queue, filter).await;
    queue.withdraw(&home(), &matching).await.unwrap();
    matching
}

fn mixed() -> Batch {
    batch(
        "mixed",
        vec![by("Ada", "1"), by("Ben", "2"), by("Ada", "3")],
    )
}

#[tokio::test]
async fn turns_that_match_leave_the_queue_and_the_others_stay_at_their_place() {
    let (queue, _streams) = fresh().await;
    let only = batch("only", vec![by("Ben", "4")]);
    let other = batch("other", vec![by("Ada", "5")]);
    let mut accepted = Vec::new();
    for batch in [&mixed(), &only, &other] {
        accepted.push(publish(&queue, batch).await);
    }
    let before = queue.depth(Some(&home().tenant)).await.unwrap().own;
    let found = forget(&queue, &of("Ben")).await;
    assert_eq!((found.turns(), found.unreadable()), (2, 0));
    let depth = queue.depth(Some(&home().tenant)).await.unwrap().own;
    assert_eq!((depth.batches, depth.turns), (2, 3));
    assert!((before.bytes / 5..before.bytes).contains(&depth.bytes));
    let rest = batch("mixed", vec![by("Ada", "1"), by("Ada", "3")]);
    let taken = take(&queue).await;
    let batches: Vec<_> = taken.iter().map(|delivery| &delivery.batch).collect();
    assert_eq!(batches, [&rest, &other]);
    let positions: Vec<_> = taken.iter().map(|delivery| delivery.acceptance).collect();
    assert_eq!(positions, [accepted[0], accepted[2]]);
    assert_eq!(forget(&queue, &of("Ben")).await, Matching::default());
}

#[tokio::test]
async fn a_retry_of_a_batch_that_lost_turns_is_no_conflict_and_no_other_batch() {
    let (queue, _streams) = fresh().await;
    let accepted = publish(&queue, &mixed()).await;
    forget(&queue, &of("Ben")).await;
    let again = queue.publish(&mixed(), instant(9), Bounds::NONE).await;
    let again = again.unwrap();
    assert_eq!((again.acceptance, again.duplicate), (accepted, true));
    let taken = take(&queue).await;
    assert_eq!((taken.len(), taken[0].batch.turns.len()), (1, 2));
}

#[tokio::test]
async fn what_was_forgotten_as_a_whole_may_be_told_anew() {
    let (queue, _streams) = fresh().await;
    let accepted = publish(&queue, &mixed()).await;
    forget(&queue, &TurnFilter::default()).await;
    assert_eq!(queue.waiting(&home(), mixed().id).await, Ok(None));
    assert!(publish(&queue, &mixed()).await > accepted);
    assert_eq!(take(&queue).await.len(), 1);
}

#[tokio::test]
async fn letters_lose_the_turns_that_match() {
    let (queue, _streams) = fresh().await;
    publish(&queue, &mixed()).await;
    publish(&queue, &batch("only", vec![by("Ben", "4")])).await;
    for delivery in take(&queue).await {
        queue.dead_letter(&letter(delivery)).await.unwrap();
    }
    let spaces = [home(), scope("acme", "bob")];
    let lettered = queue.with_letters(&spaces).await;
    assert_eq!(lettered, Ok([home()].into()));
    let found = forget(&queue, &of("Ben")).await;
    assert_eq!((found.letters.len(), found.turns()), (2, 2));
    let letters = queue
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await
        .unwrap()
        .items;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].batch.turns, [by("Ada", "1"), by("Ada", "3")]);
    assert_eq!(letters[0].reason, "POISON: x\nand more");
    assert_eq!(queue.replay(&home(), &[]).await, Ok(1));
    assert_eq!(take(&queue).await[0].batch.turns.len(), 2);
}

#[tokio::test]
async fn a_letter_holds_nothing_that_was_forgotten_before_it_was_written() {
    let (queue, _streams) = fresh().await;
    publish(&queue, &mixed()).await;
    let delivery = take(&queue).await.remove(0);
    forget(&queue, &of("Ben")).await;
    queue.dead_letter(&letter(delivery)).await.unwrap();
    let letters = queue
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await
        .unwrap()
        .items;
    assert_eq!(letters[0].batch.turns, [by("Ada", "1"), by("Ada", "3")]);
    assert_eq!(queue.depth(None).await.unwrap().all.batches, 0);
    publish(&queue, &batch("all", vec![by("Ada", "4")])).await;
    let delivery = take(&queue).await.remove(0);
    forget(&queue, &TurnFilter::default()).await;
    queue.dead_letter(&letter(delivery)).await.unwrap();
    let letters = queue
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await
        .unwrap()
        .items;
    assert_eq!(letters, []);
}

#[tokio::test]
async fn what_is_held_while_it_is_forgotten_is_done_with_its_acknowledgement() {
    let (queue, _streams) = fresh().await;
    let accepted = publish(&queue, &mixed()).await;
    assert_eq!(take(&queue).await.len(), 1);
    forget(&queue, &of("Ben")).await;
    assert_eq!(take(&queue).await, [], "the rest waits for the whole");
    queue.acknowledge(&[accepted]).await.unwrap();
    assert_eq!(take(&queue).await, []);
    assert_eq!(queue.waiting_span(&home()).await, Ok(None));
}

#[tokio::test]
async fn a_forget_and_letters_at_the_same_time_leave_nothing_of_what_was_forgotten() {
    let ([worker, refresher], _streams) = replicas(options()).await;
    for round in 0..25 {
        let key = format!("{round}");
        let told = batch(
            &key,
            vec![by("Ada", &format!("a{key}")), by("Ben", &format!("b{key}"))],
        );
        publish(&worker, &told).await;
        let delivery = take(&worker).await.remove(0);
        let letter = letter(delivery);
        let ben = of("Ben");
        let later = Duration::from_micros(round * 400);
        let forgetting = async {
            tokio::time::sleep(later).await;
            forget(&refresher, &ben).await
        };
        let (buried, _) = tokio::join!(worker.dead_letter(&letter), forgetting);
        buried.unwrap();
        let left = soon("the end", matching(&refresher, &of("Ben"))).await;
        assert!(left.is_empty(), "{round}: {left:?}");
    }
    let everything = matching(&refresher, &of("Ada")).await;
    assert_eq!(everything.turns(), 25);
}

#[tokio::test]
async fn a_forget_reaches_its_space_only_and_knows_the_last_position() {
    let (queue, _streams) = fresh().await;
    assert_eq!(queue.last_acceptance().await, Ok(0));
    let bob = scope("acme", "bob");
    let theirs = batch_in(&bob, "k", vec![turn_in(&bob, "s", "a", "stays")]);
    publish(&queue, &theirs).await;
    let last = publish(&queue, &mixed()).await;
    assert_eq!(queue.last_acceptance().await, Ok(last));
    let found = forget(&queue, &TurnFilter::default()).await;
    assert_eq!(found.turns(), 3);
    assert_eq!(take(&queue).await[0].batch, theirs);
}
