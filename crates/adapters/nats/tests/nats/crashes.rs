//! Processes that end without a word, and batches that end them.

use std::time::Duration;

use memfleet_nats::{NatsQueue, Options};
use memfleet_ports::conformance::samples::{batch, home, instant, turn};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::queue::{Bounds, Delivery, IngestQueue, Place};
use memfleet_ports::undelivered::{Undelivered, Unreadable};

use crate::server::{connected, options, replicas, soon};

/// Takes one batch in a process of its own, which ends without giving it back.
fn take_and_crash(options: &Options) -> usize {
    let options = options.clone();
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let taken = runtime.block_on(async {
            let queue = connected(&options).await;
            let deliveries = soon("the batch", next(&queue)).await.len();
            std::mem::forget(queue);
            deliveries
        });
        runtime.shutdown_background();
        taken
    });
    process.join().unwrap()
}

async fn next(queue: &NatsQueue) -> Vec<Delivery> {
    loop {
        let deliveries = queue.take(10).await.unwrap();
        if !deliveries.is_empty() {
            return deliveries;
        }
        queue.ready().await;
    }
}

fn quick() -> Options {
    Options {
        ack_wait: Duration::from_millis(600),
        ..options()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crashed_process_held_comes_again() {
    let ([queue], _streams) = replicas(quick()).await;
    let options = Options {
        prefix: queue_prefix(&queue),
        ..quick()
    };
    let told = batch("k", vec![turn("a", "x")]);
    queue
        .publish(&told, instant(0), Bounds::NONE)
        .await
        .unwrap();
    assert_eq!(take_and_crash(&options), 1);
    let again = soon("the batch", next(&queue)).await;
    assert_eq!((&again[0].batch, again[0].attempt), (&told, 1));
    queue.acknowledge(&[again[0].acceptance]).await.unwrap();
    assert_eq!(queue.place(&home(), told.id).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_living_process_holds_stays_with_it() {
    // Wide enough that a machine busy with other tests still says its word in time.
    let ack_wait = Duration::from_secs(3);
    let options = Options {
        ack_wait,
        ..options()
    };
    let ([first, second], _streams) = replicas(options).await;
    let told = batch("k", vec![turn("a", "x")]);
    first
        .publish(&told, instant(0), Bounds::NONE)
        .await
        .unwrap();
    assert_eq!(first.take(10).await.unwrap().len(), 1);
    let other = tokio::time::timeout(ack_wait * 2, next(&second)).await;
    assert!(other.is_err(), "{other:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_ends_whoever_takes_it_becomes_a_dead_letter() {
    let options = Options {
        max_deliveries: 2,
        ..quick()
    };
    let ([queue], _streams) = replicas(options.clone()).await;
    let options = Options {
        prefix: queue_prefix(&queue),
        ..options
    };
    let told = batch("k", vec![turn("a", "x")]);
    queue
        .publish(&told, instant(0), Bounds::NONE)
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(take_and_crash(&options), 1);
    }
    let letter = soon("the letter", async {
        loop {
            assert_eq!(queue.take(10).await, Ok(vec![]));
            if let Some(letter) = queue.buried(&home(), told.id).await.unwrap() {
                return letter;
            }
            queue.ready().await;
        }
    })
    .await;
    assert!(
        letter.reason.starts_with("DELIVERED_TOO_OFTEN: "),
        "{letter:?}"
    );
    assert_eq!((letter.batch, letter.attempts), (told.clone(), 2));
    assert_eq!(queue.replay(&home(), &[]).await, Ok(1));
    assert_eq!(queue.take(10).await.unwrap()[0].attempt, 1);
}

#[tokio::test]
async fn a_batch_that_cannot_be_read_becomes_a_dead_letter_as_it_was_found() {
    let ([queue], _streams) = replicas(options()).await;
    let told = batch("k", vec![turn("a", "x")]);
    queue
        .publish(&told, instant(0), Bounds::NONE)
        .await
        .unwrap();
    let client = async_nats::connect(crate::server::url()).await.unwrap();
    let prefix = queue_prefix(&queue);
    let mut subject = String::new();
    let context = async_nats::jetstream::new(client.clone());
    let stream = context
        .get_stream(format!("{}_INGEST", prefix.to_uppercase()))
        .await
        .unwrap();
    let stored = stream.get_raw_message(1).await.unwrap();
    subject.push_str(&stored.subject);
    stream.delete_message(1).await.unwrap();
    let acknowledged = context.publish(subject, "{broken".into()).await.unwrap();
    acknowledged.await.unwrap();
    let behind = batch("behind", vec![turn("b", "y")]);
    queue
        .publish(&behind, instant(0), Bounds::NONE)
        .await
        .unwrap();
    let taken = queue.take(10).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].batch, behind);
    assert_eq!(queue.place(&home(), told.id).await, Ok(Some(Place::Buried)));
    let letter = queue.buried(&home(), told.id).await.unwrap().unwrap();
    assert!(
        letter.reason.starts_with("PAYLOAD_UNREADABLE: "),
        "{letter:?}"
    );
    assert_eq!(letter.batch.turns, []);
    let letters = queue.dead_letters(&home(), 10, None).await.unwrap();
    assert_eq!(letters.items, std::slice::from_ref(&letter));
    assert_eq!(queue.replay(&home(), &[letter.acceptance]).await, Ok(1));
    assert_eq!(queue.take(10).await, Ok(vec![]), "it is buried again");
    let again = queue.buried(&home(), told.id).await.unwrap().unwrap();
    assert_eq!(again.acceptance, letter.acceptance);
    let nobody = TurnFilter {
        turns: vec![behind.turns[0].id],
        ..TurnFilter::default()
    };
    for (unreadable, goes) in [(Unreadable::Before(instant(0)), 0), (Unreadable::All, 1)] {
        let found = queue.matching(&home(), &nobody, unreadable).await.unwrap();
        assert_eq!(found.unreadable(), goes, "{unreadable:?}");
        queue.withdraw(&home(), &found).await.unwrap();
        let lettered = queue.with_letters(&[home()]).await.unwrap();
        assert_eq!(lettered.is_empty(), goes != 0);
    }
}

fn queue_prefix(queue: &NatsQueue) -> String {
    queue.options().prefix.clone()
}
