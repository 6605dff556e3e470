//! Versioned migrations, run by [`migrate`]. A released migration is never edited: the next one mends it, and only adds; one that
//! older builds cannot work with says so in `compatible_since`.

use memfleet_ports::store::{Result, StoreError};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row, SqlSafeStr};

use crate::failure::{Failure, Outcome};
use crate::store::Server;
use crate::transaction::ROLE;

/// Every migration in order: version, name, statements.
const MIGRATIONS: [(i64, &str, &str); 18] = [
    (1, "first", include_str!("../migrations/0001_first.sql")),
    (2, "access", include_str!("../migrations/0002_access.sql")),
    (3, "outbox", include_str!("../migrations/0003_outbox.sql")),
    (
        4,
        "knowledge",
        include_str!("../migrations/0004_knowledge.sql"),
    ),
    (
        5,
        "retention",
        include_str!("../migrations/0005_retention.sql"),
    ),
    (6, "stages", include_str!("../migrations/0006_stages.sql")),
    (
        7,
        "narratives",
        include_str!("../migrations/0007_narratives.sql"),
    ),
    (
        8,
        "chronicle",
        include_str!("../migrations/0008_chronicle.sql"),
    ),
    (
        9,
        "consolidate",
        include_str!("../migrations/0009_consolidate.sql"),
    ),
    (10, "relate", include_str!("../migrations/0010_relate.sql")),
    (11, "rebind", include_str!("../migrations/0011_rebind.sql")),
    (
        12,
        "semanticize",
        include_str!("../migrations/0012_semanticize.sql"),
    ),
    (
        13,
        "left_over",
        include_str!("../migrations/0013_left_over.sql"),
    ),
    (
        14,
        "prompts",
        include_str!("../migrations/0014_prompts.sql"),
    ),
    (15, "echoes", include_str!("../migrations/0015_echoes.sql")),
    (
        16,
        "conversations",
        include_str!("../migrations/0016_conversations.sql"),
    ),
    (17, "tally", include_str!("../migrations/0017_tally.sql")),
    (
        19,
        "secrets",
        include_str!("../migrations/0019_secrets.sql"),
    ),
];

/// Who runs migrations holds this advisory lock of the database.
const LOCK: i64 = 0x6d65_6d66_6c65_6574;

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
    let server = Server::of(url)?;
    let migrated = async {
        let mut connection = server.options.connect().await?;
        // Ends with the connection.
        sqlx::query("SELECT pg_advisory_lock($1)")
            .bind(LOCK)
            .execute(&mut connection)
            .await?;
        let migrated = bring_up_to_date(&mut connection).await?;
        connection.close().await?;
        Ok(migrated)
    };
    server.named(migrated.await)
}

async fn bring_up_to_date(connection: &mut PgConnection) -> Outcome<Migrated> {
    let known = newest();
    let from = version(connection).await?;
    if from > known {
        refuse_broken(connection, from).await?;
        return Ok(Migrated { from, to: from });
    }
    let schema = vector_schema(connection).await?;
    let prepared =
        format!("CREATE SCHEMA IF NOT EXISTS memfleet; SET search_path = memfleet, {schema}");
    for statements in [prepared.as_str(), include_str!("../migrations/roles.sql")] {
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
            .execute(&mut *connection)
            .await?;
    }
    let migrations = MIGRATIONS.map(|(version, name, statements)| {
        let (kind, without_transaction) = (MigrationType::Simple, false);
        let statements = statements.into_sql_str();
        Migration::new(version, name.into(), kind, statements, without_transaction)
    });
    let mut migrator = Migrator::with_migrations(migrations.to_vec());
    // Ours is held already.
    migrator.set_locking(false);
    migrator.run(connection).await?;
    Ok(Migrated { from, to: known })
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
            "its schema has version {found}, this build needs {known}: run `memfleet migrate`"
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

fn newest() -> i64 {
    MIGRATIONS[MIGRATIONS.len() - 1].0
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use memfleet_ports::knowledge::Stage;

    use super::*;

    #[test]
    fn every_migration_is_run() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        // `roles.sql` is run before each of them.
        let there: BTreeSet<String> = names.filter(|name| name != "roles.sql").collect();
        let run = MIGRATIONS.map(|(version, name, _)| format!("{version:04}_{name}.sql"));
        assert_eq!(there, BTreeSet::from(run));
    }

    #[test]
    fn every_stage_hears_of_a_change() {
        let mut statements = MIGRATIONS.iter().rev().map(|(.., statements)| statements);
        let newest = statements.find(|it| it.contains("FUNCTION fall_behind()"));
        // A rebuild begins where somebody asks for it.
        for stage in Stage::ALL.iter().filter(|it| **it != Stage::Rebuild) {
            let name = format!("'{}'", stage.name());
            assert!(newest.unwrap().contains(&name), "{name}");
        }
    }
}
