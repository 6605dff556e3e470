//! From publish to acknowledge.

use std::time::Duration;

use super::{of, positions, publish, some, take};
use crate::conformance::samples::{batch, batch_in, home, instant, scope, turn_in};

use crate::queue::{Bounds, IngestQueue};
use crate::store::StoreError;

/// Byte by byte.
pub async fn batches_come_back_as_published_in_the_order_of_acceptance(queue: &impl IngestQueue) {
    assert_eq!(queue.take(10).await, Ok(vec![]));
    let first = publish(queue, "k1", 8).await;
    let second = publish(queue, "k2", 1).await;
    assert!(first < second);
    let deliveries = queue.take(100).await.expect("take");
    assert_eq!(positions(&deliveries), [first, second]);
    assert_eq!(deliveries[0].batch, some("k1", 8));
    assert_eq!(deliveries[0].attempt, 1);
}

/// A caller tries again before the worker came.
pub async fn a_batch_that_waits_is_not_added_again(queue: &impl IngestQueue) {
    let acceptance = publish(queue, "k", 2).await;
    let again = queue
        .publish(&some("k", 2), instant(9), Bounds::NONE)
        .await
        .expect("publish");
    assert_eq!((again.acceptance, again.duplicate), (acceptance, true));
    assert_eq!(take(queue, 100).await, [acceptance]);
    let held = queue
        .publish(&some("k", 2), instant(9), Bounds::NONE)
        .await
        .expect("publish");
    assert_eq!((held.acceptance, held.duplicate), (acceptance, true));
    assert_eq!(take(queue, 100).await, [0; 0]);
}

/// With both hashes.
pub async fn the_same_batch_with_another_payload_is_a_conflict(queue: &impl IngestQueue) {
    publish(queue, "k", 2).await;
    let (stored, given) = (some("k", 2).payload_hash(), some("k", 3).payload_hash());
    match queue.publish(&some("k", 3), instant(0), Bounds::NONE).await {
        Err(StoreError::Conflict {
            stored: old,
            given: new,
            ..
        }) => {
            assert_eq!((old, new), (stored.to_string(), given.to_string()));
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
    assert_eq!(queue.take(100).await.expect("take")[0].batch, some("k", 2));
}

/// And in another tenant's space of that name.
pub async fn the_same_key_in_another_space_is_another_batch(queue: &impl IngestQueue) {
    for scope in [home(), scope("globex", "ada"), scope("acme", "bob")] {
        let mut told = batch_in(
            &scope,
            "k",
            vec![turn_in(&scope, "s", "a", &scope.to_string())],
        );
        // Even when the ids were equal.
        told.id = batch("k", vec![]).id;
        assert!(
            !queue
                .publish(&told, instant(0), Bounds::NONE)
                .await
                .expect("publish")
                .duplicate
        );
    }
    assert_eq!(take(queue, 100).await.len(), 3);
}

/// Whoever has much waiting does not hold up the others; each one's own order is kept.
pub async fn tenants_are_served_in_turn(queue: &impl IngestQueue) {
    let mut backlog = Vec::new();
    for n in 0..6 {
        backlog.push(publish(queue, &format!("k{n}"), 2).await);
    }
    let mut theirs = Vec::new();
    for tenant in ["globex", "initech"] {
        let batch = of(tenant, "k", 2);
        let published = queue
            .publish(&batch, instant(0), Bounds::NONE)
            .await
            .expect("publish");
        theirs.push(published.acceptance);
    }
    let first = take(queue, 6).await;
    assert_eq!(first, [backlog[0], theirs[0], theirs[1]]);
    assert_eq!(take(queue, 6).await, backlog[1..4]);
    assert_eq!(take(queue, 6).await, backlog[4..]);
}

/// The turn of a tenant comes even though another's batch fills a whole round.
pub async fn a_large_batch_of_one_tenant_holds_up_another_for_one_round_only(
    queue: &impl IngestQueue,
) {
    let mut backlog = Vec::new();
    for key in ["k1", "k2", "k3"] {
        backlog.push(publish(queue, key, 50).await);
    }
    let batch = of("globex", "k", 1);
    let theirs = queue
        .publish(&batch, instant(0), Bounds::NONE)
        .await
        .expect("publish");
    assert_eq!(take(queue, 10).await, [backlog[0]]);
    assert_eq!(take(queue, 10).await, [backlog[1], theirs.acceptance]);
}

/// The turn of a space comes even though another of the same tenant has a backlog.
pub async fn a_backlog_of_one_space_holds_up_another_of_its_tenant_for_one_round_only(
    queue: &impl IngestQueue,
) {
    let mut backlog = Vec::new();
    for key in ["k1", "k2", "k3", "k4", "k5", "k6"] {
        backlog.push(publish(queue, key, 2).await);
    }
    let other = scope(home().tenant.as_str(), "another");
    let batch = batch_in(&other, "k", vec![turn_in(&other, "s", "k", "x")]);
    let published = queue.publish(&batch, instant(0), Bounds::NONE).await;
    let short = published.expect("publish").acceptance;
    let mut taken = take(queue, 2).await;
    taken.extend(take(queue, 2).await);
    assert!(taken.contains(&short), "{taken:?} without {short}");
    taken.retain(|position| *position != short);
    assert_eq!(taken, backlog[..taken.len()]);
}

/// About as many turns as asked for.
pub async fn taking_stops_at_the_bound_and_brings_one_batch_at_least(queue: &impl IngestQueue) {
    let mut accepted = Vec::new();
    for (key, turns) in [("k1", 50), ("k2", 3), ("k3", 3), ("k4", 3), ("k5", 3)] {
        accepted.push(publish(queue, key, turns).await);
    }
    assert_eq!(take(queue, 10).await, accepted[..1]);
    let some = take(queue, 6).await;
    assert!((2..=3).contains(&some.len()), "{some:?}");
    assert_eq!(some, accepted[1..=some.len()]);
    assert_eq!(take(queue, 1).await.len(), 1);
}

/// Or a round of them would hold up all others.
pub async fn long_turns_count_by_their_size(queue: &impl IngestQueue) {
    let mut accepted = Vec::new();
    for key in ["k1", "k2", "k3"] {
        let mut long = of("acme", key, 1);
        long.turns[0].content.text = "word ".repeat(8 << 10);
        let published = queue.publish(&long, instant(0), Bounds::NONE).await;
        accepted.push(published.expect("publish").acceptance);
    }
    assert_eq!(take(queue, 64).await, accepted[..2]);
    assert_eq!(take(queue, 64).await, accepted[2..]);
}

/// Two workers do not get the same batch.
pub async fn what_is_held_is_not_handed_out_again(queue: &impl IngestQueue) {
    let first = publish(queue, "k1", 1).await;
    assert_eq!(take(queue, 100).await, [first]);
    assert_eq!(take(queue, 100).await, [0; 0]);
    let second = publish(queue, "k2", 1).await;
    assert_eq!(take(queue, 100).await, [second]);
}

/// Its attempts are counted.
pub async fn what_is_given_back_comes_again_first(queue: &impl IngestQueue) {
    let accepted = [
        publish(queue, "k1", 1).await,
        publish(queue, "k2", 1).await,
        publish(queue, "k3", 1).await,
    ];
    assert_eq!(take(queue, 2).await, accepted[..2]);
    queue
        .release(&[accepted[1], accepted[0]])
        .await
        .expect("release");
    let deliveries = queue.take(100).await.expect("take");
    assert_eq!(positions(&deliveries), accepted);
    let attempts: Vec<_> = deliveries.iter().map(|delivery| delivery.attempt).collect();
    assert_eq!(attempts, [2, 2, 1]);
}

/// A round that stops early must not use up the attempts of what it did not come to.
pub async fn what_is_given_back_untried_counts_no_attempt(queue: &impl IngestQueue) {
    let accepted = [publish(queue, "k1", 1).await, publish(queue, "k2", 1).await];
    assert_eq!(take(queue, 100).await, accepted);
    queue
        .release_untried(&[accepted[1]])
        .await
        .expect("release");
    let deliveries = queue.take(100).await.expect("take");
    assert_eq!(positions(&deliveries), [accepted[1]]);
    assert_eq!(deliveries[0].attempt, 1);
}

/// Without an attempt, and nothing waits behind it meanwhile; whoever waits is woken.
pub async fn what_is_postponed_comes_again_after_a_moment(queue: &impl IngestQueue) {
    let accepted = [publish(queue, "k1", 1).await, publish(queue, "k2", 1).await];
    assert_eq!(take(queue, 1).await, accepted[..1]);
    queue.postpone(&accepted[..1]).await.expect("postpone");
    assert_eq!(take(queue, 100).await, accepted[1..]);
    let again = async {
        loop {
            let deliveries = queue.take(100).await.expect("take");
            if !deliveries.is_empty() {
                return deliveries;
            }
            queue.ready().await;
        }
    };
    let deliveries = tokio::time::timeout(Duration::from_secs(10), again).await;
    let deliveries = deliveries.expect("in time");
    assert_eq!(positions(&deliveries), accepted[..1]);
    assert_eq!(deliveries[0].attempt, 1);
}

/// The order of acceptance is one for ever.
pub async fn what_is_acknowledged_is_gone_and_its_position_is_not_given_out_again(
    queue: &impl IngestQueue,
) {
    let first = publish(queue, "k1", 1).await;
    take(queue, 100).await;
    queue.acknowledge(&[first]).await.expect("acknowledge");
    queue
        .acknowledge(&[first])
        .await
        .expect("acknowledge again");
    queue.release(&[first]).await.expect("release what is gone");
    assert_eq!(take(queue, 100).await, [0; 0]);
    assert!(publish(queue, "k1", 1).await > first);
}

/// Some of them retries of each other.
pub async fn publishing_at_the_same_time_loses_and_doubles_nothing(queue: &impl IngestQueue) {
    let batches: Vec<_> = (0..64).map(|n| some(&format!("k{}", n % 48), 2)).collect();
    let published = futures::future::join_all(
        batches
            .iter()
            .map(|batch| queue.publish(batch, instant(0), Bounds::NONE)),
    )
    .await;
    let fresh = published
        .iter()
        .filter(|published| matches!(published, Ok(published) if !published.duplicate));
    assert_eq!(fresh.count(), 48);
    let mut taken = Vec::new();
    loop {
        let deliveries = queue.take(10).await.expect("take");
        if deliveries.is_empty() {
            break;
        }
        taken.extend(positions(&deliveries));
    }
    assert_eq!(taken.len(), 48);
    assert!(taken.is_sorted_by(|before, after| before < after));
}
