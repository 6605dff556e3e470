//! What is found on the server, and what is made there.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use memfleet_nats::{Auth, NatsQueue, Options};
use memfleet_ports::conformance::samples::{batch, home, instant, turn};
use memfleet_ports::queue::{Accepted, Bounds, IngestQueue};
use memfleet_ports::store::StoreError;
use memfleet_ports::undelivered::Undelivered;

use crate::server::{connected, fresh, options, replicas, soon};

#[tokio::test]
async fn connecting_again_finds_everything_as_it_is() {
    let ([first, second], _streams) = replicas(options()).await;
    assert_eq!(first.differences(), []);
    assert_eq!(second.differences(), []);
}

#[tokio::test]
async fn a_stream_that_was_set_up_differently_is_reported_and_left_as_it_is() {
    let options = options();
    let ([_first], _streams) = replicas(options.clone()).await;
    let other = Options {
        max_batches: 5,
        ack_wait: std::time::Duration::from_secs(7),
        ..options
    };
    for _ in 0..2 {
        let queue = connected(&other).await;
        let reports: Vec<_> = queue
            .differences()
            .iter()
            .map(ToString::to_string)
            .collect();
        let name = other.prefix.to_uppercase();
        let expected = format!("{name}_INGEST: max_msgs is 10000000, expected 5");
        assert!(reports.contains(&expected), "{reports:?}");
        let expected =
            format!("{name}_INGEST/ingest-3: ack_wait is 30000000000, expected 7000000000");
        assert!(reports.contains(&expected), "{reports:?}");
        assert_eq!(reports.len(), 33, "of each of the 32 lanes, too");
    }
}

#[tokio::test]
async fn a_stream_that_is_set_up_differently_while_the_queue_works_is_reported() {
    let options = Options {
        compare_every: Duration::from_millis(100),
        ..options()
    };
    let ([queue], _streams) = replicas(options.clone()).await;
    assert_eq!(queue.differences(), []);
    let name = format!("{}_INGEST", options.prefix.to_uppercase());
    let client = async_nats::connect(crate::server::url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let mut config = jetstream
        .get_stream(&name)
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    config.max_messages = 7;
    jetstream.update_stream(config.clone()).await.unwrap();
    let reported = async |expected: &[String]| loop {
        let reports = queue.differences().into_iter();
        let reports: Vec<_> = reports.map(|difference| difference.to_string()).collect();
        if reports == expected {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let difference = format!("{name}: max_msgs is 7, expected 10000000");
    soon("the report", reported(&[difference])).await;
    config.max_messages = 10_000_000;
    jetstream.update_stream(config).await.unwrap();
    soon("its end", reported(&[])).await;
}

#[tokio::test]
async fn a_server_that_takes_too_little_is_reported() {
    let options = Options {
        largest_batch: 1 << 30,
        ..options()
    };
    let ([queue], _streams) = replicas(options).await;
    let [difference] = &queue.differences()[..] else {
        panic!("one difference: {:?}", queue.differences());
    };
    assert_eq!(difference.field, "max_payload");
}

#[tokio::test]
async fn a_new_stream_goes_on_behind_the_positions_that_were_given_out() {
    let ledger = Arc::new(Stored(AtomicU64::new(999)));
    let options = Options {
        accepted: Some(ledger.clone()),
        ..options()
    };
    let ([queue], _streams) = replicas(options.clone()).await;
    let told = batch("k", vec![turn("a", "x")]);
    assert_eq!(queue.last_acceptance().await, Ok(999));
    let published = queue
        .publish(&told, instant(0), Bounds::NONE)
        .await
        .unwrap();
    assert_eq!(published.acceptance, 1_000);
    let again = connected(&options).await;
    assert_eq!(again.differences(), []);
    // Lost with its volume, after others have stored what this process knows nothing of.
    ledger.0.store(5_000, Ordering::SeqCst);
    delete_stream(&options).await;
    let anew = batch("anew", vec![turn("b", "y")]);
    let published = soon("the stream", async {
        loop {
            let published = queue.publish(&anew, instant(0), Bounds::NONE).await;
            if let Ok(published) = published {
                break published;
            }
        }
    });
    assert_eq!(published.await.acceptance, 5_001);
}

#[tokio::test]
async fn a_stream_that_was_put_back_goes_on_behind_what_the_ledger_knows_and_keeps_what_waits() {
    let options = options();
    let ([before], _streams) = replicas(options.clone()).await;
    let told = batch("k", vec![turn("a", "x")]);
    let published = before.publish(&told, instant(0), Bounds::NONE).await;
    let old = published.unwrap().acceptance;
    before.close().await;
    // The ledger went on after the copy was made.
    let options = Options {
        accepted: Some(Arc::new(Stored(AtomicU64::new(2_500)))),
        ..options
    };
    let queue = connected(&options).await;
    let concerns = queue.concerns().unwrap();
    assert!(
        concerns[0].contains("was put back to position 1, and goes on behind"),
        "{concerns:?}"
    );
    assert_eq!(
        soon("the batch", queue.take(10)).await.unwrap()[0].acceptance,
        old
    );
    queue.acknowledge(&[old]).await.unwrap();
    let new = batch("l", vec![turn("b", "y")]);
    let published = queue.publish(&new, instant(0), Bounds::NONE).await.unwrap();
    assert_eq!(published.acceptance, 2_501);
    assert_eq!(queue.depth(None).await.unwrap().all.batches, 1);
    // Others find it as it should be.
    assert_eq!(connected(&options).await.concerns(), Some(vec![]));
}

#[tokio::test]
async fn a_process_that_goes_on_while_the_stream_is_put_back_acknowledges_no_old_position() {
    let options = options();
    let ([queue], _streams) = replicas(options.clone()).await;
    let told = |n: u32| batch(&format!("k{n}"), vec![turn(&n.to_string(), "x")]);
    for n in 0..5 {
        let published = queue.publish(&told(n), instant(0), Bounds::NONE).await;
        published.unwrap();
    }
    let client = async_nats::connect(crate::server::url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let name = format!("{}_INGEST", options.prefix.to_uppercase());
    let stream = context.get_stream(&name).await.unwrap();
    let config = stream.cached_info().config.clone();
    context.delete_stream(&name).await.unwrap();
    context.create_stream(config).await.unwrap();
    let published = soon("a position", async {
        loop {
            match queue.publish(&told(9), instant(0), Bounds::NONE).await {
                Ok(published) => return published,
                Err(StoreError::Unavailable(_)) => {}
                Err(other) => panic!("{other}"),
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(published.await.acceptance, 6);
    assert_eq!(queue.take(10).await.unwrap().len(), 1, "once");
}

/// A ledger that holds what it says.
#[derive(Debug)]
struct Stored(AtomicU64);

#[async_trait]
impl Accepted for Stored {
    async fn highest_acceptance(&self) -> Result<u64, StoreError> {
        Ok(self.0.load(Ordering::SeqCst))
    }

    async fn forgotten(&self, _: &Scope, _: &[TurnId]) -> Result<HashSet<TurnId>, StoreError> {
        Ok(HashSet::new())
    }
}

async fn delete_stream(options: &Options) {
    let client = async_nats::connect(crate::server::url()).await.unwrap();
    let name = format!("{}_INGEST", options.prefix.to_uppercase());
    let stream = async_nats::jetstream::new(client);
    stream.delete_stream(name).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_is_deleted_is_made_anew_and_goes_on_behind() {
    let (queue, _streams) = fresh().await;
    let told = batch("k", vec![turn("a", "x")]);
    let published = queue
        .publish(&told, instant(0), Bounds::NONE)
        .await
        .unwrap();
    delete_stream(queue.options()).await;
    let again = crate::server::soon("the stream", async {
        loop {
            match queue.publish(&told, instant(0), Bounds::NONE).await {
                Ok(again) => return again,
                Err(StoreError::Unavailable(_)) => {}
                Err(other) => panic!("{other}"),
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(again.acceptance > published.acceptance && !again.duplicate);
    let taken = queue.take(10).await.unwrap();
    assert_eq!(taken[0].acceptance, again.acceptance);
    queue.acknowledge(&[again.acceptance]).await.unwrap();
}

#[tokio::test]
async fn a_full_stream_says_so_and_takes_nothing() {
    let options = Options {
        max_batches: 2,
        ..options()
    };
    let ([queue], _streams) = replicas(options).await;
    for key in ["k1", "k2"] {
        let told = batch(key, vec![turn("a", "x")]);
        queue
            .publish(&told, instant(0), Bounds::NONE)
            .await
            .unwrap();
    }
    let told = batch("k3", vec![turn("a", "x")]);
    let full = queue.publish(&told, instant(0), Bounds::NONE).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    assert_eq!(queue.waiting(&home(), told.id).await, Ok(None));
}

#[tokio::test]
async fn a_batch_that_is_larger_than_the_server_takes_is_refused_with_the_limit() {
    let (queue, _streams) = fresh().await;
    let told = batch("k", vec![turn("a", &"x".repeat(2 << 20))]);
    match queue.publish(&told, instant(0), Bounds::NONE).await {
        Err(StoreError::TooLarge { bytes, limit }) => {
            assert!(bytes > 2 << 20 && limit < 1 << 20, "{bytes} and {limit}");
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn credentials_and_certificates_that_cannot_be_read_are_named_at_once() {
    let auth = Auth::Credentials("/nowhere/memfleet.creds".into());
    let refused = NatsQueue::connect(Options { auth, ..options() }).await;
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("/nowhere/memfleet.creds"), "{message}");
}
