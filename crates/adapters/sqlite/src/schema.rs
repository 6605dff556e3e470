//! Versioned migrations, run at open. A released migration is never edited: the next one mends it.

use memfleet_ports::store::StoreError;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{SqlSafeStr, SqliteConnection};

use crate::failure::{Failure, Outcome};

/// Every migration in order: version, name, statements.
const MIGRATIONS: [(i64, &str, &str); 22] = [
    (1, "first", include_str!("../migrations/0001_first.sql")),
    (
        2,
        "language",
        include_str!("../migrations/0002_language.sql"),
    ),
    (
        3,
        "acceptance",
        include_str!("../migrations/0003_acceptance.sql"),
    ),
    (4, "letters", include_str!("../migrations/0004_letters.sql")),
    (5, "tenants", include_str!("../migrations/0005_tenants.sql")),
    (6, "erased", include_str!("../migrations/0006_erased.sql")),
    (
        7,
        "erased_acceptance",
        include_str!("../migrations/0007_erased_acceptance.sql"),
    ),
    (8, "bytes", include_str!("../migrations/0008_bytes.sql")),
    (9, "access", include_str!("../migrations/0009_access.sql")),
    (
        10,
        "accepted",
        include_str!("../migrations/0010_accepted.sql"),
    ),
    (
        11,
        "knowledge",
        include_str!("../migrations/0011_knowledge.sql"),
    ),
    (
        12,
        "retention",
        include_str!("../migrations/0012_retention.sql"),
    ),
    (
        13,
        "chronicle",
        include_str!("../migrations/0013_chronicle.sql"),
    ),
    (14, "graph", include_str!("../migrations/0014_graph.sql")),
    (
        15,
        "prompts",
        include_str!("../migrations/0015_prompts.sql"),
    ),
    (16, "echoes", include_str!("../migrations/0016_echoes.sql")),
    (
        17,
        "conversations",
        include_str!("../migrations/0017_conversations.sql"),
    ),
    (18, "tally", include_str!("../migrations/0018_tally.sql")),
    (
        19,
        "unlisted",
        include_str!("../migrations/0019_unlisted.sql"),
    ),
    (20, "traces", include_str!("../migrations/0020_traces.sql")),
    (
        21,
        "unscrubbed",
        include_str!("../migrations/0021_unscrubbed.sql"),
    ),
    (
        22,
        "secrets",
        include_str!("../migrations/0022_secrets.sql"),
    ),
];

/// Brings the database to the newest schema, or refuses one that is newer still.
pub async fn migrate(connection: &mut SqliteConnection) -> Outcome<()> {
    let known = MIGRATIONS[MIGRATIONS.len() - 1].0;
    let found = version(connection).await?;
    if found > known {
        return Err(Failure(StoreError::Newer { found, known }));
    }
    let migrations = MIGRATIONS
        .map(|(version, name, statements)| {
            let (kind, without_transaction) = (MigrationType::Simple, false);
            Migration::new(
                version,
                name.into(),
                kind,
                statements.into_sql_str(),
                without_transaction,
            )
        })
        .to_vec();
    Migrator::with_migrations(migrations)
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
