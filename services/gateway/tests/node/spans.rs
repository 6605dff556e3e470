//! What the log tells of a use-case: whose it is and how much, under the call, and never what was said.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::TryStreamExt;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::Memory;
use memfleet_ports::refresher::ForgetRequest;
use tracing::Instrument;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::roles::{Node, acme, recall, said, space};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn every_use_case_has_a_span_under_its_call_and_no_words_in_it() {
    let sink = Sink::default();
    let writer = sink.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // Beside a second dispatcher a span that another test's thread meets first is shown to all of them, not to that thread's alone.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _default = tracing::subscriber::set_default(subscriber);
    let node = Node::new().await;
    // A span that another test's thread was registering while this subscriber came is known to nobody until all are asked again.
    tracing::callsite::rebuild_interest_cache();
    let call = || tracing::info_span!("call");
    async {
        node.told("ada", vec![said("the xylophone"), said("is mine")])
            .await;
        let asked = recall("ada", "xylophone", &[]);
        node.gateway.recall(&acme(), asked).await.unwrap();
        let records = node
            .gateway
            .export(&acme(), &space("ada"), &TurnFilter::default())
            .await
            .unwrap();
        let records: Vec<_> = records.try_collect().await.unwrap();
        let records = futures::stream::iter(records.into_iter().map(Ok));
        node.gateway
            .import(&acme(), &space("bob"), Box::pin(records))
            .await
            .unwrap();
        let forget = ForgetRequest {
            space: space("ada"),
            filter: TurnFilter::default(),
            everything: true,
            dry_run: false,
        };
        node.gateway.forget(&acme(), forget).await.unwrap();
    }
    .instrument(call())
    .await;
    let read = || String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    // The store's threads let go of the last span a moment after the answer.
    let closed = async {
        while !read().contains("dry_run=false turns=2}: memfleet_gateway::memory: close") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(10), closed).await;
    closed.expect("the last span ends");
    let log = read();
    for span in [
        "call:remember{tenant=acme space=ada turns=2}",
        "ingest{batches=1 turns=2}",
        "call:recall{tenant=acme spaces=ada k=10 hits=2}",
        "call:export{tenant=acme space=ada}",
        "call:import{tenant=acme space=bob accepted=2 duplicates=0 forgotten=0}",
        "call:forget{tenant=acme space=ada dry_run=false turns=2}",
    ] {
        assert!(log.contains(span), "{span} is missing in\n{log}");
    }
    assert!(!log.contains("xylophone") && !log.contains("mine"), "{log}");
}
