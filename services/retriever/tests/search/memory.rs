//! A store with turns in it, a retriever over it, and a look at what the retriever reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, TokenVectors};
use memfleet_domain::ids::{TenantId, TurnId};
use memfleet_domain::turn::{AcceptedTurn, Turn};
use memfleet_domain::{Fault, Scope};
use memfleet_language::{Analyzer, Language};
use memfleet_ports::conformance::samples::scope;
use memfleet_ports::context::Context;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::events::Events;
use memfleet_ports::feed::{Changes, IndexFeed, IndexedTurn};
use memfleet_ports::ledger::{Ledger, TextVectors};
use memfleet_ports::retriever::{Found, Query, Retriever};
use memfleet_ports::store::Result;
use memfleet_ports::testing::WordEmbedder;
use memfleet_retrieval::document::documents;
use memfleet_retrieval::{ModelCalibrations, Weights};
use memfleet_retriever::{LocalRetriever, MAX_ANSWER_BYTES, Options};
use memfleet_sqlite::SqliteStore;

use crate::told::indexed;

/// The feed of a store, counting how often an index was begun from nothing and how many passages' vectors were read.
pub struct CountingFeed {
    store: Arc<SqliteStore>,
    builds: AtomicU64,
    passages_read: AtomicU64,
}

#[async_trait]
impl IndexFeed for CountingFeed {
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
        if after == 0 {
            self.builds.fetch_add(1, Ordering::SeqCst);
        }
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
        self.passages_read
            .fetch_add(passages.len() as u64, Ordering::SeqCst);
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

/// The memory of several spaces.
pub struct Memory {
    pub store: Arc<SqliteStore>,
    pub embedder: Arc<WordEmbedder>,
    pub feed: Arc<CountingFeed>,
    pub retriever: Arc<LocalRetriever>,
    pub events: Events,
    batches: AtomicU64,
    _directory: tempfile::TempDir,
}

impl Memory {
    /// An empty one, with room for every index.
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.db");
        let store = SqliteStore::open(path, memfleet_sqlite::Options::default()).await;
        let store = Arc::new(store.unwrap());
        let feed = Arc::new(CountingFeed {
            store: store.clone(),
            builds: AtomicU64::new(0),
            passages_read: AtomicU64::new(0),
        });
        let embedder = Arc::new(WordEmbedder::default());
        let retriever = retriever(&store, &feed, &embedder, options());
        Self {
            store,
            embedder,
            feed,
            retriever,
            events: Events::default(),
            batches: AtomicU64::new(0),
            _directory: directory,
        }
    }

    /// Bounds the indexes that are kept.
    pub fn set_budget(&mut self, bytes: usize) {
        self.set_options(Options {
            index_cache: bytes,
            ..options()
        });
    }

    /// Begins with an empty cache and other bounds.
    pub fn set_options(&mut self, options: Options) {
        self.retriever = retriever(&self.store, &self.feed, &self.embedder, options);
    }

    /// Begins with an empty cache and another embedder.
    pub fn replace_embedder(&mut self, embedder: WordEmbedder) {
        self.embedder = Arc::new(embedder);
        self.set_options(options());
    }

    /// Stores turns as the constructor does, with vectors unless the embedder is down.
    pub async fn tell(&self, scope: &Scope, turns: &[AcceptedTurn]) {
        let number = self.batches.fetch_add(1, Ordering::SeqCst) + 1;
        let batch = indexed(&self.embedder, number, scope, turns).await;
        self.store.commit(vec![batch]).await.unwrap();
    }

    /// Stores turns with vectors of this embedding space.
    pub async fn tell_in(&self, space: &EmbeddingSpace, scope: &Scope, turns: &[AcceptedTurn]) {
        let number = self.batches.fetch_add(1, Ordering::SeqCst) + 1;
        let mut batch = indexed(&self.embedder, number, scope, turns).await;
        for (turn, passages) in turns.iter().zip(&mut batch.passages) {
            let vectors = self.embedder.embed_passages_in(space, texts_of(turn)).await;
            for (passage, vectors) in passages.iter_mut().zip(vectors.unwrap()) {
                passage.vectors = Some(vectors);
            }
        }
        batch.embedding_space = Some(space.clone());
        self.store.commit(vec![batch]).await.unwrap();
    }

    /// Brings the vectors that were missing.
    pub async fn bring_vectors(&self) {
        self.bring_vectors_in(&self.embedder.space().await.unwrap())
            .await;
    }

    /// Brings the vectors of an embedding space that were missing.
    pub async fn bring_vectors_in(&self, space: &EmbeddingSpace) {
        for waiting in self.store.without_vectors(space, 1_000).await.unwrap() {
            let turn = &waiting.turn.accepted;
            let vectors = self.embedder.embed_passages_in(space, texts_of(turn)).await;
            let made = [TextVectors::of_turn(turn.id, vectors.unwrap())];
            let attached = self.store.attach_vectors(&waiting.scope, space, &made);
            attached.await.unwrap();
        }
    }

    /// Searches as the tenant `acme`.
    pub async fn search(&self, query: &Query) -> std::result::Result<Found, Fault> {
        self.search_as("acme", query).await
    }

    /// Searches as a tenant.
    pub async fn search_as(
        &self,
        tenant: &str,
        query: &Query,
    ) -> std::result::Result<Found, Fault> {
        let tenant = TenantId::new(tenant).unwrap();
        let context = Context::new(tenant, Duration::from_mins(1));
        self.retriever.search(&context, query).await
    }

    /// What a search finds, as texts, the best first.
    pub async fn found(&self, query: &Query) -> Vec<String> {
        let found = self.search(query).await.unwrap();
        found.hits.iter().map(|hit| text(&hit.turn)).collect()
    }

    /// Indexes that were begun from nothing until now.
    pub fn builds(&self) -> u64 {
        self.feed.builds.load(Ordering::SeqCst)
    }

    /// Passages whose token vectors were read from the store until now.
    pub fn passages_read(&self) -> u64 {
        self.feed.passages_read.load(Ordering::SeqCst)
    }
}

/// The texts of a turn that are embedded.
fn texts_of(turn: &AcceptedTurn) -> Vec<String> {
    let text = turn.content.searchable_text();
    let analyzer = Analyzer::new(Language::English);
    let documents = documents(turn.speaker.as_str(), &text, &analyzer);
    documents
        .into_iter()
        .map(|document| document.text)
        .collect()
}

/// Room for every index and every answer.
pub fn options() -> Options {
    Options {
        index_cache: 64 << 20,
        token_cache: 1 << 20,
        calibrations: ModelCalibrations::of_every_model(Weights::shipped()),
        answer_bytes: MAX_ANSWER_BYTES,
    }
}

fn retriever(
    store: &Arc<SqliteStore>,
    feed: &Arc<CountingFeed>,
    embedder: &Arc<WordEmbedder>,
    options: Options,
) -> Arc<LocalRetriever> {
    Arc::new(LocalRetriever::new(
        feed.clone(),
        None,
        store.clone(),
        store.clone(),
        embedder.clone(),
        options,
    ))
}

/// A space of the tenant `acme`.
pub fn acme(space: &str) -> Scope {
    scope("acme", space)
}

/// The words of a turn.
pub fn text(turn: &Turn) -> String {
    turn.accepted.content.text.clone()
}
