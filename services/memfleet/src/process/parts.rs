//! How the servers and roles are that this process needs: asked every few seconds, told in health, status and metrics.

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::{Clock, Fault, FaultKind};
use memfleet_ports::access::{Tokens, default_tenant};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::graph::Graph;
use memfleet_ports::health::Health;
use memfleet_ports::queue::IngestQueue;
use memfleet_ports::spaces::SpaceCatalog;

/// Pause between two looks.
const LOOK: Duration = Duration::from_secs(10);

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked; whatever this process does without is absent.
#[derive(Clone)]
pub struct Parts {
    /// Where memory is kept.
    pub spaces: Option<Arc<dyn SpaceCatalog>>,
    /// Where work waits.
    pub queue: Option<Arc<dyn IngestQueue>>,
    /// Who makes vectors.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Where the semantic graph is kept.
    pub graph: Option<Arc<dyn Graph>>,
    /// Who issues tokens.
    pub issuer: Option<Arc<dyn Tokens>>,
    /// Who is told.
    pub health: Health,
    /// When it was.
    pub clock: Arc<dyn Clock>,
}

impl Parts {
    /// Looks for as long as it is polled.
    pub async fn watch(&self) {
        loop {
            tokio::join!(
                self.store(),
                self.queue(),
                self.embedder(),
                self.graph(),
                self.issuer()
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn store(&self) {
        if let Some(spaces) = &self.spaces {
            let tenant = default_tenant();
            self.look("store", spaces.list(&tenant, 1, None)).await;
        }
    }

    async fn queue(&self) {
        if let Some(queue) = &self.queue {
            self.look("queue", queue.depth(None)).await;
            if let Some(concerns) = queue.concerns() {
                let trouble = (!concerns.is_empty()).then(|| {
                    let message = concerns.join("; ");
                    Fault::new(FaultKind::Unavailable, "QUEUE_SETUP", message)
                });
                note(&self.health, &*self.clock, "queue-setup", trouble.as_ref());
            }
        }
    }

    async fn embedder(&self) {
        if let Some(embedder) = &self.embedder {
            let asked = embedder.embed_query("status".to_owned());
            self.look("embedder", asked).await;
        }
    }

    async fn graph(&self) {
        if let Some(graph) = &self.graph {
            self.look("graph", graph.check()).await;
        }
    }

    async fn issuer(&self) {
        if let Some(issuer) = &self.issuer {
            self.look("issuer", issuer.check()).await;
        }
    }

    async fn look<T, E: Into<Fault>>(
        &self,
        part: &'static str,
        asked: impl Future<Output = Result<T, E>>,
    ) {
        let trouble = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.into()),
            Err(_) => {
                let message = format!("no answer within {PATIENCE:?}");
                let kind = FaultKind::DeadlineExceeded;
                Some(Fault::new(kind, "DEADLINE_EXCEEDED", message))
            }
        };
        note(&self.health, &*self.clock, part, trouble.as_ref());
    }
}

/// Tells health and metrics how a part is.
pub fn note(health: &Health, clock: &dyn Clock, part: &'static str, trouble: Option<&Fault>) {
    let works = f64::from(u8::from(trouble.is_none()));
    metrics::gauge!("memfleet_part_works", "part" => part).set(works);
    health.report(part, trouble, clock.now());
}
