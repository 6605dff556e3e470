//! What the roles of a process do besides answering calls.

use chrono::SecondsFormat;
use memfleet_constructor::{ModelSwitcher, Relay};
use memfleet_domain::Fault;
use memfleet_domain::time::SystemClock;
use memfleet_ports::health::Health;
use memfleet_ports::knowledge::Stage;
use memfleet_runtime::BoxError;
use memfleet_runtime::lifecycle::{Lifecycle, Policy};
use tokio_util::sync::CancellationToken;

use super::Process;
use super::parts::{self, Parts};

impl Process {
    /// Starts the workers.
    pub fn spawn(&self, process: &mut Lifecycle) {
        self.spawn_with(&Stage::ALL, process);
    }

    /// The same with some of the agents only.
    pub fn spawn_with(&self, agents: &[Stage], process: &mut Lifecycle) {
        self.spawn_constructor(process);
        self.spawn_agents(agents, process);
        self.spawn_relay(process);
        self.spawn_refresher(process);
        self.spawn_retriever(process);
        self.spawn_model(process);
        self.spawn_certificates(process);
        self.spawn_parts(process);
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
        if let Some(storage) = &self.storage {
            let switcher = ModelSwitcher {
                switches: storage.switches.clone(),
                feed: storage.feed.clone(),
                ledger: storage.ledger.clone(),
                spaces: storage.spaces.clone(),
                embedder: constructor.embedder.clone(),
                second_model: self.second_model.clone(),
            };
            self.supervise(process, "switching", move |stop| {
                let switcher = switcher.clone();
                async move { switcher.run(stop).await }
            });
        }
        let worker = constructor.clone();
        self.supervise(process, "gauges", move |stop| {
            let worker = worker.clone();
            async move { worker.run_gauges(stop).await }
        });
    }

    /// A node has nobody else to tell.
    fn spawn_relay(&self, process: &mut Lifecycle) {
        let told = self
            .storage
            .as_ref()
            .and_then(|storage| storage.outbox.clone());
        let (Some(constructor), Some((outbox, audience))) = (&self.constructor, told) else {
            return;
        };
        let relay = Relay {
            outbox,
            audience,
            events: self.events.clone(),
            clock: constructor.clock.clone(),
        };
        self.supervise(process, "relay", move |stop| {
            let relay = relay.clone();
            async move { relay.run(stop).await }
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
        if let Some(storage) = &self.storage {
            let worker = refresher.clone();
            let (exchanges, injections) = (storage.exchanges.clone(), storage.injections.clone());
            self.supervise(process, "expiry", move |stop| {
                let worker = worker.clone();
                let (exchanges, injections) = (exchanges.clone(), injections.clone());
                async move { worker.run_expiry(&*exchanges, &*injections, stop).await }
            });
        }
        let worker = refresher.clone();
        self.supervise(process, "scrub", move |stop| {
            let worker = worker.clone();
            async move { worker.run_scrubbing(stop).await }
        });
    }

    /// Replies of a model that quote what is forgotten leave its cache.
    fn spawn_model(&self, process: &mut Lifecycle) {
        let Some(model) = self.model.clone() else {
            return;
        };
        let events = self.events.clone();
        process.spawn("replies", Policy::Essential, |stop| {
            finish(async move { model.follow(&events, stop).await })
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

    /// A node that has no more than its file and its model asks them too: either may be in trouble.
    fn spawn_parts(&self, process: &mut Lifecycle) {
        let storage = self.storage.as_ref();
        let issuer = self.gateway.as_ref();
        let asked = Parts {
            spaces: storage.map(|storage| storage.spaces.clone()),
            queue: storage.map(|storage| storage.queue.clone()),
            embedder: self.asked.clone(),
            // That of a node is its store; of a fleet those ask it that work with it.
            graph: storage
                .filter(|storage| storage.is_shared() && self.asks_graph())
                .and_then(|storage| storage.graph.clone()),
            issuer: issuer.and_then(|gateway| gateway.access.tokens()),
            health: self.health.clone(),
            clock: super::clock(),
        };
        process.spawn("parts", Policy::BestEffort, |stop| {
            finish(async move {
                stop.run_until_cancelled(asked.watch()).await;
            })
        });
        let health = self.health.clone();
        process.readiness().explain(move || degraded(&health));
    }

    fn asks_graph(&self) -> bool {
        self.gateway.is_some() || self.relater.is_some()
    }

    fn spawn_certificates(&self, process: &mut Lifecycle) {
        let Some(tls) = self.tls.clone() else {
            return;
        };
        self.supervise(process, "certificates", move |stop| {
            let tls = tls.clone();
            async move {
                stop.run_until_cancelled(tls.watch()).await;
            }
        });
    }

    /// Starts work that goes on whatever happens, and has the status say how it is.
    pub(super) fn supervise<F>(
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
            let trouble = (!works).then(|| Fault::internal(trouble));
            parts::note(&health, &SystemClock, name, trouble.as_ref());
        };
        process.supervise(name, works, work);
    }
}

/// One line a part in trouble, for whoever asks whether the process is ready. What is wrong is in its log.
fn degraded(health: &Health) -> String {
    let parts = health.parts().into_iter();
    let troubled = parts.filter_map(|part| {
        let since = part.since?.to_rfc3339_opts(SecondsFormat::Secs, true);
        Some(format!("\n{} is in trouble since {since}", part.name))
    });
    troubled.collect()
}

async fn finish(work: impl Future<Output = ()>) -> Result<(), BoxError> {
    work.await;
    Ok(())
}
