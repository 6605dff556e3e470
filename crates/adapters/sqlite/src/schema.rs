//! Versioned migrations, run at open. A released migration is never edited: the next one corrects
//! it.

use std::path::Path;

use memfleet_ports::store::{Result, StoreError};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqlSafeStr, SqliteConnection};

use crate::failure::{Failure, Outcome};

macro_rules! migrations {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../migrations/", $name, ".sql")))),*]
    };
}

/// Every migration in order: its name, which begins with its version, and its statements.
const MIGRATIONS: &[(&str, &str)] = migrations![
    "0001_first",
    "0002_language",
    "0003_acceptance",
    "0004_letters",
    "0005_tenants",
    "0006_erased",
    "0007_erased_acceptance",
    "0008_bytes",
    "0009_access",
    "0010_accepted",
    "0011_knowledge",
    "0012_retention",
    "0013_chronicle",
    "0014_graph",
    "0015_prompts",
    "0016_echoes",
    "0017_conversations",
    "0018_tally",
    "0019_unlisted",
    "0020_traces",
    "0021_unscrubbed",
    "0022_secrets",
    "0023_shares",
    "0024_sessions",
    "0026_spaces_in_turn",
    "0027_large_batches",
    "0028_lost_claims",
    "0029_embeddings",
    "0030_language",
];

/// Versions of the schema, from the first on.
pub fn versions() -> impl DoubleEndedIterator<Item = i64> {
    MIGRATIONS.iter().map(|(name, _)| {
        let (version, _) = name.split_once('_').expect("a version and a name");
        version.parse().expect("digits")
    })
}

fn newest() -> i64 {
    versions().next_back().expect("there are migrations")
}

/// Refuses the file of another application, before anything is changed in it. One that is empty or
/// not there is taken.
pub async fn refuse_foreign(path: &Path) -> Outcome<()> {
    if !path.exists() {
        return Ok(());
    }
    let options = SqliteConnectOptions::new().filename(path);
    let mut connection = options.disable_statement_logging().connect().await?;
    let found = foreign_table(&mut connection).await;
    connection.close().await?;
    match found? {
        None => Ok(()),
        Some(table) => Err(Failure(StoreError::Foreign(format!(
            "it is the database of another application (it has a table `{table}`): name a file of its own"
        )))),
    }
}

/// Some table of a file that no migration of ours was applied to.
async fn foreign_table(connection: &mut SqliteConnection) -> Outcome<Option<String>> {
    let tables = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name = '_sqlx_migrations', name LIMIT 1";
    let Some(table) = sqlx::query_scalar(tables)
        .fetch_optional(&mut *connection)
        .await?
    else {
        return Ok(None);
    };
    let has_record = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations')";
    if !sqlx::query_scalar(has_record)
        .fetch_one(&mut *connection)
        .await?
    {
        return Ok(Some(table));
    }
    // A first start that was killed leaves the record alone.
    let ours = "SELECT coalesce(max(version = 1 AND description = 'first'), $1 = '_sqlx_migrations') FROM _sqlx_migrations";
    let ours = sqlx::query_scalar(ours).bind(&table);
    let is_ours: bool = ours.fetch_one(connection).await?;
    Ok((!is_ours).then_some(table))
}

/// Makes a file of one of [`versions`], or brings one to it, to try upgrades from there.
pub async fn migrate_to(path: &Path, version: i64) -> Result<()> {
    let options = SqliteConnectOptions::new().filename(path);
    let options = options.create_if_missing(true).disable_statement_logging();
    let migrated = async {
        let mut connection = options.connect().await?;
        bring_to(&mut connection, version).await?;
        Ok(connection.close().await?)
    };
    migrated.await.map_err(|Failure(error)| error)
}

/// Brings the database to the newest schema, or refuses one that is newer still.
pub async fn migrate(connection: &mut SqliteConnection) -> Outcome<()> {
    bring_to(connection, newest()).await
}

async fn bring_to(connection: &mut SqliteConnection, to: i64) -> Outcome<()> {
    let found = version(connection).await?;
    if found > newest() {
        let known = newest();
        return Err(Failure(StoreError::Newer { found, known }));
    }
    let migrations = versions().zip(MIGRATIONS);
    let migrations = migrations.filter(|(version, _)| *version <= to);
    let migrations = migrations.map(|(version, (name, statements))| {
        let name = name.split_once('_').map_or(*name, |(_, name)| name);
        let (kind, statements) = (MigrationType::Simple, statements.into_sql_str());
        Migration::new(version, name.into(), kind, statements, false)
    });
    Migrator::with_migrations(migrations.collect())
        .run(connection)
        .await?;
    Ok(())
}

/// The newest migration that was applied; 0 for an empty file.
async fn version(connection: &mut SqliteConnection) -> Outcome<i64> {
    let table: Option<i64> =
        sqlx::query_scalar("SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations'")
            .fetch_optional(&mut *connection)
            .await?;
    if table.is_none() {
        return Ok(0);
    }
    let version = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations");
    Ok(version.fetch_one(connection).await?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_migration_is_run() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let files = std::fs::read_dir(folder).unwrap();
        let there = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let run = MIGRATIONS.iter().map(|(name, _)| format!("{name}.sql"));
        assert_eq!(there.collect::<BTreeSet<_>>(), run.collect());
        assert!(versions().is_sorted_by(|one, next| one < next));
    }
}
