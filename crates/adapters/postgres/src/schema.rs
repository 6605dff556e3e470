//! The schema's version: [`migrate`] brings it up to date, `check` refuses one that this build
//! cannot work with. A released migration is never edited: the next one corrects it, and only adds;
//! one that older builds cannot work with says so in `compatible_since`.

use std::time::Duration;

use memfleet_ports::store::{Result, StoreError};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row};
use tokio::time::sleep;

use crate::failure::{Failure, Outcome};
use crate::migrations::{self, newest};
use crate::store::Server;
use crate::transaction::ROLE;

/// End of the cause of [`StoreError::Unavailable`] while the schema is older than this build.
pub const MIGRATE: &str = "run `memfleet migrate`";

/// Who runs migrations holds this advisory lock of the database.
const LOCK: i64 = 0x6d65_6d66_6c65_6574;

/// Pause between two tries to get the lock.
const PAUSE: Duration = Duration::from_millis(100);

/// What [`migrate`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The schema's version before; 0 where there was none.
    pub from: i64,
    /// Its version now.
    pub to: i64,
}

/// Brings the database to the newest schema. One that is newer still is left alone where this build can work with it, and refused
/// else. Runs as the user of the URL, who owns what it
/// makes; several at a time wait for each other.
pub async fn migrate(url: &str) -> Result<Migrated> {
    migrate_to(url, newest()).await
}

/// Brings the database to one of its versions and no further, to try upgrades from there.
pub async fn migrate_to(url: &str, version: i64) -> Result<Migrated> {
    let server = Server::of(url)?;
    let migrated = async {
        let mut connection = server.options.connect().await?;
        lock(&mut connection).await?;
        let migrated = bring_to(&mut connection, version).await?;
        connection.close().await?;
        Ok(migrated)
    };
    server.named(migrated.await)
}

/// Until the connection ends. It is asked for again and again: who waits inside a statement holds
/// up indexes that are made concurrently.
async fn lock(connection: &mut PgConnection) -> Outcome<()> {
    let lock = || sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK);
    while !lock().fetch_one(&mut *connection).await? {
        sleep(PAUSE).await;
    }
    Ok(())
}

async fn bring_to(connection: &mut PgConnection, to: i64) -> Outcome<Migrated> {
    let from = version(connection).await?;
    if from > newest() {
        refuse_broken(connection, from).await?;
    }
    if from > to {
        return Ok(Migrated { from, to: from });
    }
    if from == 0 {
        refuse_foreign(connection).await?;
    }
    let schema = vector_schema(connection).await?;
    let prepared =
        format!("CREATE SCHEMA IF NOT EXISTS memfleet; SET search_path = memfleet, {schema}");
    for statements in [prepared.as_str(), include_str!("../migrations/roles.sql")] {
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
            .execute(&mut *connection)
            .await?;
    }
    migrations::run(connection, to).await?;
    Ok(Migrated { from, to })
}

/// Refuses a schema `memfleet` that has tables of another application, before anything is changed in
/// it. Other schemas of the database may hold what they like.
async fn refuse_foreign(connection: &mut PgConnection) -> Outcome<()> {
    let tables = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'memfleet' AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname <> '_sqlx_migrations'
         ORDER BY 1 LIMIT 1",
    );
    let table: Option<String> = tables.fetch_optional(connection).await?;
    match table {
        None => Ok(()),
        Some(table) => Err(StoreError::Foreign(format!(
            "its schema memfleet is of another application (it has a table {table}): give memfleet another database"
        ))
        .into()),
    }
}

/// What a database can do.
#[derive(Debug)]
pub struct Ability {
    /// The search path to work with.
    pub search_path: String,
    /// The extension searches an index of vectors on until it has found enough: pgvector 0.8.
    pub scans_on: bool,
}

/// Whether this build and this user can work with the database.
pub async fn check(connection: &mut PgConnection) -> Outcome<Ability> {
    let refused = |cause| Failure::Store(StoreError::Unavailable(cause));
    let row = sqlx::query(
        "SELECT quote_ident(current_user), EXISTS (SELECT FROM pg_namespace WHERE nspname = 'memfleet'),
             coalesce((SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = $1), false)",
    )
    .bind(ROLE)
    .fetch_one(&mut *connection)
    .await?;
    let (user, is_there, is_member): (String, bool, bool) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if is_there && !is_member {
        return Err(refused(format!(
            "the user {user} may not act as {ROLE}: run `GRANT {ROLE} TO {user}` as an administrator"
        )));
    }
    let mut found = 0;
    if is_there {
        sqlx::query("SELECT set_config('role', $1, false)")
            .bind(ROLE)
            .execute(&mut *connection)
            .await?;
        found = version(connection).await?;
    }
    let known = newest();
    if found > known {
        refuse_broken(connection, found).await?;
    }
    if found < known {
        return Err(refused(format!(
            "its schema has version {found}, this build needs {known}: {MIGRATE}"
        )));
    }
    match find_vector(connection).await? {
        Some(schema) => Ok(Ability {
            search_path: format!("memfleet, {schema}"),
            scans_on: scans_on(connection).await?,
        }),
        None => Err(refused("the extension vector is gone".into())),
    }
}

async fn scans_on(connection: &mut PgConnection) -> Outcome<bool> {
    let version = sqlx::query_scalar(
        "SELECT string_to_array(extversion, '.')::integer[] >= ARRAY[0, 8] FROM pg_extension WHERE extname = 'vector'",
    );
    Ok(version.fetch_one(connection).await?)
}

/// A newer schema says which builds it still serves: migrations add, so that replicas of two versions work side by side.
async fn refuse_broken(connection: &mut PgConnection, found: i64) -> Outcome<()> {
    let oldest = sqlx::query_scalar("SELECT memfleet.compatible_since()");
    let oldest: i64 = oldest.fetch_one(connection).await?;
    match newest() {
        known if oldest > known => Err(StoreError::Newer { found, known }.into()),
        _ => Ok(()),
    }
}

/// The newest migration that was applied; 0 where there is none.
async fn version(connection: &mut PgConnection) -> Outcome<i64> {
    let table = sqlx::query_scalar("SELECT to_regclass('memfleet._sqlx_migrations') IS NOT NULL");
    if !table.fetch_one(&mut *connection).await? {
        return Ok(0);
    }
    let version =
        sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM memfleet._sqlx_migrations");
    Ok(version.fetch_one(connection).await?)
}

/// The schema of pgvector, if that is there.
async fn find_vector(connection: &mut PgConnection) -> Outcome<Option<String>> {
    let schema = sqlx::query_scalar(
        "SELECT quote_ident(n.nspname) FROM pg_extension e
         JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
    );
    Ok(schema.fetch_optional(connection).await?)
}

/// The same; it is made where it is missing.
async fn vector_schema(connection: &mut PgConnection) -> Outcome<String> {
    if let Some(schema) = find_vector(connection).await? {
        return Ok(schema);
    }
    let made = sqlx::query("CREATE EXTENSION IF NOT EXISTS vector")
        .execute(&mut *connection)
        .await;
    made.map_err(|error| {
        let cause = match error.as_database_error() {
            Some(cause) => cause.message().to_owned(),
            None => error.to_string(),
        };
        StoreError::Unavailable(format!(
            "the extension vector (pgvector 0.7 or newer) is missing and cannot be made: {cause}; install it on the server, or \
             run `CREATE EXTENSION vector` as an administrator"
        ))
    })?;
    let gone = || StoreError::Unexpected("the extension vector is gone that was just made".into());
    Ok(find_vector(connection).await?.ok_or_else(gone)?)
}
