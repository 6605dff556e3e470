//! A server of its own that is killed and started again on the same files.

use std::time::{Duration, Instant};

use memfleet_domain::ingestion::Batch;
use memfleet_nats::NatsQueue;
use memfleet_ports::conformance::samples::{batch, instant, turn};
use memfleet_ports::events::{Event, Events};

use memfleet_ports::queue::{Bounds, IngestQueue};
use memfleet_ports::store::StoreError;

use crate::own::Server;
use crate::server::{connected, soon};

fn some(n: u32) -> Batch {
    let key = format!("k{n}");
    batch(&key, vec![turn(&key, "x")])
}

async fn publish(queue: &NatsQueue, n: u32) -> Result<u64, StoreError> {
    let published = queue.publish(&some(n), instant(0), Bounds::NONE).await?;
    Ok(published.acceptance)
}

async fn published(queue: &NatsQueue, n: u32) -> u64 {
    loop {
        match publish(queue, n).await {
            Ok(acceptance) => return acceptance,
            Err(StoreError::Unavailable(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn a_process_may_start_before_the_server() {
    let mut server = Server::new(&[]);
    let queue = NatsQueue::connect(server.options()).await.unwrap();
    let error = publish(&queue, 0).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("127.0.0.1:{}", server.port)),
        "{error}"
    );
    assert!(
        !error.contains("secret") && !error.contains("someone"),
        "{error}"
    );
    server.start();
    soon("the server", published(&queue, 0)).await;
}

#[tokio::test]
async fn a_server_that_is_killed_loses_nothing_that_was_acknowledged() {
    let mut server = Server::new(&[]);
    server.start();
    let queue = soon("the server", async {
        let queue = NatsQueue::connect(server.options()).await.unwrap();
        while queue.prepared().await.is_err() {}
        queue
    })
    .await;
    let mut accepted = Vec::new();
    for n in 0..20 {
        accepted.push(publish(&queue, n).await.unwrap());
    }
    let held = queue.take(5).await.unwrap();
    let held: Vec<_> = held.iter().map(|delivery| delivery.acceptance).collect();
    assert_eq!(held, accepted[..5]);
    server.kill();
    let begun = Instant::now();
    for call in [
        publish(&queue, 20).await.map(|_| ()),
        queue.take(5).await.map(|_| ()),
        queue.depth(None).await.map(|_| ()),
        queue.acknowledge(&held).await,
    ] {
        assert!(matches!(call, Err(StoreError::Unavailable(_))), "{call:?}");
    }
    let limit = server.options().request_timeout * 4 + Duration::from_secs(2);
    assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    server.start();
    accepted.push(soon("the server", published(&queue, 20)).await);
    // What was held across the outage can be acknowledged, and the rest comes in its order.
    queue.acknowledge(&held).await.unwrap();
    let mut taken = Vec::new();
    soon("the rest", async {
        while taken.len() < 16 {
            let deliveries = queue.take(4).await.unwrap();
            let positions: Vec<_> = deliveries.iter().map(|one| one.acceptance).collect();
            queue.acknowledge(&positions).await.unwrap();
            if positions.is_empty() {
                queue.ready().await;
            }
            taken.extend(positions);
        }
    })
    .await;
    assert_eq!(taken, accepted[5..]);
    assert_eq!(queue.depth(None).await.unwrap().all.batches, 0);
}

#[tokio::test]
async fn listeners_learn_that_they_may_have_missed_something() {
    let mut server = Server::new(&[]);
    server.start();
    let events = Events::default();
    let mut heard = events.listen();
    let queue = NatsQueue::connect(server.options()).await.unwrap();
    let missing = async {
        while queue.prepared().await.is_err() {}
        server.kill();
        while queue.depth(None).await.is_ok() {}
        server.start();
        heard.recv().await
    };
    let first = tokio::select! {
        () = queue.bridge(&events) => panic!("the bridge ended"),
        heard = soon("the word", missing) => heard,
    };
    assert_eq!(first, Ok(Event::Missed));
    let _again = connected(&server.options()).await;
}
