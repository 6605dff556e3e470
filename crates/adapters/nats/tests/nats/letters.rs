//! How many dead letters there may be, and what is asked to tell how many there are.

use std::time::Duration;

use futures::StreamExt;
use memfleet_domain::ids::BatchId;
use memfleet_domain::ingestion::Batch;
use memfleet_nats::{NatsQueue, Options};
use memfleet_ports::conformance::samples::{batch, home, instant, turn};
use memfleet_ports::queue::{Bounds, DeadLetter, IngestQueue};

use crate::server::{fresh, options, replicas, soon, url};

/// Publishes a batch and makes a dead letter of it.
async fn bury(queue: &NatsQueue, batch: &Batch) {
    let published = queue.publish(batch, instant(0), Bounds::NONE).await;
    let letter = DeadLetter {
        acceptance: published.unwrap().acceptance,
        batch: batch.clone(),
        reason: "POISON".into(),
        failed_at: instant(1),
        attempts: 1,
    };
    queue.dead_letter(&letter).await.unwrap();
}

async fn left(queue: &NatsQueue) -> Vec<BatchId> {
    let letters = queue.dead_letters(&home().tenant, None, 10, None).await;
    let letters = letters.unwrap().items.into_iter();
    letters.map(|letter| letter.batch.id).collect()
}

#[tokio::test]
async fn the_oldest_letters_of_a_tenant_go_where_there_are_too_many_or_too_large_ones() {
    let few = Options {
        letters: 2,
        ..options()
    };
    let small = Options {
        letter_bytes: 16 << 10,
        ..options()
    };
    for (options, stay) in [(few, 2), (small, 4)] {
        let ([queue], _streams) = replicas(options).await;
        let text = "x".repeat(4 << 10);
        let told: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"]
            .map(|name| batch(name, vec![turn(name, &text)]))
            .into();
        for batch in &told {
            bury(&queue, batch).await;
        }
        let youngest: Vec<_> = told[told.len() - stay..].iter().map(|it| it.id).collect();
        assert_eq!(left(&queue).await, youngest);
    }
}

/// Listings of dead letters that the queue asked the server for meanwhile.
async fn listings(queue: &NatsQueue, meanwhile: impl Future<Output = ()>) -> Vec<String> {
    let client = async_nats::connect(url()).await.unwrap();
    let stream = format!("{}_DEAD_LETTERS", queue.options().prefix.to_uppercase());
    let asked = format!("$JS.API.STREAM.INFO.{stream}");
    let mut asked = client.subscribe(asked).await.unwrap();
    // The server knows of the first subscription once it serves a later one.
    let inbox = client.new_inbox();
    let mut echo = client.subscribe(inbox.clone()).await.unwrap();
    client.publish(inbox, "".into()).await.unwrap();
    soon("the echo", echo.next()).await;
    meanwhile.await;
    let mut listings = Vec::new();
    while let Ok(Some(question)) =
        tokio::time::timeout(Duration::from_millis(300), asked.next()).await
    {
        let question = String::from_utf8_lossy(&question.payload).into_owned();
        listings.extend(question.contains("subjects_filter").then_some(question));
    }
    listings
}

/// However many others have.
#[tokio::test]
async fn a_depth_lists_dead_letters_of_its_tenant_alone_and_of_what_waits_none() {
    let (queue, _streams) = fresh().await;
    bury(&queue, &batch("a", vec![turn("a", "x")])).await;
    let waiting = listings(&queue, async {
        queue.waiting_depth(&home().tenant).await.unwrap();
    });
    assert_eq!(waiting.await, [""; 0]);
    let of_all = listings(&queue, async {
        assert_eq!(queue.depth(None).await.unwrap().all.dead_letters, 1);
    });
    assert_eq!(of_all.await, [""; 0]);
    let own = listings(&queue, async {
        let depths = queue.depth(Some(&home().tenant)).await.unwrap();
        assert_eq!((depths.own.dead_letters, depths.all.dead_letters), (1, 1));
    });
    let (own, filter) = (own.await, queue.options().prefix.clone() + ".dead.acme.>");
    assert!(own.len() == 1 && own[0].contains(&filter), "{own:?}");
}
