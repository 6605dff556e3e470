//! The second gate: the vectors of its examples, and what it says of a query.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use memfleet_domain::Fault;
use memfleet_domain::assembly::{Gate, GateOutcome, Reason};
use memfleet_domain::ids::SpaceId;
use memfleet_gates::routing::{Exemplars, Query, Router};
use memfleet_ports::assembly::GateEntry;
use memfleet_ports::context::Context;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::retriever::Embedded;
use memfleet_retrieval::embedded_text;

use crate::Gateway;

/// Examples that are embedded at a time.
const BATCH: usize = 64;
/// Pause after a failure before they are embedded again.
const PAUSE: Duration = Duration::from_secs(10);

/// The examples that are shipped, as vectors. They are embedded behind the first query: until that is done the gate abstains.
#[derive(Default)]
pub struct Routing {
    router: OnceLock<Router>,
    is_embedding: AtomicBool,
}

impl Routing {
    /// The router, once there is one.
    pub fn router(self: &Arc<Self>, embedder: &Arc<dyn Embedder>) -> Option<&Router> {
        let router = self.router.get();
        if router.is_none() && !self.is_embedding.swap(true, Ordering::SeqCst) {
            let (routing, embedder) = (self.clone(), embedder.clone());
            tokio::spawn(async move { routing.embed(&*embedder).await });
        }
        router
    }

    async fn embed(&self, embedder: &dyn Embedder) {
        match router(embedder).await {
            Ok(router) => {
                let _first_wins = self.router.set(router);
            }
            Err(fault) => {
                tracing::warn!(reason = %fault.reason, "gate 2 abstains, its examples are not embedded: {fault}");
                tokio::time::sleep(PAUSE).await;
                self.is_embedding.store(false, Ordering::SeqCst);
            }
        }
    }
}

async fn router(embedder: &dyn Embedder) -> Result<Router, Fault> {
    let exemplars = Exemplars::shipped();
    let texts: Vec<String> = exemplars.texts().map(str::to_owned).collect();
    let mut vectors = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH) {
        let embedded = embedder.embed_passages(batch.to_vec()).await?;
        vectors.extend(embedded.into_iter().map(|text| text.sentence));
    }
    let space = embedder.space().await?;
    Router::new(exemplars, vectors, space)
        .map_err(|error| Fault::internal(format!("the examples of gate 2 cannot be used: {error}")))
}

impl Gateway {
    /// What the gate says of a query, and the vectors of the query: the search uses them, too (AMP item 53).
    pub(super) async fn route(
        &self,
        context: &Context,
        spaces: &[SpaceId],
        text: &str,
        enough: u32,
    ) -> Result<(GateEntry, Option<Embedded>), Fault> {
        let locale = self.locale(context, spaces).await?;
        let embedded = embedded_text(text, &locale).into_owned();
        let embedded = Embedded::by(&*self.embedder, embedded).await.ok();
        let router = self.routing.router(&self.embedder);
        let mut said = route(router, text, embedded.as_ref());
        if said.outcome == GateOutcome::Skip && self.is_cold(context, spaces, enough).await? {
            (said.outcome, said.reason) = (GateOutcome::Abstain, Reason::ColdSpace);
        }
        Ok((said, embedded))
    }

    /// Whether the spaces have fewer turns than a skip takes. Adding them up is only worth it where one is near.
    async fn is_cold(
        &self,
        context: &Context,
        spaces: &[SpaceId],
        enough: u32,
    ) -> Result<bool, Fault> {
        let mut turns = 0;
        for space in spaces {
            let space = self.spaces.get(&context.scope(space)).await?;
            turns += space.map_or(0, |space| space.turns);
            if turns >= u64::from(enough) {
                return Ok(false);
            }
        }
        Ok(enough > 0)
    }
}

/// What the gate says of a query, in a space with memories enough.
fn route(router: Option<&Router>, text: &str, embedded: Option<&Embedded>) -> GateEntry {
    let began = Instant::now();
    let (Some(router), Some(embedded)) = (router, embedded) else {
        return GateEntry::new(Gate::Routing, GateOutcome::Abstain, Reason::NoVectors);
    };
    let routing = router.route(Query {
        text,
        vector: &embedded.vectors.sentence,
        space: &embedded.space,
        memories: u64::MAX,
    });
    let similarity = routing.similarity;
    GateEntry {
        version: router.version().to_owned(),
        similarity_memory: similarity.map(|it| it.memory),
        similarity_none: similarity.map(|it| it.none),
        margin: similarity.map(|it| it.margin),
        threshold: similarity.map(|it| it.threshold),
        duration: began.elapsed(),
        ..GateEntry::new(Gate::Routing, routing.outcome, routing.reason)
    }
}
