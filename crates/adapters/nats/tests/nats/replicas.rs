//! Several processes on the same queue: each with a connection of its own, as different processes have.

use std::collections::BTreeSet;

use memfleet_nats::NatsQueue;
use memfleet_ports::conformance::samples::{batch, batch_in, home, instant, scope, turn, turn_in};
use memfleet_ports::queue::{Bounds, IngestQueue, Place};

use crate::server::{fresh, options, replicas, soon};

async fn publish(queue: &NatsQueue, key: &str) -> u64 {
    let told = batch(key, vec![turn(key, "x")]);
    let published = queue
        .publish(&told, instant(0), Bounds::NONE)
        .await
        .unwrap();
    published.acceptance
}

/// Takes and acknowledges until all of `expected` were taken by somebody.
async fn work(queue: &NatsQueue, taken: &tokio::sync::Mutex<Vec<u64>>, expected: usize) -> usize {
    let mut own = 0;
    while taken.lock().await.len() < expected {
        let deliveries = queue.take(4).await.unwrap();
        let positions: Vec<_> = deliveries
            .iter()
            .map(|delivery| delivery.acceptance)
            .collect();
        taken.lock().await.extend(&positions);
        own += positions.len();
        queue.acknowledge(&positions).await.unwrap();
        if positions.is_empty() && taken.lock().await.len() < expected {
            let _or_the_other_took_it =
                tokio::time::timeout(std::time::Duration::from_millis(200), queue.ready()).await;
        }
    }
    own
}

#[tokio::test]
async fn replicas_share_the_work_and_nothing_is_handed_out_twice() {
    let ([gateway, first, second], _streams) = replicas(options()).await;
    let mut published = BTreeSet::new();
    for n in 0..400 {
        published.insert(publish(&gateway, &format!("k{n}")).await);
    }
    let taken = tokio::sync::Mutex::new(Vec::new());
    let working = async { tokio::join!(work(&first, &taken, 400), work(&second, &taken, 400)) };
    let (own, others) = soon("the work", working).await;
    let taken = taken.into_inner();
    assert_eq!(taken.len(), 400);
    assert_eq!(BTreeSet::from_iter(taken), published);
    assert!(own > 40 && others > 40, "{own} and {others}");
}

#[tokio::test]
async fn what_one_publishes_wakes_the_other() {
    let ([gateway, constructor], _streams) = replicas(options()).await;
    assert_eq!(constructor.take(10).await, Ok(vec![]));
    let taking = async {
        loop {
            let deliveries = constructor.take(10).await.unwrap();
            if let [delivery] = &deliveries[..] {
                return delivery.acceptance;
            }
            constructor.ready().await;
        }
    };
    let (taken, published) = soon("the batch", async {
        tokio::join!(taking, publish(&gateway, "k"))
    })
    .await;
    assert_eq!(taken, published);
}

#[tokio::test]
async fn the_same_batch_through_two_gateways_is_one() {
    let ([first, second], _streams) = replicas(options()).await;
    for round in 0..10 {
        let told = batch(&format!("k{round}"), vec![turn("a", "x")]);
        let (one, other) = tokio::join!(
            first.publish(&told, instant(0), Bounds::NONE),
            second.publish(&told, instant(1), Bounds::NONE),
        );
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!(one.acceptance, other.acceptance);
        assert_ne!(one.duplicate, other.duplicate);
    }
}

#[tokio::test]
async fn what_is_given_back_at_the_end_another_has_at_once() {
    let ([first, second], _streams) = replicas(options()).await;
    let published = publish(&first, "k").await;
    assert_eq!(first.take(10).await.unwrap().len(), 1);
    assert_eq!(second.take(10).await, Ok(vec![]));
    first.close().await;
    let again = soon("the batch", async {
        loop {
            let deliveries = second.take(10).await.unwrap();
            if let [delivery] = &deliveries[..] {
                return (delivery.acceptance, delivery.attempt);
            }
            second.ready().await;
        }
    })
    .await;
    assert_eq!(
        again,
        (published, 1),
        "it counts as no attempt of the other"
    );
}

#[tokio::test]
async fn a_batch_that_was_applied_may_be_published_again() {
    let (queue, _streams) = fresh().await;
    let mut before = 0;
    for _ in 0..4 {
        let published = publish(&queue, "k").await;
        assert!(published > before);
        before = published;
        assert_eq!(queue.take(10).await.unwrap().len(), 1);
        queue.acknowledge(&[published]).await.unwrap();
    }
}

#[tokio::test]
async fn hostile_names_of_tenants_stay_apart() {
    let (queue, _streams) = fresh().await;
    let long = "x".repeat(128);
    let names = [
        "a", "a.b", "a=2Eb", "*", ">", "a *", "a >", "ア ダ", "=", &long,
    ];
    for name in names {
        let space = scope(name, "s");
        let told = batch_in(&space, "k", vec![turn_in(&space, "s", "1", name)]);
        queue
            .publish(&told, instant(0), Bounds::NONE)
            .await
            .unwrap();
    }
    for name in names {
        let space = scope(name, "s");
        let depths = queue.depth(Some(&space.tenant)).await.unwrap();
        assert_eq!((depths.own.batches, depths.all.batches), (1, 10), "{name}");
        let id = batch_in(&space, "k", vec![]).id;
        let waiting = queue.waiting(&space, id).await.unwrap().unwrap();
        assert_eq!(waiting.turns[0].content.text, name);
        assert_eq!(queue.place(&space, id).await, Ok(Some(Place::Waiting)));
    }
    assert_eq!(queue.waiting_span(&home()).await, Ok(None));
    assert_eq!(queue.take(100).await.unwrap().len(), 10);
}
