//! A forget is carried to its end: caches hear of it, and the file is scrubbed, though its caller left or the scrub failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::{FaultKind, Scope, Timestamp};
use memfleet_ports::erasure::{Erased, Erasure};
use memfleet_ports::events::Event;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::refresher::Refresher;
use memfleet_ports::store::{Result, StoreError};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::bench::{acme, bench, conversation, home, of_session};
use crate::watched::watched;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_forget_whose_caller_left_is_announced_and_scrubbed_all_the_same() {
    let (bench, watched) = watched(None).await;
    bench.commit(&home(), 1, conversation(&home())).await;
    watched.permits.forget_permits(usize::MAX);
    let mut heard = bench.refresher.events.listen();
    let refresher = bench.refresher.clone();
    let forgetting = tokio::spawn(async move {
        let call = acme(Duration::from_mins(1));
        refresher.forget(&call, &of_session("s1")).await
    });
    let begun = timeout(PATIENCE, watched.begun.notified()).await;
    begun.expect("the scrub begins");
    forgetting.abort();
    assert!(forgetting.await.unwrap_err().is_cancelled());
    let forgotten = Event::Forgotten { scope: home() };
    assert_eq!(heard.try_recv().unwrap(), forgotten);
    watched.permits.add_permits(1);
    let done = timeout(PATIENCE, watched.done.notified()).await;
    done.expect("the scrub goes on");
}

#[tokio::test]
async fn a_forget_is_announced_though_its_scrub_fails() {
    let (bench, watched) = watched(None).await;
    bench.commit(&home(), 1, conversation(&home())).await;
    watched.failing.store(1, Ordering::SeqCst);
    let mut heard = bench.refresher.events.listen();
    let fault = bench.forget(&of_session("s1")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unavailable);
    let forgotten = Event::Forgotten { scope: home() };
    assert_eq!(heard.try_recv().unwrap(), forgotten);
}

/// An erasure of which only scrubs are asked; the first ones fail.
struct Scrubs {
    failing: AtomicU32,
    done: Notify,
}

#[async_trait]
impl Erasure for Scrubs {
    async fn plan(&self, _: &Scope, _: &TurnFilter) -> Result<Erased> {
        unreachable!("only scrubs are asked for")
    }

    async fn remove(&self, _: &Scope, _: &TurnFilter) -> Result<Erased> {
        unreachable!("only scrubs are asked for")
    }

    async fn expire(&self, _: &Scope, _: Timestamp, _: u32) -> Result<Erased> {
        unreachable!("only scrubs are asked for")
    }

    async fn scrub(&self) -> Result<()> {
        let left = self.failing.load(Ordering::SeqCst);
        if left > 0 {
            self.failing.store(left - 1, Ordering::SeqCst);
            return Err(StoreError::Unavailable("readers".into()));
        }
        self.done.notify_one();
        Ok(())
    }

    async fn expired(&self, _: Timestamp) -> Result<Vec<Scope>> {
        unreachable!("only scrubs are asked for")
    }
}

#[tokio::test]
async fn a_scrub_that_is_still_due_is_tried_until_it_works() {
    let mut refresher = bench().await.refresher;
    let scrubs = Arc::new(Scrubs {
        failing: AtomicU32::new(3),
        done: Notify::new(),
    });
    refresher.erasure = scrubs.clone();
    // The time between the attempts passes at once; the store is not asked any more.
    tokio::time::pause();
    let stop = CancellationToken::new();
    tokio::select! {
        () = refresher.run_scrubbing(stop) => unreachable!("nobody stops it"),
        () = scrubs.done.notified() => {}
    }
    assert_eq!(scrubs.failing.load(Ordering::SeqCst), 0);
}
