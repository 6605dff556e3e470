//! The ledger port.

pub(crate) mod batches;
mod commit;
mod known;
mod listing;
mod vectors;

use std::collections::HashSet;

use async_trait::async_trait;
use memfleet_columns::vector_parts;
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{BatchId, SessionId, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{
    BatchStatus, Committed, IndexedBatch, Known, Ledger, Page, PageToken, TextVectors, Unembedded,
    UnembeddedDerivation,
};
use memfleet_ports::queue::Accepted;
use memfleet_ports::store::Result;

pub(crate) use self::vectors::{
    Numbered, from_sentence, held, name_embedding, put_second, put_tokens, slot, to_sentence,
};
use crate::store::{PostgresStore, twice};

#[async_trait]
impl Accepted for PostgresStore {
    async fn highest_acceptance(&self) -> Result<u64> {
        let highest = async {
            let highest = sqlx::query_scalar("SELECT highest_acceptance()");
            let highest: i64 = highest.fetch_one(&mut *self.sweep().await?).await?;
            Ok(highest as u64)
        };
        self.ask("highest_acceptance", highest).await
    }

    async fn forgotten(&self, scope: &Scope, turns: &[TurnId]) -> Result<HashSet<TurnId>> {
        Ok(self.known(scope, turns).await?.forgotten)
    }
}

#[async_trait]
impl Ledger for PostgresStore {
    async fn commit(&self, batches: Vec<IndexedBatch>) -> Result<Vec<Committed>> {
        self.ask("commit", twice(|| commit::commit(self, &batches)))
            .await
    }

    async fn batch(&self, scope: &Scope, batch: BatchId) -> Result<Option<BatchStatus>> {
        let status = async {
            let mut read = self.read(&scope.tenant).await?;
            batches::status(&mut read, scope, batch).await
        };
        self.ask("batch", status).await
    }

    async fn turns(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<Turn>> {
        let turns = async {
            let mut read = self.read(&scope.tenant).await?;
            listing::turns(&mut read, scope, ids).await
        };
        self.ask("turns", turns).await
    }

    async fn known(&self, scope: &Scope, ids: &[TurnId]) -> Result<Known> {
        let known = async {
            let mut read = self.read(&scope.tenant).await?;
            known::known(&mut read, scope, ids).await
        };
        self.ask("known", known).await
    }

    async fn list(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Turn>> {
        let page = async {
            let mut read = self.read(&scope.tenant).await?;
            listing::list(&mut read, scope, filter, limit, after).await
        };
        self.ask("list", page).await
    }

    async fn list_accepted(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Turn>> {
        let page = async {
            let mut read = self.read(&scope.tenant).await?;
            listing::list_accepted(&mut read, scope, filter, limit, after).await
        };
        self.ask("list_accepted", page).await
    }

    async fn history(&self, scope: &Scope, turn: TurnId) -> Result<Vec<Turn>> {
        let turns = async {
            let mut read = self.read(&scope.tenant).await?;
            listing::history(&mut read, scope, turn).await
        };
        self.ask("history", turns).await
    }

    async fn preceding(&self, scope: &Scope, turn: TurnId, limit: u32) -> Result<Vec<Turn>> {
        let turns = async {
            let mut read = self.read(&scope.tenant).await?;
            listing::preceding(&mut read, scope, turn, limit).await
        };
        self.ask("preceding", turns).await
    }

    async fn latest(&self, scope: &Scope, session: &SessionId, limit: u32) -> Result<Vec<Turn>> {
        let turns = async {
            let mut read = self.read(&scope.tenant).await?;
            listing::latest(&mut read, scope, session, limit).await
        };
        self.ask("latest", turns).await
    }

    async fn embedding_spaces(&self) -> Result<Vec<EmbeddingSpace>> {
        self.ask("embedding_spaces", vectors::known_embeddings(self))
            .await
    }

    async fn without_vectors(&self, space: &EmbeddingSpace, limit: u32) -> Result<Vec<Unembedded>> {
        self.ask("without_vectors", vectors::missing(self, space, limit))
            .await
    }

    async fn derivations_without_vectors(
        &self,
        space: &EmbeddingSpace,
        limit: u32,
    ) -> Result<Vec<UnembeddedDerivation>> {
        let missing = vectors::missing_derivations(self, space, limit);
        self.ask("derivations_without_vectors", missing).await
    }

    async fn attach_vectors(
        &self,
        scope: &Scope,
        space: &EmbeddingSpace,
        texts: &[TextVectors],
    ) -> Result<()> {
        for part in vector_parts(texts) {
            let attempt = || async {
                self.ensure_named(space).await?;
                let mut write = self.write(&scope.tenant).await?;
                vectors::attach(&mut write, scope, space, part).await?;
                write.commit().await
            };
            self.ask("attach_vectors", twice(attempt)).await?;
        }
        Ok(())
    }
}
