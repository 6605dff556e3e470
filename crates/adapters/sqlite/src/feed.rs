//! The feed of changes for search indexes, and token vectors in batches.

mod changes;
mod lookup;

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, TokenVectors};
use memfleet_domain::ids::TurnId;
use memfleet_ports::feed::{Changes, IndexFeed, IndexedTurn};
use memfleet_ports::store::Result;

use crate::scope;
use crate::store::SqliteStore;

#[async_trait]
impl IndexFeed for SqliteStore {
    async fn head(&self, scope: &Scope) -> Result<u64> {
        let mut read = self.look_up().await?;
        let space = scope::find(&mut read, scope).await?;
        Ok(space.map_or(0, |space| space.head as u64))
    }

    async fn changes_in(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        after: u64,
        limit: u32,
    ) -> Result<Changes> {
        let mut read = self.read().await?;
        Ok(changes::after(&mut read, scope, embedding, after as i64, limit.max(1)).await?)
    }

    async fn indexed(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<IndexedTurn>> {
        Ok(changes::indexed(&mut *self.read().await?, scope, ids).await?)
    }

    async fn token_vectors(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        passages: &[u32],
    ) -> Result<Vec<Option<Arc<TokenVectors>>>> {
        Ok(lookup::token_vectors(&mut *self.read().await?, scope, embedding, passages).await?)
    }

    async fn with_metadata(
        &self,
        scope: &Scope,
        labels: &[(String, String)],
    ) -> Result<Vec<TurnId>> {
        Ok(lookup::with_metadata(&mut *self.read().await?, scope, labels).await?)
    }
}
