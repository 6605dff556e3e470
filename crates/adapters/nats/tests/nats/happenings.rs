//! The stream of what happened: each reader gets all of it, once for each that was told, and nothing is kept for nobody.

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::Stream;
use futures::StreamExt;
use memfleet_nats::Options;
use memfleet_ports::conformance::samples::{instant, scope};
use memfleet_ports::outbox::{Audience, Happening, Kind};
use serde_json::Value;

use crate::server::{Streams, connected, options, soon, url};

fn happening(tenant: &str, change: u64) -> Happening {
    Happening {
        scope: scope(tenant, "ada"),
        kind: Kind::Stored,
        after: change - 1,
        change,
        at: instant(0),
    }
}

async fn stream(options: &Options) -> Stream {
    let client = async_nats::connect(url()).await.unwrap();
    let name = format!("{}_EVENTS", options.prefix.to_uppercase());
    async_nats::jetstream::new(client)
        .get_stream(name)
        .await
        .unwrap()
}

async fn reader(stream: &Stream, name: &str) -> PullConsumer {
    let config = pull::Config {
        durable_name: Some(name.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ..pull::Config::default()
    };
    stream.create_consumer(config).await.unwrap()
}

async fn read(reader: &PullConsumer, count: usize) -> Vec<(String, Value)> {
    let reading = async {
        let messages = reader.messages().await.unwrap().take(count);
        let heard = messages.then(async |message| {
            let message = message.unwrap();
            message.ack().await.unwrap();
            let told = serde_json::from_slice(&message.payload).unwrap();
            (message.subject.to_string(), told)
        });
        heard.collect().await
    };
    soon("the events", reading).await
}

#[tokio::test]
async fn every_reader_hears_of_it_once_in_order_and_then_it_is_gone() {
    let options = options();
    let queue = connected(&options).await;
    let _streams = Streams::of(options.clone());
    let mut stream = stream(&options).await;
    let readers = [
        reader(&stream, "judge").await,
        reader(&stream, "consolidator").await,
    ];
    for change in [1, 2, 2, 1, 3] {
        queue.tell(&happening("a.b", change)).await.unwrap();
    }
    for reader in readers {
        let heard = read(&reader, 3).await;
        let subject = format!("{}.stored.a=2Eb", options.prefix);
        assert!(heard.iter().all(|(on, _)| *on == subject), "{heard:?}");
        let changes: Vec<_> = heard
            .iter()
            .map(|(_, told)| told["change"].clone())
            .collect();
        assert_eq!(changes, [1, 2, 3]);
        assert_eq!(heard[0].1["space"], "ada");
    }
    let emptied = async {
        while stream.info().await.unwrap().state.messages > 0 {
            tokio::task::yield_now().await;
        }
    };
    soon("the end of the messages", emptied).await;
}

#[tokio::test]
async fn every_kind_has_a_subject_that_the_stream_takes() {
    let options = options();
    let queue = connected(&options).await;
    let _streams = Streams::of(options.clone());
    let stream = stream(&options).await;
    let reader = reader(&stream, "refresher").await;
    for (change, kind) in (1..).zip(Kind::ALL) {
        let happening = Happening {
            kind,
            ..happening("acme", change)
        };
        queue.tell(&happening).await.unwrap();
    }
    let heard = read(&reader, Kind::ALL.len()).await;
    let told: Vec<_> = heard.iter().map(|(_, told)| &told["kind"]).collect();
    let expected = ["stored", "forgotten", "facts", "conflict", "refreshed"];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_nobody_reads_is_not_kept() {
    let options = options();
    let queue = connected(&options).await;
    let _streams = Streams::of(options.clone());
    queue.tell(&happening("acme", 1)).await.unwrap();
    let mut stream = stream(&options).await;
    assert_eq!(stream.info().await.unwrap().state.messages, 0);
}
