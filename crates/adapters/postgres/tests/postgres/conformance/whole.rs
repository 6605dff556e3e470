//! Store and erasure as one, as the suite of the erasure asks for, over any queue.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings, TokenVectors};
use memfleet_domain::ids::{BatchId, SessionId, TenantId, TurnId};
use memfleet_domain::space::{LegalHold, Locale, Session, Space, SpaceSettings};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Turn;
use memfleet_ports::candidates::{Among, Candidates, Extent, Near, TermPassages};
use memfleet_ports::erasure::{Erased, Erasure};
use memfleet_ports::feed::{Changes, IndexFeed, IndexedPassage, IndexedTurn};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{
    BatchStatus, Committed, IndexedBatch, Known, Ledger, Page, PageToken, TextVectors, Unembedded,
    UnembeddedDerivation,
};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::Undelivered;
use memfleet_postgres::{PostgresErasure, PostgresStore};

pub struct Whole<Q> {
    pub store: PostgresStore,
    pub queue: Arc<Q>,
    candidates: Arc<dyn Candidates>,
    erasure: Arc<dyn Erasure>,
}

impl<Q: Undelivered + 'static> Whole<Q> {
    pub fn new(store: PostgresStore, queue: Q) -> Self {
        let queue = Arc::new(queue);
        let erasure = PostgresErasure::new(store.clone(), queue.clone());
        Self {
            candidates: Arc::new(store.clone()),
            erasure: Arc::new(erasure),
            store,
            queue,
        }
    }

    /// With something in front of the store.
    pub fn behind(
        self,
        candidates: impl FnOnce(PostgresStore) -> Arc<dyn Candidates>,
        erasure: impl FnOnce(Arc<dyn Erasure>) -> Arc<dyn Erasure>,
    ) -> Self {
        Self {
            candidates: candidates(self.store.clone()),
            erasure: erasure(self.erasure.clone()),
            ..self
        }
    }
}

#[async_trait]
impl<Q: Undelivered> Ledger for Whole<Q> {
    async fn commit(&self, batches: Vec<IndexedBatch>) -> Result<Vec<Committed>> {
        Ledger::commit(&self.store, batches).await
    }

    async fn batch(&self, scope: &Scope, batch: BatchId) -> Result<Option<BatchStatus>> {
        Ledger::batch(&self.store, scope, batch).await
    }

    async fn turns(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<Turn>> {
        Ledger::turns(&self.store, scope, ids).await
    }

    async fn known(&self, scope: &Scope, ids: &[TurnId]) -> Result<Known> {
        Ledger::known(&self.store, scope, ids).await
    }

    async fn list(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Turn>> {
        Ledger::list(&self.store, scope, filter, limit, after).await
    }

    async fn list_accepted(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Turn>> {
        Ledger::list_accepted(&self.store, scope, filter, limit, after).await
    }

    async fn history(&self, scope: &Scope, turn: TurnId) -> Result<Vec<Turn>> {
        Ledger::history(&self.store, scope, turn).await
    }

    async fn preceding(&self, scope: &Scope, turn: TurnId, limit: u32) -> Result<Vec<Turn>> {
        self.store.preceding(scope, turn, limit).await
    }

    async fn latest(&self, scope: &Scope, session: &SessionId, limit: u32) -> Result<Vec<Turn>> {
        self.store.latest(scope, session, limit).await
    }

    async fn embedding_spaces(&self) -> Result<Vec<EmbeddingSpace>> {
        Ledger::embedding_spaces(&self.store).await
    }

    async fn without_vectors(&self, space: &EmbeddingSpace, limit: u32) -> Result<Vec<Unembedded>> {
        Ledger::without_vectors(&self.store, space, limit).await
    }

    async fn derivations_without_vectors(
        &self,
        space: &EmbeddingSpace,
        limit: u32,
    ) -> Result<Vec<UnembeddedDerivation>> {
        Ledger::derivations_without_vectors(&self.store, space, limit).await
    }

    async fn attach_vectors(
        &self,
        scope: &Scope,
        space: &EmbeddingSpace,
        texts: &[TextVectors],
    ) -> Result<()> {
        Ledger::attach_vectors(&self.store, scope, space, texts).await
    }
}

#[async_trait]
impl<Q: Undelivered> IndexFeed for Whole<Q> {
    async fn head(&self, scope: &Scope) -> Result<u64> {
        IndexFeed::head(&self.store, scope).await
    }

    async fn changes_in(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        after: u64,
        limit: u32,
    ) -> Result<Changes> {
        IndexFeed::changes_in(&self.store, scope, embedding, after, limit).await
    }

    async fn indexed(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<IndexedTurn>> {
        IndexFeed::indexed(&self.store, scope, ids).await
    }

    async fn token_vectors(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        passages: &[u32],
    ) -> Result<Vec<Option<Arc<TokenVectors>>>> {
        IndexFeed::token_vectors(&self.store, scope, embedding, passages).await
    }

    async fn with_metadata(
        &self,
        scope: &Scope,
        labels: &[(String, String)],
    ) -> Result<Vec<TurnId>> {
        IndexFeed::with_metadata(&self.store, scope, labels).await
    }
}

#[async_trait]
impl<Q: Undelivered> Candidates for Whole<Q> {
    async fn extent(&self, scope: &Scope, embedding: Option<&EmbeddingSpace>) -> Result<Extent> {
        self.candidates.extent(scope, embedding).await
    }

    async fn outline_after(&self, scope: &Scope, after: u64, limit: u32) -> Result<Changes> {
        self.candidates.outline_after(scope, after, limit).await
    }

    async fn postings(&self, scope: &Scope, terms: &[String]) -> Result<Vec<TermPassages>> {
        self.candidates.postings(scope, terms).await
    }

    async fn nearest(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        vector: &[i8],
        among: &Among,
        limit: u32,
    ) -> Result<Vec<Near>> {
        self.candidates
            .nearest(scope, embedding, vector, among, limit)
            .await
    }

    async fn passages(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        numbers: &[u32],
    ) -> Result<Vec<Option<IndexedPassage>>> {
        self.candidates.passages(scope, embedding, numbers).await
    }
}

#[async_trait]
impl<Q: Undelivered> SpaceCatalog for Whole<Q> {
    async fn put(&self, scope: &Scope, settings: &SpaceSettings, now: Timestamp) -> Result<Space> {
        SpaceCatalog::put(&self.store, scope, settings, now).await
    }

    async fn hold(&self, scope: &Scope, hold: Option<&LegalHold>) -> Result<Option<Space>> {
        SpaceCatalog::hold(&self.store, scope, hold).await
    }

    async fn get(&self, scope: &Scope) -> Result<Option<Space>> {
        SpaceCatalog::get(&self.store, scope).await
    }

    async fn locale(&self, scope: &Scope) -> Result<Option<Locale>> {
        SpaceCatalog::locale(&self.store, scope).await
    }

    async fn embeddings(&self, scope: &Scope) -> Result<HeldEmbeddings> {
        SpaceCatalog::embeddings(&self.store, scope).await
    }

    async fn locale_and_embeddings(
        &self,
        scope: &Scope,
    ) -> Result<Option<(Locale, HeldEmbeddings)>> {
        SpaceCatalog::locale_and_embeddings(&self.store, scope).await
    }

    async fn list(
        &self,
        tenant: &TenantId,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Space>> {
        SpaceCatalog::list(&self.store, tenant, limit, after).await
    }

    async fn sessions(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Session>> {
        SpaceCatalog::sessions(&self.store, scope, limit, after).await
    }
}

#[async_trait]
impl<Q: Undelivered> Erasure for Whole<Q> {
    async fn plan(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        Erasure::plan(&*self.erasure, scope, filter).await
    }

    async fn remove(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        Erasure::remove(&*self.erasure, scope, filter).await
    }

    async fn expire(&self, scope: &Scope, now: Timestamp, most: u32) -> Result<Erased> {
        Erasure::expire(&*self.erasure, scope, now, most).await
    }

    async fn scrub(&self) -> Result<()> {
        Erasure::scrub(&*self.erasure).await
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<Scope>> {
        Erasure::expired(&*self.erasure, now).await
    }
}
