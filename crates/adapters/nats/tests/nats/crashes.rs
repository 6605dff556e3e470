//! Processes that end without a word, batches that end them, and the letters that these become.

use std::time::Duration;

use memfleet_domain::ids::BatchId;
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

/// Works in a process of its own until that takes the poison, which ends it, or until nothing comes; what was applied.
fn work_until_it_ends(options: &Options, poison: BatchId) -> Vec<BatchId> {
    let options = options.clone();
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let applied = runtime.block_on(async {
            let queue = connected(&options).await;
            let mut applied = Vec::new();
            loop {
                let next = tokio::time::timeout(Duration::from_secs(2), next(&queue)).await;
                let Ok(deliveries) = next else {
                    queue.close().await;
                    return applied;
                };
                if deliveries.iter().any(|one| one.batch.id == poison) {
                    std::mem::forget(queue);
                    return applied;
                }
                for one in deliveries {
                    queue.acknowledge(&[one.acceptance]).await.unwrap();
                    applied.push(one.batch.id);
                }
            }
        });
        runtime.shutdown_background();
        applied
    });
    process.join().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_ends_whoever_takes_it_becomes_a_dead_letter_and_its_neighbours_do_not() {
    let options = Options {
        together: 2,
        tries: 2,
        ..quick()
    };
    let ([queue], _streams) = replicas(options.clone()).await;
    let options = Options {
        prefix: queue_prefix(&queue),
        ..options
    };
    let told = |name: &str| batch(name, vec![turn(name, "x")]);
    let (poison, mut applied) = (told("poison"), Vec::new());
    for batch in [told("before"), poison.clone(), told("behind"), told("last")] {
        let published = queue.publish(&batch, instant(0), Bounds::NONE).await;
        published.unwrap();
    }
    let letter = loop {
        applied.extend(work_until_it_ends(&options, poison.id));
        if let Some(letter) = queue.buried(&home(), poison.id).await.unwrap() {
            break letter;
        }
    };
    assert!(letter.reason.starts_with("PROCESS_DIED: "), "{letter:?}");
    assert_eq!((letter.batch, letter.attempts), (poison.clone(), 2));
    applied.sort_unstable();
    let mut others = ["before", "behind", "last"].map(|name| told(name).id);
    others.sort_unstable();
    assert_eq!(applied, others);
    let letters = queue
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await
        .unwrap();
    assert_eq!(letters.items.len(), 1);
    assert_eq!(queue.replay(&home(), &[]).await, Ok(1));
    assert_eq!(queue.take(10).await.unwrap()[0].attempt, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_in_order_use_up_no_tries() {
    let options = Options {
        together: 1,
        tries: 2,
        ..quick()
    };
    let ([queue], _streams) = replicas(options.clone()).await;
    let options = Options {
        prefix: queue_prefix(&queue),
        ..options
    };
    let told = batch("k", vec![turn("a", "x")]);
    let published = queue.publish(&told, instant(0), Bounds::NONE).await;
    let acceptance = published.unwrap().acceptance;
    for _ in 0..6 {
        let process = connected(&options).await;
        let taken = soon("the batch", next(&process)).await;
        assert_eq!(taken[0].acceptance, acceptance);
        process.release_untried(&[acceptance]).await.unwrap();
        process.close().await;
    }
    assert_eq!(soon("the batch", next(&queue)).await[0].batch, told);
    assert_eq!(queue.buried(&home(), told.id).await, Ok(None));
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
    let letters = queue
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await
        .unwrap();
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
