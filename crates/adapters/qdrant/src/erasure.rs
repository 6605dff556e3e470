//! A forget reaches the mirror before its receipt is given.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::time::Timestamp;
use memfleet_ports::erasure::{Erased, Erasure};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::store::Result;

use crate::mirror::Mirror;

/// Removes from the store, and then from the mirror. While Qdrant does not answer, a forget fails with what the store has removed
/// already gone for every read; the same forget again finishes it, as does the next one of the space.
pub struct MirroredErasure {
    erasure: Arc<dyn Erasure>,
    mirror: Arc<Mirror>,
}

impl MirroredErasure {
    /// The erasure of the store that is mirrored.
    pub fn new(erasure: Arc<dyn Erasure>, mirror: Arc<Mirror>) -> Self {
        Self { erasure, mirror }
    }
}

#[async_trait]
impl Erasure for MirroredErasure {
    async fn plan(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        self.erasure.plan(scope, filter).await
    }

    async fn remove(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        let erased = self.erasure.remove(scope, filter).await?;
        self.mirror.follow_mirrored(scope).await?;
        Ok(erased)
    }

    async fn expire(&self, scope: &Scope, now: Timestamp, most: u32) -> Result<Erased> {
        let erased = self.erasure.expire(scope, now, most).await?;
        // Nobody waits for it: the next search or forget of the space follows.
        if let Err(error) = self.mirror.follow_mirrored(scope).await {
            tracing::warn!(%error, space = %scope.space, "expired turns are still in the mirror of vectors");
        }
        Ok(erased)
    }

    async fn scrub(&self) -> Result<()> {
        self.erasure.scrub().await
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<Scope>> {
        self.erasure.expired(now).await
    }
}
