//! What the roles of a process do besides answering calls.

use memfleet_runtime::BoxError;
use memfleet_runtime::lifecycle::{Lifecycle, Policy};
use tokio_util::sync::CancellationToken;

use super::Process;

impl Process {
    /// Starts the workers.
    pub fn spawn(&self, process: &mut Lifecycle) {
        self.spawn_constructor(process);
        self.spawn_refresher(process);
        self.spawn_retriever(process);
        if let Some(storage) = &self.storage {
            let access = self.gateway.as_ref().map(|gateway| gateway.access.clone());
            storage.spawn(&self.events, access, process);
        }
    }

    fn spawn_constructor(&self, process: &mut Lifecycle) {
        let Some(constructor) = &self.constructor else {
            return;
        };
        let worker = constructor.clone();
        process.spawn("constructor", Policy::Essential, |stop| {
            finish(async move { worker.run(stop).await })
        });
        let worker = constructor.clone();
        self.supervise(process, "backfill", move |stop| {
            let worker = worker.clone();
            async move { worker.run_backfill(stop).await }
        });
        let worker = constructor.clone();
        self.supervise(process, "gauges", move |stop| {
            let worker = worker.clone();
            async move { worker.run_gauges(stop).await }
        });
    }

    fn spawn_refresher(&self, process: &mut Lifecycle) {
        let Some(refresher) = &self.refresher else {
            return;
        };
        let worker = refresher.clone();
        self.supervise(process, "retention", move |stop| {
            let worker = worker.clone();
            async move { worker.run_retention(stop).await }
        });
        if let Some((log, retention)) = self.audit.clone() {
            let worker = refresher.clone();
            self.supervise(process, "audit", move |stop| {
                let (worker, log) = (worker.clone(), log.clone());
                async move { worker.run_audit_retention(&*log, retention, stop).await }
            });
        }
        let worker = refresher.clone();
        self.supervise(process, "scrub", move |stop| {
            let worker = worker.clone();
            async move { worker.run_scrubbing(stop).await }
        });
    }

    fn spawn_retriever(&self, process: &mut Lifecycle) {
        let Some(retriever) = self.retriever.clone() else {
            return;
        };
        let events = self.events.clone();
        process.spawn("index", Policy::Essential, |stop| {
            finish(async move { retriever.follow(&events, stop).await })
        });
    }

    /// Starts work that goes on whatever happens, and has the status say how it is.
    fn supervise<F>(
        &self,
        process: &mut Lifecycle,
        name: &'static str,
        work: impl Fn(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let health = self.health.clone();
        let works = move |works: bool| {
            // The cause is for the log: it may quote what a tenant wrote.
            let trouble = "it failed and is started again; the log of the node says why";
            health.report(name, (!works).then(|| trouble.to_owned()));
            metrics::gauge!("memfleet_part_works", "part" => name).set(f64::from(u8::from(works)));
        };
        process.supervise(name, works, work);
    }
}

async fn finish(work: impl Future<Output = ()>) -> Result<(), BoxError> {
    work.await;
    Ok(())
}
