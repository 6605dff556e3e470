//! The second gate: whose examples it goes by, and what it says of a query.

use std::time::Instant;

use memfleet_domain::Fault;
use memfleet_domain::assembly::{Gate, GateOutcome, Reason};
use memfleet_domain::ids::SpaceId;
use memfleet_gates::routing::{Query, Router};
use memfleet_ports::assembly::GateEntry;
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Embedded;
use memfleet_retrieval::embedded_text;

use super::exemplars::{Examples, Whose};
use crate::Gateway;
use crate::settings::TenantSettings;

impl Gateway {
    /// What the gate says of a query, and the vectors of the query: the search uses them, too (AMP item 53).
    pub(super) async fn route(
        &self,
        context: &Context,
        tenant: &TenantSettings,
        spaces: &[SpaceId],
        text: &str,
    ) -> Result<(GateEntry, Option<Embedded>), Fault> {
        let locale = self.locale(context, spaces).await?;
        let embedded = embedded_text(text, &locale).into_owned();
        let Ok(embedded) = Embedded::by(&*self.embedder, embedded).await else {
            return Ok((abstain(), None));
        };
        let (whose, examples) = match tenant.examples(locale.language.as_deref()) {
            Some(own) => (Whose::Tenant(context.tenant.clone()), own),
            None => (Whose::Everybody, Examples::shipped()),
        };
        let router = self
            .routing
            .router(whose, examples, &embedded.space, &self.embedder);
        let said = router.map_or_else(abstain, |router| route(&router, text, &embedded));
        Ok((said, Some(embedded)))
    }
}

/// Without vectors it cannot tell.
fn abstain() -> GateEntry {
    GateEntry::new(Gate::Routing, GateOutcome::Abstain, Reason::NoVectors)
}

/// Outcome of the gate for a query.
fn route(router: &Router, text: &str, embedded: &Embedded) -> GateEntry {
    let began = Instant::now();
    let routing = router.route(Query {
        text,
        vector: &embedded.vectors.sentence,
        space: &embedded.space,
    });
    let similarity = routing.similarity;
    GateEntry {
        version: router.version().to_owned(),
        similarity_memory: similarity.map(|it| it.memory),
        similarity_none: similarity.map(|it| it.none),
        margin: similarity.map(|it| it.margin),
        threshold: similarity.map(|it| it.threshold),
        duration: began.elapsed(),
        bounds: routing.bounds,
        ..GateEntry::new(Gate::Routing, routing.outcome, routing.reason)
    }
}
