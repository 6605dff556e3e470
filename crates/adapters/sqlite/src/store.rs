//! Opening and closing the file, and the two ways in: readers on snapshots, one writer at a time.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use memfleet_ports::knowledge::LOST_CLAIMS;
use memfleet_ports::queue::{LETTER_BYTES, LetterTally};
use memfleet_ports::store::{Result, StoreError};
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Sqlite, SqliteConnection, Transaction};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};

use crate::failure::{Failure, Outcome};
use crate::lock::Lock;
use crate::queue::publish::{self, Publisher};
use crate::queue::taking::Held;
use crate::{private, schema, scrub};

/// How much the store may take.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections that read beside the writer, 1 at least. Default 4.
    pub readers: u32,
    /// Page cache of the writer in bytes. Default 4 MiB.
    pub writer_cache: u64,
    /// Page cache of each reader in bytes. Default 2 MiB.
    pub reader_cache: u64,
    /// How long a statement waits for a lock. Default 5 s.
    pub busy_timeout: Duration,
    /// The largest size of the database in pages of 16 KiB; a write beyond it is [`StoreError::Full`]. Default, and at most: 512 GiB.
    pub max_pages: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            readers: 4,
            writer_cache: 4 << 20,
            reader_cache: 2 << 20,
            busy_timeout: Duration::from_secs(5),
            max_pages: None,
        }
    }
}

/// Larger than SQLite's default so that rows of 3 KiB (token vectors) leave little of a page unused.
const PAGE_SIZE: u32 = 16 << 10;

/// Connections for [`SqliteStore::look_up`].
const LOOKUPS: u32 = 2;

/// Rows that a connection reads ahead of who takes them: 8 MiB of the largest texts of turns.
const ROW_BUFFER: usize = 128;

/// Pages of a database, 512 GiB. A [`crate::scrub`] tells the kind of a page by its first byte, which beyond may be that of a
/// page number.
pub(crate) const MAX_PAGES: u32 = (2 << 24) - 1;

/// The store of one node; clones share it.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    options: Options,
    readers: SqlitePool,
    lookups: SqlitePool,
    pub(crate) writers: Writers,
    pub(crate) publisher: Publisher,
    pub(crate) held: Mutex<Held>,
    /// When bytes of dead letters are to be bounded; their number is at each letter.
    pub(crate) letters: LetterTally,
    pub(crate) ready: Arc<Notify>,
    /// Held by the scrub that is going on.
    pub(crate) scrubbing: Arc<Mutex<()>>,
    _lock: Arc<Lock>,
}

impl SqliteStore {
    /// Opens the database, creating it where there is none, and brings its schema up to date. Must run inside tokio.
    ///
    /// Pages are not all read here (that would take long on a large file): damage is reported by the call that meets it.
    pub async fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref().to_owned();
        // Two names of a file are one store.
        let path = path.canonicalize().unwrap_or(path);
        let lock = Arc::new(Lock::take(&path)?);
        let refused = schema::refuse_foreign(&path).await;
        refused.map_err(|Failure(error)| named(error, &path))?;
        private::make(&path)
            .map_err(|cause| named(StoreError::Unavailable(cause.to_string()), &path))?;
        let opened = Self::connect(path.clone(), options, lock).await;
        opened.map_err(|Failure(error)| named(error, &path))
    }

    async fn connect(path: PathBuf, options: Options, lock: Arc<Lock>) -> Outcome<Self> {
        let durable = connection(&path, &options, options.writer_cache);
        let relaxed = durable.clone().synchronous(SqliteSynchronous::Normal);
        let reader = connection(&path, &options, options.reader_cache).pragma("query_only", "ON");
        let durable = pool(1).connect_with(durable).await?;
        prepare(&durable, &path).await?;
        let writers = Writers {
            turn: Arc::default(),
            workers: Arc::default(),
            durable,
            relaxed: pool(1).connect_lazy_with(relaxed),
        };
        let ready = Arc::new(Notify::new());
        Ok(Self {
            shared: Arc::new(Shared {
                publisher: Publisher::start(
                    writers.clone(),
                    Arc::clone(&ready),
                    Arc::downgrade(&lock),
                ),
                readers: pool(options.readers.max(1)).connect_lazy_with(reader.clone()),
                lookups: pool(LOOKUPS).connect_lazy_with(reader),
                writers,
                held: Mutex::default(),
                letters: LetterTally::new(u64::MAX, LETTER_BYTES),
                ready,
                scrubbing: Arc::default(),
                path,
                options,
                _lock: lock,
            }),
        })
    }

    /// Moves everything into the main file and closes it. Without it nothing is lost: the next open recovers the WAL.
    /// Another process may open the database once the last clone is dropped.
    pub async fn close(&self) -> Result<()> {
        let shared = &self.shared;
        shared.readers.close().await;
        shared.lookups.close().await;
        let turn = shared.writers.turn.lock().await;
        shared.writers.relaxed.close().await;
        let emptied = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&shared.writers.durable)
            .await;
        shared.writers.durable.close().await;
        drop(turn);
        emptied.map_err(Failure::from)?;
        Ok(())
    }

    /// A snapshot to read from.
    pub(crate) async fn read(&self) -> Outcome<Transaction<'static, Sqlite>> {
        Ok(self.shared.readers.begin().await?)
    }

    /// A connection for a single statement that reads a few rows by an index. It has a pool of its
    /// own, so that a lookup does not wait for those who read thousands, and no transaction: each
    /// step of one is a round trip to the thread of its connection.
    pub(crate) async fn look_up(&self) -> Outcome<PoolConnection<Sqlite>> {
        Ok(self.shared.lookups.acquire().await?)
    }

    /// A connection for a single statement that reads many rows.
    pub(crate) async fn read_once(&self) -> Outcome<PoolConnection<Sqlite>> {
        Ok(self.shared.readers.acquire().await?)
    }

    /// The one write transaction; on disk when its `commit` returns.
    pub(crate) async fn write(&self) -> Outcome<Write> {
        self.shared.writers.begin_durable().await
    }

    /// Write transaction of a worker, on disk when it is committed, see [`Writers::workers`].
    pub(crate) async fn write_as_worker(&self) -> Outcome<Write> {
        let writers = &self.shared.writers;
        writers.begin_as_worker(&writers.durable).await
    }

    /// Write transaction of a worker that may be lost with the machine: the next look makes up for
    /// it.
    pub(crate) async fn write_briefly_as_worker(&self) -> Outcome<Write> {
        let writers = &self.shared.writers;
        writers.begin_as_worker(&writers.relaxed).await
    }

    /// How to open one more connection, for what must not disturb the others.
    pub(crate) fn connection(&self) -> SqliteConnectOptions {
        let shared = &self.shared;
        connection(&shared.path, &shared.options, shared.options.writer_cache)
    }
}

/// Longest pause after a part of a large batch.
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

/// Pause after a part of a large batch that took so long: others find the writer free three
/// quarters of the time.
pub(crate) fn pause_after(part: Duration) -> Duration {
    (part * 3).min(LONGEST_PAUSE)
}

/// The connections that write, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Writers {
    /// Whose turn it is. SQLite's own lock would do, but waiting for it polls.
    pub(crate) turn: Arc<Mutex<()>>,
    /// Line of the workers (ingestion, agents, removals, scrubs), the first of whom waits for the turn: a caller waits for
    /// two of their transactions at most, however many workers there are.
    workers: Arc<Mutex<()>>,
    durable: SqlitePool,
    /// Survives the death of the process, may lose its last commits when the machine dies: for what a redelivery mends.
    relaxed: SqlitePool,
}

impl Writers {
    pub(crate) async fn begin_durable(&self) -> Outcome<Write> {
        self.begin(&self.durable, None).await
    }

    pub(crate) async fn begin_relaxed(&self) -> Outcome<Write> {
        self.begin(&self.relaxed, None).await
    }

    async fn begin_as_worker(&self, pool: &SqlitePool) -> Outcome<Write> {
        let first = Arc::clone(&self.workers).lock_owned().await;
        self.begin(pool, Some(first)).await
    }

    async fn begin(&self, pool: &SqlitePool, first: Option<OwnedMutexGuard<()>>) -> Outcome<Write> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
        Ok(Write {
            transaction,
            _turn: turn,
            _first: first,
        })
    }
}

/// A write transaction; rolled back when dropped.
#[derive(Debug)]
pub(crate) struct Write {
    transaction: Transaction<'static, Sqlite>,
    _turn: OwnedMutexGuard<()>,
    _first: Option<OwnedMutexGuard<()>>,
}

impl Write {
    pub(crate) async fn commit(self) -> Outcome<()> {
        Ok(self.transaction.commit().await?)
    }
}

impl Deref for Write {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.transaction
    }
}

impl DerefMut for Write {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }
}

/// The newest schema. A scrub that is due is only told of: it takes long, and may fail where all else works.
async fn prepare(durable: &SqlitePool, path: &Path) -> Outcome<()> {
    let mut connection = durable.acquire().await?;
    require_pages(&mut connection).await?;
    schema::migrate(&mut connection).await?;
    // Whoever wrote or held them is gone: the file has one process at a time.
    publish::remove_orphans(&mut connection).await?;
    // Leases of spaces with lost claims stay: their work may be what ended the process.
    sqlx::query(
        "UPDATE progress SET leased_until = NULL WHERE leased_until IS NOT NULL AND claims < ?",
    )
    .bind(LOST_CLAIMS)
    .execute(&mut *connection)
    .await?;
    if scrub::is_due(&mut connection).await? {
        tracing::warn!(path = %path.display(), "text of forgotten turns may still be in the file: a scrub is due");
    }
    Ok(())
}

/// Refuses an SQLite that was built without what a scrub needs.
async fn require_pages(connection: &mut SqliteConnection) -> Outcome<()> {
    let built: bool = sqlx::query_scalar("SELECT sqlite_compileoption_used('ENABLE_DBPAGE_VTAB')")
        .fetch_one(connection)
        .await?;
    match built {
        true => Ok(()),
        false => Err(Failure(StoreError::Unexpected(
            "SQLite was built without sqlite_dbpage: build with the flags in .cargo/config.toml"
                .into(),
        ))),
    }
}

fn connection(path: &Path, options: &Options, cache: u64) -> SqliteConnectOptions {
    let connection = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .page_size(PAGE_SIZE)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(options.busy_timeout)
        // Rows come over from a thread, which is woken once for so many of them.
        .row_buffer_size(ROW_BUFFER)
        .pragma("secure_delete", "ON")
        .pragma("temp_store", "MEMORY")
        .pragma("journal_size_limit", "16777216")
        .pragma("cache_size", format!("-{}", cache >> 10))
        .disable_statement_logging();
    let pages = options.max_pages.unwrap_or(MAX_PAGES).min(MAX_PAGES);
    connection.pragma("max_page_count", pages.to_string())
}

fn pool(connections: u32) -> PoolOptions<Sqlite> {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_release(|connection, _| Box::pin(is_idle(connection)))
}

/// Whether a connection that comes back has left its transaction. SQLite ends one by itself when the disk is full, the
/// driver then fails to roll it back and counts it for ever: such a connection is closed, and the pool opens another.
async fn is_idle(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    // Work that was dropped ends in the background: the answer to a ping comes after it.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

/// Errors of opening say which file.
fn named(error: StoreError, path: &Path) -> StoreError {
    let path = path.display();
    match error {
        StoreError::Unavailable(cause) => StoreError::Unavailable(format!("{path}: {cause}")),
        StoreError::Full(cause) => StoreError::Full(format!("{path}: {cause}")),
        StoreError::Damaged(cause) => StoreError::Damaged(format!("{path}: {cause}")),
        StoreError::Foreign(cause) => StoreError::Foreign(format!("{path}: {cause}")),
        StoreError::Unexpected(cause) => StoreError::Unexpected(format!("{path}: {cause}")),
        newer => newer,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_caller_waits_for_two_transactions_of_workers_at_most() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.db");
        let store = SqliteStore::open(path, Options::default()).await.unwrap();
        let first = store.write_as_worker().await.unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let mut line = Vec::new();
        for _ in 0..8 {
            let (store, done) = (store.clone(), done.clone());
            line.push(tokio::spawn(async move {
                let write = store.write_briefly_as_worker().await.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
                write.commit().await.unwrap();
            }));
        }
        // All of them stand in line.
        tokio::task::yield_now().await;
        let caller = tokio::spawn(async move {
            let write = store.write().await.unwrap();
            write.commit().await.unwrap();
            done.load(Ordering::SeqCst)
        });
        tokio::task::yield_now().await;
        first.commit().await.unwrap();
        assert!(caller.await.unwrap() <= 2);
        for worker in line {
            worker.await.unwrap();
        }
    }
}
