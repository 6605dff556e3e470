//! The ledger port.

pub(crate) mod batches;
mod commit;
mod known;
mod listing;
pub(crate) mod vectors;

use std::time::Duration;

use async_trait::async_trait;
use memfleet_columns::vector_parts;
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{BatchId, SessionId, TurnId};
use memfleet_domain::ingestion::TurnState;
use memfleet_domain::turn::Turn;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{
    BatchStatus, Committed, IndexedBatch, Known, Ledger, Page, PageToken, TextVectors, Unembedded,
    UnembeddedDerivation,
};
use memfleet_ports::store::Result;
use tokio::time::Instant;

use self::commit::BatchCommit;
use crate::scrub;
use crate::store::{SqliteStore, pause_after};

#[async_trait]
impl Ledger for SqliteStore {
    async fn commit(&self, batches: Vec<IndexedBatch>) -> Result<Vec<Committed>> {
        let mut committed = Vec::with_capacity(batches.len());
        let mut write = self.write_as_worker().await?;
        for batch in &batches {
            let mut commit = BatchCommit::new(batch)?;
            if commit.is_large() {
                write.commit().await?;
                write = self.write_as_worker().await?;
            }
            let outcome = loop {
                let begun = Instant::now();
                if let Some(outcome) = commit.store_part(&mut write).await? {
                    break outcome;
                }
                write.commit().await?;
                tokio::time::sleep(pause_after(begun.elapsed())).await;
                write = self.write_as_worker().await?;
            };
            if brought_forgotten_text(&outcome) {
                // It is still in the queue, and leaves it as an ordinary row.
                scrub::due(&mut write).await?;
            }
            committed.push(outcome);
        }
        write.commit().await?;
        Ok(committed)
    }

    async fn batch(&self, scope: &Scope, batch: BatchId) -> Result<Option<BatchStatus>> {
        Ok(batches::status(&mut *self.look_up().await?, scope, batch).await?)
    }

    async fn turns(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<Turn>> {
        Ok(listing::turns(&mut *self.read().await?, scope, ids).await?)
    }

    async fn known(&self, scope: &Scope, ids: &[TurnId]) -> Result<Known> {
        Ok(known::known(&mut *self.read().await?, scope, ids).await?)
    }

    async fn list(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Turn>> {
        Ok(listing::list(&mut *self.read().await?, scope, filter, limit, after).await?)
    }

    async fn list_accepted(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Turn>> {
        let mut read = self.read().await?;
        Ok(listing::list_accepted(&mut read, scope, filter, limit, after).await?)
    }

    async fn history(&self, scope: &Scope, turn: TurnId) -> Result<Vec<Turn>> {
        Ok(listing::history(&mut *self.read().await?, scope, turn).await?)
    }

    async fn preceding(&self, scope: &Scope, turn: TurnId, limit: u32) -> Result<Vec<Turn>> {
        Ok(listing::preceding(&mut *self.read().await?, scope, turn, limit).await?)
    }

    async fn latest(&self, scope: &Scope, session: &SessionId, limit: u32) -> Result<Vec<Turn>> {
        Ok(listing::latest(&mut *self.read().await?, scope, session, limit).await?)
    }

    async fn embedding_spaces(&self) -> Result<Vec<EmbeddingSpace>> {
        Ok(vectors::known_embeddings(&mut *self.look_up().await?).await?)
    }

    async fn without_vectors(&self, space: &EmbeddingSpace, limit: u32) -> Result<Vec<Unembedded>> {
        let missing = vectors::missing(&mut *self.read().await?, space, limit).await?;
        if !missing.done.is_empty() {
            let mut write = self.write_as_worker().await?;
            vectors::advance(&mut write, &missing.done).await?;
            write.commit().await?;
        }
        Ok(missing.turns)
    }

    async fn derivations_without_vectors(
        &self,
        space: &EmbeddingSpace,
        limit: u32,
    ) -> Result<Vec<UnembeddedDerivation>> {
        Ok(vectors::missing_derivations(&mut *self.read().await?, space, limit).await?)
    }

    async fn attach_vectors(
        &self,
        scope: &Scope,
        space: &EmbeddingSpace,
        texts: &[TextVectors],
    ) -> Result<()> {
        let mut pause = Duration::ZERO;
        for part in vector_parts(texts) {
            tokio::time::sleep(pause).await;
            let mut write = self.write_as_worker().await?;
            let begun = Instant::now();
            vectors::attach(&mut write, scope, space, part).await?;
            write.commit().await?;
            pause = pause_after(begun.elapsed());
        }
        Ok(())
    }
}

fn brought_forgotten_text(committed: &Committed) -> bool {
    let mut turns = committed.turns.iter();
    turns.any(|turn| turn.state == TurnState::Forgotten)
}
