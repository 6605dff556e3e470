//! What can be asked of the queue, and waiting for it.

use memfleet_domain::Scope;

use super::{depth, letter, of, publish, some, take};
use crate::conformance::samples::{batch_in, home, instant, scope, turn_in};

use crate::queue::{Bounds, Depth, Depths, IngestQueue, Place};
use crate::store::StoreError;

/// Held or not, in its own space only.
pub async fn a_batch_that_waits_is_found(queue: &impl IngestQueue) {
    let told = some("k", 2);
    let found = async |scope: &Scope| {
        let place = queue.place(scope, told.id).await.expect("place");
        let waiting = queue.waiting(scope, told.id).await.expect("waiting");
        (place, waiting)
    };
    assert_eq!(found(&home()).await, (None, None));
    let acceptance = publish(queue, "k", 2).await;
    let waits = (Some(Place::Waiting), Some(told.clone()));
    assert_eq!(found(&home()).await, waits);
    take(queue, 100).await;
    assert_eq!(found(&home()).await, waits);
    assert_eq!(found(&scope("globex", "ada")).await, (None, None));
    queue.acknowledge(&[acceptance]).await.expect("acknowledge");
    assert_eq!(found(&home()).await, (None, None));
}

/// Whoever must see all that was accepted waits for it.
pub async fn the_span_of_a_space_covers_what_waits_and_what_is_held(queue: &impl IngestQueue) {
    assert_eq!(queue.waiting_span(&home()).await, Ok(None));
    let bob = scope("acme", "bob");
    let theirs = batch_in(&bob, "k", vec![turn_in(&bob, "s", "a", "x")]);
    queue
        .publish(&theirs, instant(0), Bounds::NONE)
        .await
        .expect("publish");
    let first = publish(queue, "k1", 1).await;
    take(queue, 100).await;
    let last = publish(queue, "k2", 1).await;
    assert_eq!(queue.waiting_span(&home()).await, Ok(Some((first, last))));
    queue.acknowledge(&[first]).await.expect("acknowledge");
    assert_eq!(queue.waiting_span(&home()).await, Ok(Some((last, last))));
}

/// A listing of spaces waits for those that are about to exist.
pub async fn spaces_with_waiting_batches_are_listed_by_their_youngest(queue: &impl IngestQueue) {
    let waiting = async |limit| {
        let listed = queue.waiting_spaces(&home().tenant, limit).await;
        let names = listed.expect("waiting spaces").into_iter();
        names.map(|space| space.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(waiting(10).await, [""; 0]);
    let mut accepted = Vec::new();
    for (second, (tenant, space)) in [
        ("acme", "bob"),
        ("acme", "ada"),
        ("globex", "eve"),
        ("acme", "bob"),
    ]
    .into_iter()
    .enumerate()
    {
        let scope = scope(tenant, space);
        let key = format!("k{second}");
        let theirs = batch_in(&scope, &key, vec![turn_in(&scope, "s", "a", &key)]);
        let published = queue.publish(&theirs, instant(second as i64), Bounds::NONE);
        accepted.push(published.await.expect("publish").acceptance);
    }
    assert_eq!(waiting(10).await, ["bob", "ada"]);
    assert_eq!(waiting(1).await, ["bob"]);
    take(queue, 100).await;
    assert_eq!(waiting(10).await, ["bob", "ada"]);
    queue.acknowledge(&accepted).await.expect("acknowledge");
    assert_eq!(waiting(10).await, [""; 0]);
}

/// For shedding and for the status page.
pub async fn the_depth_counts_batches_turns_bytes_and_the_oldest(queue: &impl IngestQueue) {
    assert_eq!(depth(queue).await, Depths::default());
    for (key, turns, second) in [("k1", 3, 50), ("k2", 4, 60)] {
        queue
            .publish(&some(key, turns), instant(second), Bounds::NONE)
            .await
            .expect("publish");
    }
    let taken = take(queue, 1).await;
    let Depths { own, all } = depth(queue).await;
    assert_eq!(own, all);
    let bytes = own.bytes;
    let words = |turns| {
        some("k", turns)
            .turns
            .iter()
            .map(|turn| turn.content.text.len())
            .sum::<usize>()
    };
    assert!(bytes >= (words(3) + words(4)) as u64);
    let expected = Depth {
        batches: 2,
        turns: 7,
        bytes,
        oldest: Some(instant(50)),
        dead_letters: 0,
    };
    assert_eq!(own, expected);
    queue.acknowledge(&taken).await.expect("acknowledge");
    let own = depth(queue).await.own;
    assert!(own.bytes < bytes);
    let expected = Depth {
        batches: 1,
        turns: 4,
        bytes: own.bytes,
        oldest: Some(instant(60)),
        dead_letters: 0,
    };
    assert_eq!(own, expected);
}

/// Among those of all.
pub async fn the_depth_of_a_tenant_is_its_own(queue: &impl IngestQueue) {
    let theirs = of("globex", "k", 5);
    queue
        .publish(&theirs, instant(0), Bounds::NONE)
        .await
        .expect("publish");
    publish(queue, "k", 2).await;
    let Depths { own, all } = depth(queue).await;
    assert_eq!((own.batches, own.turns), (1, 2));
    assert_eq!((all.batches, all.turns), (2, 7));
}

/// Nor what others wrote.
pub async fn the_depth_of_what_waits_counts_no_dead_letters(queue: &impl IngestQueue) {
    publish(queue, "k1", 1).await;
    let delivery = queue.take(1).await.expect("take").remove(0);
    let letter = letter(&delivery, instant(1));
    queue.dead_letter(&letter).await.expect("dead letter");
    publish(queue, "k2", 2).await;
    let theirs = of("globex", "k", 5);
    let published = queue.publish(&theirs, instant(0), Bounds::NONE).await;
    published.expect("publish");
    let Depths { own, all } = depth(queue).await;
    assert_eq!((own.dead_letters, all.dead_letters), (1, 1));
    let expected = Depth {
        dead_letters: 0,
        ..own
    };
    assert_eq!(queue.waiting_depth(&home().tenant).await, Ok(expected));
}

/// In turns and in what is kept of them, also of what is published at the same moment; a retry is no more than there was.
pub async fn a_tenant_has_its_share_of_the_queue(queue: &impl IngestQueue) {
    publish(queue, "first", 1).await;
    let one = depth(queue).await.own.bytes;
    let bounds = |turns, bytes| Bounds { turns, bytes };
    let full = |published| matches!(published, Err(StoreError::QueueFull { .. }));
    for narrow in [bounds(3, u64::MAX), bounds(u64::MAX, 3 * one)] {
        assert!(full(
            queue.publish(&some("more", 1), instant(0), narrow).await
        ));
    }
    let wide = bounds(8, 1 << 20);
    let batches: Vec<_> = (0..9).map(|n| some(&format!("k{n}"), 1)).collect();
    let published = batches
        .iter()
        .map(|batch| queue.publish(batch, instant(0), wide));
    let published = futures::future::join_all(published).await;
    assert_eq!(published.iter().filter(|one| one.is_ok()).count(), 3);
    assert_eq!(depth(queue).await.own.turns, 4);
    let again = queue.publish(&some("first", 1), instant(0), wide).await;
    assert!(again.expect("a retry").duplicate);
    let theirs = of("globex", "k", 100);
    let first = queue.publish(&theirs, instant(0), wide).await;
    assert!(
        first.is_ok(),
        "nobody is shut out by the backlog of another"
    );
}

/// No polling.
pub async fn publishing_wakes_whoever_waits(queue: &impl IngestQueue) {
    let waiting = async {
        while take(queue, 10).await.is_empty() {
            queue.ready().await;
        }
    };
    tokio::join!(waiting, publish(queue, "k", 1));
    publish(queue, "before anyone waits", 1).await;
    queue.ready().await;
    assert_eq!(take(queue, 10).await.len(), 1);
}

/// Another worker, or the same one later.
pub async fn giving_back_wakes_whoever_waits(queue: &impl IngestQueue) {
    let acceptance = publish(queue, "k", 1).await;
    queue.ready().await;
    take(queue, 10).await;
    let waiting = async {
        while take(queue, 10).await.is_empty() {
            queue.ready().await;
        }
    };
    let giving_back = async { queue.release(&[acceptance]).await.expect("release") };
    tokio::join!(waiting, giving_back);
}
