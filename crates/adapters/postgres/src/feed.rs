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

pub(crate) use self::changes::{Depth, after as changes_after, load_passages};
use crate::scope;
use crate::store::PostgresStore;

#[async_trait]
impl IndexFeed for PostgresStore {
    async fn head(&self, scope: &Scope) -> Result<u64> {
        let head = async {
            let mut read = self.read(&scope.tenant).await?;
            let space = scope::find(&mut read, scope).await?;
            Ok(space.map_or(0, |space| space.head as u64))
        };
        self.ask("head", head).await
    }

    async fn changes_in(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        after: u64,
        limit: u32,
    ) -> Result<Changes> {
        let changes = async {
            let mut read = self.read(&scope.tenant).await?;
            let (after, limit) = (after as i64, limit.max(1));
            changes::after(&mut read, scope, embedding, after, limit, Depth::Whole).await
        };
        self.ask("changes_after", changes).await
    }

    async fn indexed(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<IndexedTurn>> {
        let turns = async {
            let mut read = self.read(&scope.tenant).await?;
            changes::indexed(&mut read, scope, ids).await
        };
        self.ask("indexed", turns).await
    }

    async fn token_vectors(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        passages: &[u32],
    ) -> Result<Vec<Option<Arc<TokenVectors>>>> {
        let vectors = async {
            let mut read = self.read(&scope.tenant).await?;
            lookup::token_vectors(&mut read, scope, embedding, passages).await
        };
        self.ask("token_vectors", vectors).await
    }

    async fn with_metadata(
        &self,
        scope: &Scope,
        labels: &[(String, String)],
    ) -> Result<Vec<TurnId>> {
        let turns = async {
            let mut read = self.read(&scope.tenant).await?;
            lookup::with_metadata(&mut read, scope, labels).await
        };
        self.ask("with_metadata", turns).await
    }
}
