//! Where memory is kept and work waits, opened by the scheme of its URL.

use std::sync::Arc;

use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::IngestQueue;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_runtime::BoxError;
use memfleet_sqlite::SqliteStore;

use crate::config::Config;

/// The storage ports of a process.
pub struct Storage {
    /// The turns.
    pub ledger: Arc<dyn Ledger>,
    /// What indexes follow.
    pub feed: Arc<dyn IndexFeed>,
    /// The spaces.
    pub spaces: Arc<dyn SpaceCatalog>,
    /// What removes.
    pub erasure: Arc<dyn Erasure>,
    /// What waits.
    pub queue: Arc<dyn IngestQueue>,
    engine: Engine,
}

/// What is behind the ports.
#[derive(Clone)]
pub enum Engine {
    /// One file.
    Sqlite(Arc<SqliteStore>),
}

impl Storage {
    /// Opens what `store` and `queue` name.
    pub async fn open(config: &Config) -> Result<Self, BoxError> {
        let path = config.store.path().ok_or("store.url names no file")?;
        let store = SqliteStore::open(&path, memfleet_sqlite::Options::default()).await?;
        let store = Arc::new(store);
        Ok(Self {
            ledger: store.clone(),
            feed: store.clone(),
            spaces: store.clone(),
            erasure: store.clone(),
            queue: store.clone(),
            engine: Engine::Sqlite(store),
        })
    }

    /// What has to be closed at the end.
    pub fn engine(&self) -> Engine {
        self.engine.clone()
    }
}

impl Engine {
    /// Finishes what was begun.
    pub async fn close(self) -> Result<(), BoxError> {
        match self {
            Self::Sqlite(store) => Ok(store.close().await?),
        }
    }
}
