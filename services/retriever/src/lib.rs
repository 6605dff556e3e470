//! The retriever: follows the change feed of each space into an in-memory index and ranks its turns for a query. It holds
//! caches only; the store is the truth, and every search first reaches the store's present change sequence.
//!
//! `cache` keeps indexes current, `outlines` asks the store for what is not held, `tokens` reads
//! token vectors. `search` is a query from start to end, `ranking` the order of a group of spaces
//! by one model or two, `stages` its parts, `merging` one answer of several groups, and
//! `explaining` what an explanation shows; scores and their fusion are `memfleet-retrieval`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cache;
mod explaining;
mod hits;
mod merging;
mod outlines;
mod ranking;
mod search;
mod stages;
mod tokens;

use std::sync::Arc;

use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::context::CallPriority;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::events::{Event, Events};
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_retrieval::{ModelCalibration, ModelCalibrations};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use cache::IndexCache;
pub use cache::Remote;
use stages::SearchThreads;
use tokens::TokenReader;

/// Bounds of the retriever's memory and work.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes for the indexes of spaces.
    pub index_cache: usize,
    /// Bytes for token vectors.
    pub token_cache: usize,
    /// How the vectors of each model are scored, and how many candidates the first stage keeps.
    pub calibrations: ModelCalibrations,
    /// Bytes of turns that an answer may hold, neighbours counted: a larger one is refused before it is whole.
    pub answer_bytes: usize,
}

/// Largest answer that clients read.
pub const MAX_ANSWER_BYTES: usize = 128 << 20;

/// The retriever in this process.
#[derive(Clone)]
pub struct LocalRetriever {
    indexes: Arc<IndexCache>,
    tokens: Arc<TokenReader>,
    feed: Arc<dyn IndexFeed>,
    ledger: Arc<dyn Ledger>,
    spaces: Arc<dyn SpaceCatalog>,
    embedder: Arc<dyn Embedder>,
    calibrations: Arc<ModelCalibrations>,
    /// The one of this search.
    calibration: ModelCalibration,
    answer_bytes: usize,
    computing: SearchThreads,
}

impl LocalRetriever {
    /// A retriever with empty caches. Without `remote` it holds every space that it searches.
    pub fn new(
        feed: Arc<dyn IndexFeed>,
        remote: Option<Remote>,
        ledger: Arc<dyn Ledger>,
        spaces: Arc<dyn SpaceCatalog>,
        embedder: Arc<dyn Embedder>,
        options: Options,
    ) -> Self {
        let tokens = Arc::new(TokenReader::new(feed.clone(), options.token_cache));
        let indexes = IndexCache::new(feed.clone(), remote, tokens.clone(), options.index_cache);
        Self {
            indexes: Arc::new(indexes),
            tokens,
            computing: SearchThreads::new(),
            feed,
            ledger,
            spaces,
            embedder,
            calibration: options.calibrations.of_words().clone(),
            calibrations: Arc::new(options.calibrations),
            answer_bytes: options.answer_bytes,
        }
    }

    /// The same retriever, whose searches compute with this priority.
    fn with_priority(&self, priority: CallPriority) -> Self {
        Self {
            computing: self.computing.with_priority(priority),
            ..self.clone()
        }
    }

    /// The same retriever, whose searches compare vectors of this embedding space. Fails for a
    /// model that is not calibrated.
    fn calibrated_for(&self, embedding: &EmbeddingSpace) -> Result<Self, Fault> {
        let calibration = self.calibrations.of(embedding).ok_or_else(|| {
            let EmbeddingSpace {
                model, revision, ..
            } = embedding;
            let message = format!("this version has no calibration of {model} at {revision}");
            Fault::new(
                FaultKind::FailedPrecondition,
                "MODEL_NOT_CALIBRATED",
                message,
            )
        })?;
        Ok(Self {
            calibration: calibration.clone(),
            ..self.clone()
        })
    }

    /// Lets go of what is forgotten, until `shutdown`.
    pub async fn follow(&self, events: &Events, shutdown: CancellationToken) {
        let mut heard = events.listen();
        loop {
            let event = tokio::select! {
                () = shutdown.cancelled() => return,
                event = heard.recv() => event,
            };
            match event {
                Ok(Event::Forgotten { scope }) => self.indexes.drop_space(&scope),
                Ok(Event::Settled { .. } | Event::Derived { .. }) => {}
                // What was missed may have been a forget.
                Ok(Event::Missed) | Err(RecvError::Lagged(_)) => self.indexes.drop_all(),
                Err(RecvError::Closed) => return,
            }
        }
    }
}
