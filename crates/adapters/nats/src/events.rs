//! What happened, in a stream that keeps each message until every reader has acknowledged it, and none where nobody reads.

use async_trait::async_trait;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::outbox::{Audience, Happening};
use memfleet_ports::store::Result;
use serde::Serialize;

use crate::message;
use crate::names::{space_token, tenant_token};
use crate::queue::NatsQueue;

/// A happening as it stands in a message.
#[derive(Debug, Serialize)]
struct Told<'a> {
    tenant: &'a TenantId,
    space: &'a SpaceId,
    kind: &'static str,
    after: u64,
    change: u64,
    /// In microseconds since 1970.
    at: i64,
}

#[async_trait]
impl Audience for NatsQueue {
    async fn tell(&self, happening: &Happening) -> Result<()> {
        let shared = &self.shared;
        shared.prepared().await?;
        let scope = &happening.scope;
        let subject = (shared.names).event(happening.kind.name(), &tenant_token(&scope.tenant));
        let told = Told {
            tenant: &scope.tenant,
            space: &scope.space,
            kind: happening.kind.name(),
            after: happening.after,
            change: happening.change,
            at: happening.at.timestamp_micros(),
        };
        let headers = message::of_batch(&message_id(happening), None);
        let payload = message::json(&told).into();
        let stored = shared.offer(&subject, &headers, &payload).await;
        stored.map(|_| ()).map_err(Into::into)
    }
}

/// The same for the same happening, whoever tells it and however often.
fn message_id(happening: &Happening) -> String {
    format!("{}-{}", space_token(&happening.scope), happening.change)
}
