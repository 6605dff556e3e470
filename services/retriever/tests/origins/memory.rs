//! A database with turns in it, and retrievers of either kind over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, TokenVectors};
use memfleet_domain::ids::{TenantId, TurnId};
use memfleet_domain::turn::AcceptedTurn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::candidates::{Among, Candidates, Extent, Near, TermPassages};
use memfleet_ports::context::Context;
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::{Changes, IndexFeed, IndexedPassage, IndexedTurn};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::retriever::{Found, Query, Retriever};
use memfleet_ports::store::Result;
use memfleet_ports::testing::{NothingWaits, WordEmbedder};
use memfleet_postgres::{PostgresErasure, PostgresStore};
use memfleet_retrieval::{ModelCalibrations, Weights};
use memfleet_retriever::{LocalRetriever, Options, Remote};
use tokio::sync::watch;

use crate::database::Database;
use crate::told::indexed;

/// How a retriever searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It holds every index.
    Held,
    /// It holds outlines.
    Outlined,
}

/// The store, looked at from outside; the feed may be held up.
pub struct Gate {
    store: PostgresStore,
    open: watch::Sender<bool>,
    whole: AtomicU64,
    outlines: AtomicU64,
    looked_up: AtomicU64,
}

impl Gate {
    fn new(store: PostgresStore, open: bool) -> Arc<Self> {
        Arc::new(Self {
            store,
            open: watch::Sender::new(open),
            whole: AtomicU64::new(0),
            outlines: AtomicU64::new(0),
            looked_up: AtomicU64::new(0),
        })
    }

    /// The feed answers from now on.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Indexes that were begun from nothing.
    pub fn asked_whole(&self) -> u64 {
        self.whole.load(Ordering::SeqCst)
    }

    /// The same of outlines.
    pub fn outlines(&self) -> u64 {
        self.outlines.load(Ordering::SeqCst)
    }

    /// How often words were looked up in the store.
    pub fn looked_up(&self) -> u64 {
        self.looked_up.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl IndexFeed for Gate {
    async fn head(&self, scope: &Scope) -> Result<u64> {
        self.store.head(scope).await
    }

    async fn changes_in(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        after: u64,
        limit: u32,
    ) -> Result<Changes> {
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open)
            .await
            .expect("the sender is here");
        self.whole
            .fetch_add(u64::from(after == 0), Ordering::SeqCst);
        self.store.changes_in(scope, embedding, after, limit).await
    }

    async fn indexed(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<IndexedTurn>> {
        self.store.indexed(scope, ids).await
    }

    async fn token_vectors(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        passages: &[u32],
    ) -> Result<Vec<Option<Arc<TokenVectors>>>> {
        self.store.token_vectors(scope, embedding, passages).await
    }

    async fn with_metadata(
        &self,
        scope: &Scope,
        labels: &[(String, String)],
    ) -> Result<Vec<TurnId>> {
        self.store.with_metadata(scope, labels).await
    }
}

#[async_trait]
impl Candidates for Gate {
    async fn extent(&self, scope: &Scope, embedding: Option<&EmbeddingSpace>) -> Result<Extent> {
        self.store.extent(scope, embedding).await
    }

    async fn outline_after(&self, scope: &Scope, after: u64, limit: u32) -> Result<Changes> {
        self.outlines
            .fetch_add(u64::from(after == 0), Ordering::SeqCst);
        self.store.outline_after(scope, after, limit).await
    }

    async fn postings(&self, scope: &Scope, terms: &[String]) -> Result<Vec<TermPassages>> {
        self.looked_up.fetch_add(1, Ordering::SeqCst);
        self.store.postings(scope, terms).await
    }

    async fn nearest(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        vector: &[i8],
        among: &Among,
        limit: u32,
    ) -> Result<Vec<Near>> {
        self.store
            .nearest(scope, embedding, vector, among, limit)
            .await
    }

    async fn passages(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        numbers: &[u32],
    ) -> Result<Vec<Option<IndexedPassage>>> {
        self.store.passages(scope, embedding, numbers).await
    }
}

/// The memory of several spaces.
pub struct Memory {
    pub embedder: Arc<WordEmbedder>,
    store: PostgresStore,
    gate: Arc<Gate>,
    batches: AtomicU64,
    _database: Database,
}

impl Memory {
    pub async fn new() -> Self {
        let database = Database::migrated().await;
        let store = database.store().await;
        Self {
            embedder: Arc::default(),
            gate: Gate::new(store.clone(), true),
            store,
            batches: AtomicU64::new(0),
            _database: database,
        }
    }

    /// A retriever with empty caches.
    pub fn retriever(&self, kind: Kind) -> LocalRetriever {
        let held = match kind {
            Kind::Held => return self.over(&self.gate, None),
            Kind::Outlined => 0,
        };
        self.over(&self.gate, Some(remote(&self.gate, held)))
    }

    /// One that builds indexes behind its searches, and the feed that waits for [`Gate::open`].
    pub fn gated(&self) -> (Arc<Gate>, LocalRetriever) {
        let gate = Gate::new(self.store.clone(), false);
        let retriever = self.over(&gate, Some(remote(&gate, u32::MAX)));
        (gate, retriever)
    }

    fn over(&self, gate: &Arc<Gate>, remote: Option<Remote>) -> LocalRetriever {
        let options = Options {
            index_cache: 64 << 20,
            token_cache: 64 << 20,
            answer_bytes: memfleet_retriever::MAX_ANSWER_BYTES,
            calibrations: ModelCalibrations::of_every_model(Weights::shipped()),
        };
        let store = Arc::new(self.store.clone());
        let embedder = self.embedder.clone();
        LocalRetriever::new(
            gate.clone(),
            remote,
            store.clone(),
            store,
            embedder,
            options,
        )
    }

    /// Stores turns as the constructor does, with vectors unless the embedder is down.
    pub async fn tell(&self, scope: &Scope, turns: &[AcceptedTurn]) {
        let number = self.batches.fetch_add(1, Ordering::SeqCst) + 1;
        let batch = indexed(&self.embedder, number, scope, turns).await;
        self.store.commit(vec![batch]).await.unwrap();
    }

    pub async fn forget(&self, scope: &Scope, filter: &TurnFilter) {
        let erasure = PostgresErasure::new(self.store.clone(), Arc::new(NothingWaits));
        erasure.remove(scope, filter).await.unwrap();
    }

    /// Searches as the tenant `acme`.
    pub async fn search(
        &self,
        retriever: &LocalRetriever,
        query: &Query,
    ) -> std::result::Result<Found, Fault> {
        let tenant = TenantId::new("acme").unwrap();
        let context = Context::new(tenant, Duration::from_mins(1));
        retriever.search(&context, query).await
    }

    /// Indexes that were begun from nothing until now.
    pub fn builds(&self) -> u64 {
        self.gate.asked_whole()
    }

    /// Outlines that were begun from nothing until now.
    pub fn spaces(&self) -> u64 {
        self.gate.outlines()
    }
}

fn remote(gate: &Arc<Gate>, held: u32) -> Remote {
    let store = gate.clone();
    Remote {
        store,
        held,
        cold: 0,
    }
}
