//! Migrations and how they run: one after the other, beside replicas of the version before, none of
//! which waits for long.
//!
//! A migration that begins with `-- no-transaction` is steps, divided by empty lines. Each is a
//! transaction of its own and may run again after a crash. `CREATE INDEX CONCURRENTLY` is such a
//! step, on partitioned tables too (see [`index`]).

mod index;

use std::borrow::Cow;
use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType};
use sqlx::{AssertSqlSafe, Executor, PgConnection, SqlSafeStr};
use tokio::time::{Instant, sleep};

use self::index::ConcurrentIndex;
use crate::failure::{Outcome, code};

macro_rules! migrations {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../migrations/", $name, ".sql")))),*]
    };
}

/// Every migration in order: its name, which begins with its version, and its statements.
const MIGRATIONS: &[(&str, &str)] = migrations![
    "0001_first",
    "0002_access",
    "0003_outbox",
    "0004_knowledge",
    "0005_retention",
    "0006_stages",
    "0007_narratives",
    "0008_chronicle",
    "0009_consolidate",
    "0010_relate",
    "0011_rebind",
    "0012_semanticize",
    "0013_left_over",
    "0014_prompts",
    "0015_echoes",
    "0016_conversations",
    "0017_tally",
    "0018_shares",
    "0019_secrets",
    "0022_indexes",
    "0023_waiting",
    "0024_ending",
    "0025_sessions",
    "0026_expiry",
    "0027_lost_claims",
    "0028_embeddings",
    "0029_outdated",
    "0030_language",
];

/// Checksums (SHA-384) that databases of before the first release have of migrations that were
/// edited since.
const REPLACED: [(i64, &str); 9] = [
    (
        4,
        "2862e13af90362aefce9a184a9ae0081038ba27c1e6737269f422875d0e8a94af521232c0054e8e45d9cf67f2eb3c8f4",
    ),
    (
        5,
        "f4ee37487470740a400202aeeec4d9e115a1b5e33495b75e4c2f0fa370b631eeee41696b5927f5161a047d5bd2ab05aa",
    ),
    (
        6,
        "e0f447664d20d4ab51048b0c9c87ea4b8addff4f936ffa2b2804866657b7ef457425132d9ea2e6cd4bb2a49724bbd292",
    ),
    (
        7,
        "1056187f3e8c009c5d8347f8e1071e0d5452bcb42d919e3b14a84afd7982f3f04ab2ed65dbafda45b6fcd347e9ed6598",
    ),
    (
        8,
        "8f429008e81c17039a89add0f3ed605768d3b59290fd00c53d4abcea784e1a6e1662b014aa9acbfa2a795faf9c673426",
    ),
    (
        9,
        "372c6f8efbfb53b542a4b924be5fe2130b5edcab73b0df6a33bda7d4f2336bc5a3e8478c33ed4065651bd898e381bd91",
    ),
    (
        10,
        "3191e900be659ba88f6c17cb24f6875d69f5fefe33cef4f0ee216cb366284acc20aaee977269a1a8c98dc33b36f1f66e",
    ),
    (
        11,
        "68fcc7e026e6f71d7a0df1affea347fd8bf30258a1b3c446372f54c39cd1cd08fa0e0f3fd541bba9a8b7cda9baa9227a",
    ),
    (
        12,
        "acb6540a2481f83d99e35f9011c2fbca8e335f0e93301bc1e8fb16db28355fb3d3c1df053232eeff1f604708675f2f6a",
    ),
];

const TABLE: &str = "memfleet._sqlx_migrations";

/// First line of a migration that is steps.
const STEPS: &str = "-- no-transaction\n";

/// How long a statement waits for a lock that holds up writers who come after it.
const LOCK_TIMEOUT: &str = "200ms";
/// Pause between two tries to get a lock.
const PAUSE: Duration = Duration::from_millis(500);
/// For how long one step is tried.
const PATIENCE: Duration = Duration::from_mins(10);

/// Versions of the schema, from the first on.
pub fn versions() -> impl DoubleEndedIterator<Item = i64> {
    MIGRATIONS.iter().map(|(name, _)| {
        let (version, _) = name.split_once('_').expect("a version and a name");
        version.parse().expect("digits")
    })
}

/// The newest version of the schema.
pub fn newest() -> i64 {
    versions().next_back().expect("there are migrations")
}

/// Applies what is missing up to a version. Fails where a migration that was applied is not one of
/// ours.
pub async fn run(connection: &mut PgConnection, to: i64) -> Outcome<()> {
    connection.execute("SET statement_timeout = 0").await?;
    connection.ensure_migrations_table(TABLE).await?;
    let migrations: Vec<Migration> = all().collect();
    for (version, old) in REPLACED {
        let new = migrations.iter().find(|it| it.version == version);
        sqlx::query("UPDATE memfleet._sqlx_migrations SET checksum = $1 WHERE version = $2 AND checksum = decode($3, 'hex')")
            .bind(new.map(|it| it.checksum.as_ref()))
            .bind(version)
            .bind(old)
            .execute(&mut *connection)
            .await?;
    }
    let applied = connection.list_applied_migrations(TABLE).await?;
    for found in &applied {
        let known = migrations.iter().find(|it| it.version == found.version);
        let known = known.ok_or(MigrateError::VersionMissing(found.version))?;
        if known.checksum != found.checksum {
            return Err(MigrateError::VersionMismatch(found.version).into());
        }
    }
    let is_missing = |it: &&Migration| applied.iter().all(|found| found.version != it.version);
    let missing = migrations.iter().filter(is_missing);
    for migration in missing.filter(|it| it.version <= to) {
        apply(connection, migration).await?;
    }
    Ok(())
}

fn all() -> impl Iterator<Item = Migration> {
    versions()
        .zip(MIGRATIONS)
        .map(|(version, (name, statements))| {
            let name = name.split_once('_').map_or(*name, |(_, name)| name);
            let (kind, statements) = (MigrationType::Simple, *statements);
            let (name, has_steps) = (Cow::Borrowed(name), statements.starts_with(STEPS));
            Migration::new(version, name, kind, statements.into_sql_str(), has_steps)
        })
}

async fn apply(connection: &mut PgConnection, migration: &Migration) -> Outcome<()> {
    if !migration.no_tx {
        return attempt(connection, &Step::Migration(migration)).await;
    }
    for step in steps(migration.sql.as_str()) {
        match ConcurrentIndex::read(step) {
            Some(index) => index.build(connection).await?,
            None => attempt(connection, &Step::Statement(step)).await?,
        }
    }
    Ok(connection.skip(TABLE, migration).await?)
}

fn steps(statements: &str) -> impl Iterator<Item = &str> {
    statements
        .trim_start_matches(STEPS)
        .split("\n\n")
        .map(str::trim)
}

/// Unit of work: done as a whole or not at all, and tried again while others hold its locks.
enum Step<'a> {
    Migration(&'a Migration),
    Statement(&'a str),
}

impl Step<'_> {
    /// Writers go on while it waits for a lock.
    fn lets_writers_go_on(&self) -> bool {
        matches!(self, Self::Statement(it) if it.contains(" CONCURRENTLY "))
    }

    async fn run(&self, connection: &mut PgConnection) -> Result<(), MigrateError> {
        let timeout = match self.lets_writers_go_on() {
            true => "0",
            false => LOCK_TIMEOUT,
        };
        let timeout = format!("SET lock_timeout = '{timeout}'");
        connection.execute(AssertSqlSafe(timeout)).await?;
        match self {
            Self::Migration(it) => {
                connection.apply(TABLE, it).await?;
            }
            Self::Statement(it) => {
                connection.execute(AssertSqlSafe((*it).to_owned())).await?;
            }
        }
        Ok(())
    }
}

async fn attempt(connection: &mut PgConnection, step: &Step<'_>) -> Outcome<()> {
    let begun = Instant::now();
    loop {
        match step.run(connection).await {
            Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => sleep(PAUSE).await,
            outcome => return Ok(outcome?),
        }
    }
}

/// A lock did not come in time, or two waited for each other.
fn is_busy(error: &MigrateError) -> bool {
    match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
            matches!(code(cause).as_deref(), Some("55P03" | "40P01"))
        }
        _ => false,
    }
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
        let run = MIGRATIONS.iter().map(|(name, _)| format!("{name}.sql"));
        assert_eq!(there, run.collect());
        assert!(versions().is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn every_stage_hears_of_a_change_and_of_what_is_there_already() {
        for what in ["FUNCTION fall_behind()", "ON CONFLICT DO NOTHING"] {
            let mut statements = MIGRATIONS.iter().rev().map(|(_, statements)| statements);
            let newest = statements.find(|it| it.contains(what)).unwrap();
            // A rebuild begins where a caller asks for it.
            for stage in Stage::ALL.iter().filter(|it| **it != Stage::Rebuild) {
                let name = format!("'{}'", stage.name());
                assert!(newest.contains(&name), "{what}: {name}");
            }
        }
    }

    /// Few rows: an index of them is made within milliseconds.
    const SMALL: [&str; 1] = ["spaces"];

    #[test]
    fn writers_go_on_while_an_index_of_a_table_that_is_there_is_made() {
        for (name, statements) in MIGRATIONS {
            for statement in statements.split_inclusive(';') {
                let Some((_, rest)) = statement
                    .split_once("INDEX ")
                    .filter(|_| !statements.starts_with(STEPS))
                else {
                    continue;
                };
                let table = rest
                    .split(" ON ")
                    .nth(1)
                    .and_then(|it| it.split_whitespace().next());
                let is_new = |table: &str| statements.contains(&format!("CREATE TABLE {table} ("));
                let blocks = table.filter(|it| {
                    statement.contains("CREATE") && !SMALL.contains(it) && !is_new(it)
                });
                assert_eq!(
                    blocks, None,
                    "{name}: `CREATE INDEX` stops writers of this table: make it in a migration that begins with `-- no-transaction`, CONCURRENTLY"
                );
            }
        }
    }

    #[test]
    fn steps_are_divided_by_empty_lines() {
        let divided: Vec<_> = steps("-- no-transaction\n\n-- One.\nA;\n\nB\nC;\n").collect();
        assert_eq!(divided, ["-- One.\nA;", "B\nC;"]);
    }
}
