//! Connecting, and the ways in: a transaction of one tenant to read or to write, and one that looks across tenants.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memfleet_columns::{embedding_key, json};
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::TenantId;
use memfleet_ports::store::{Result, StoreError};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::failure::{Failure, Outcome};
use crate::ledger::name_embedding;
use crate::schema;
use crate::transaction::{Mode, Settings, Transaction};

/// How much the store may take.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections at most, 1 at least. Default 10.
    pub connections: u32,
    /// How long a call waits for a connection. Default 5 s.
    pub acquire_timeout: Duration,
    /// How long the server works on one statement, locks included. Default 30 s; erasures have ten times as long.
    pub statement_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 10,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        }
    }
}

/// The store of the fleet; clones share it.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pool: PgPool,
    settings: Settings,
    scans_on: bool,
    server: Server,
    /// Names of embedding spaces that the database has, by their hashes; they never change.
    named: Mutex<HashMap<i64, EmbeddingSpace>>,
}

/// How to connect, and what messages call it: host, port and database, never the password.
#[derive(Debug, Clone)]
pub struct Server {
    pub options: PgConnectOptions,
    name: String,
}

impl Server {
    /// TLS is as the URL says: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`.
    pub fn of(url: &str) -> Result<Self> {
        let options = PgConnectOptions::from_str(url)
            .map_err(|cause| StoreError::Unexpected(format!("the URL of the database: {cause}")))?
            .disable_statement_logging();
        let options = match options.get_application_name() {
            None => options.application_name("memfleet"),
            Some(_) => options,
        };
        let database = options.get_database().unwrap_or(options.get_username());
        let name = format!("{}:{}/{database}", options.get_host(), options.get_port());
        Ok(Self { options, name })
    }

    /// Says in errors which server it was.
    pub fn named<T>(&self, outcome: Outcome<T>) -> Result<T> {
        let name = &self.name;
        outcome.map_err(|failure| match failure.into() {
            StoreError::Unavailable(cause) => StoreError::Unavailable(format!("{name}: {cause}")),
            StoreError::Full(cause) => StoreError::Full(format!("{name}: {cause}")),
            StoreError::Damaged(cause) => StoreError::Damaged(format!("{name}: {cause}")),
            StoreError::Foreign(cause) => StoreError::Foreign(format!("{name}: {cause}")),
            StoreError::Unexpected(cause) => StoreError::Unexpected(format!("{name}: {cause}")),
            other => other,
        })
    }
}

impl PostgresStore {
    /// Connects to a database that [`crate::migrate`] has prepared. Must run inside tokio.
    pub async fn connect(url: &str, options: Options) -> Result<Self> {
        let server = Server::of(url)?;
        let opened = Self::open(server.clone(), options).await;
        server.named(opened)
    }

    async fn open(server: Server, options: Options) -> Outcome<Self> {
        let deadline = tokio::time::timeout(options.acquire_timeout, server.options.connect());
        let late = |_| StoreError::Unavailable("the server does not answer".into());
        let mut connection = deadline.await.map_err(late)??;
        let ability = schema::check(&mut connection).await?;
        connection.close().await?;
        let pool = PgPoolOptions::new()
            .max_connections(options.connections.max(1))
            .acquire_timeout(options.acquire_timeout)
            // A broken one shows at the start of its next transaction, without a round trip of its own.
            .test_before_acquire(false)
            .connect_lazy_with(server.options.clone());
        let settings = Settings {
            search_path: ability.search_path,
            statement_timeout: options.statement_timeout,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                pool,
                settings,
                scans_on: ability.scans_on,
                server,
                named: Mutex::default(),
            }),
        })
    }

    /// Waits for the calls under way and closes every connection; later calls fail.
    pub async fn close(&self) {
        self.shared.pool.close().await;
    }

    /// Has the database know the name of an embedding space, in a transaction of its own.
    pub(crate) async fn ensure_named(&self, embedding: &EmbeddingSpace) -> Outcome<()> {
        let key = embedding_key(embedding);
        if self.known_names().contains_key(&key) {
            return Ok(());
        }
        let mut write = self.write_across().await?;
        name_embedding(&mut write, embedding).await?;
        write.commit().await?;
        self.known_names().insert(key, embedding.clone());
        Ok(())
    }

    /// Embedding spaces by their hashes, without those that have no name in the database. Those
    /// that this process has read before cost no statement.
    pub(crate) async fn names(
        &self,
        connection: &mut PgConnection,
        keys: Vec<i64>,
    ) -> Outcome<HashMap<i64, EmbeddingSpace>> {
        let is_unread = |key: &i64| !self.known_names().contains_key(key);
        let unread: Vec<i64> = keys.iter().copied().filter(is_unread).collect();
        if !unread.is_empty() {
            let rows: Vec<(i64, String)> =
                sqlx::query_as("SELECT key, name FROM embedding_spaces WHERE key = ANY ($1)")
                    .bind(unread)
                    .fetch_all(connection)
                    .await?;
            for (key, name) in rows {
                self.known_names().insert(key, json(&name)?);
            }
        }
        let known = self.known_names();
        let named = |key| Some((key, known.get(&key)?.clone()));
        Ok(keys.into_iter().filter_map(named).collect())
    }

    fn known_names(&self) -> MutexGuard<'_, HashMap<i64, EmbeddingSpace>> {
        let names = self.shared.named.lock();
        names.unwrap_or_else(PoisonError::into_inner)
    }

    /// A snapshot of a tenant's rows.
    pub(crate) async fn read(&self, tenant: &TenantId) -> Outcome<Transaction> {
        self.begin(Mode::Read, Some(tenant)).await
    }

    /// A transaction on a tenant's rows; durable when its `commit` returns.
    pub(crate) async fn write(&self, tenant: &TenantId) -> Outcome<Transaction> {
        self.begin(Mode::Write, Some(tenant)).await
    }

    /// The same for what may touch every row of a space.
    pub(crate) async fn write_patiently(&self, tenant: &TenantId) -> Outcome<Transaction> {
        let Shared { pool, settings, .. } = &*self.shared;
        let patient = Settings {
            statement_timeout: settings.statement_timeout * 10,
            ..settings.clone()
        };
        Transaction::begin(pool, &patient, Mode::Write, Some(tenant)).await
    }

    /// A transaction that sees no row; for the functions that look across tenants.
    pub(crate) async fn sweep(&self) -> Outcome<Transaction> {
        self.begin(Mode::Read, None).await
    }

    /// A transaction that sees no row and may change what such functions change.
    pub(crate) async fn write_across(&self) -> Outcome<Transaction> {
        self.begin(Mode::Write, None).await
    }

    async fn begin(&self, mode: Mode, tenant: Option<&TenantId>) -> Outcome<Transaction> {
        let Shared { pool, settings, .. } = &*self.shared;
        Transaction::begin(pool, settings, mode, tenant).await
    }

    /// Whether the extension searches an index of vectors on until it has found enough.
    pub(crate) fn scans_on(&self) -> bool {
        self.shared.scans_on
    }

    /// One question of a port, or one change: in a span of its own where it is part of any, and with the server named in errors.
    /// What is asked again and again for nobody would only be noise among the traces.
    pub(crate) async fn ask<T>(
        &self,
        operation: &'static str,
        asked: impl Future<Output = Outcome<T>>,
    ) -> Result<T> {
        let span = match Span::current().is_none() {
            true => Span::none(),
            false => tracing::info_span!(
                "database",
                otel.name = operation,
                otel.kind = "client",
                otel.status_code = Empty,
                db.system.name = "postgresql",
                db.operation.name = operation,
            ),
        };
        let outcome = asked.instrument(span.clone()).await;
        if outcome.is_err() {
            span.record("otel.status_code", "ERROR");
        }
        self.named(outcome)
    }

    /// Says in errors which server it was.
    pub(crate) fn named<T>(&self, outcome: Outcome<T>) -> Result<T> {
        self.shared.server.named(outcome)
    }
}

/// Tries again once what the server undid since it crossed another transaction.
pub async fn twice<T, F>(attempt: impl Fn() -> F) -> Outcome<T>
where
    F: Future<Output = Outcome<T>>,
{
    match attempt().await {
        Err(Failure::Crossed(_)) => attempt().await,
        outcome => outcome,
    }
}
