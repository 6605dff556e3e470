//! Schema versions: who makes them, and who refuses whom.

use futures::future::join_all;
use memfleet_ports::conformance::samples::{batch, home, indexed, turn};
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::store::StoreError;
use memfleet_postgres::{Migrated, Options, PostgresStore, migrate};
use sqlx::{AssertSqlSafe, Executor};

use crate::database::{Database, administer};

async fn run(database: &Database, statement: &str) {
    let mut connection = database.connect().await;
    let statement = AssertSqlSafe(statement.to_owned());
    connection.execute(statement).await.expect("a statement");
}

async fn connected(url: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::connect(url, Options::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn several_migrations_at_once_wait_for_each_other() {
    let database = Database::empty().await;
    let url = database.url();
    let outcomes = join_all((0..4).map(|_| migrate(&url))).await;
    let outcomes: Result<Vec<Migrated>, _> = outcomes.into_iter().collect();
    let outcomes = outcomes.expect("all of them succeed");
    let first = outcomes
        .iter()
        .filter(|migrated| migrated.from == 0)
        .count();
    assert_eq!(first, 1, "{outcomes:?}");
    assert!(
        outcomes
            .iter()
            .all(|migrated| migrated.to == outcomes[0].to)
    );
    let store = connected(&url).await.expect("connect");
    assert_eq!(store.head(&home()).await, Ok(0));
}

#[tokio::test]
async fn a_database_that_was_not_migrated_says_what_to_run() {
    let database = Database::empty().await;
    let refused = connected(&database.url()).await.expect_err("no schema");
    let StoreError::Unavailable(cause) = refused else {
        panic!("{refused:?}");
    };
    assert!(cause.contains("memfleet migrate"), "{cause}");
    assert!(cause.contains(database.name()), "{cause}");
}

/// What a migration to come does, and the record of it.
async fn migrate_to_next(database: &Database, statements: &str) {
    run(database, statements).await;
    let newer = "INSERT INTO memfleet._sqlx_migrations VALUES (999, 'next', now(), true, '', 0)";
    run(database, newer).await;
}

#[tokio::test]
async fn a_newer_schema_that_only_adds_is_worked_with_and_left_alone() {
    let database = Database::migrated().await;
    let adds = "ALTER TABLE memfleet.turns ADD COLUMN mood smallint NOT NULL DEFAULT 0";
    migrate_to_next(&database, adds).await;
    let expected = Migrated { from: 999, to: 999 };
    assert_eq!(migrate(&database.url()).await, Ok(expected));
    let store = connected(&database.url()).await.expect("connect");
    let told = indexed(batch("k", vec![turn("a", "x")]), 1);
    assert!(store.commit(vec![told]).await.is_ok());
    assert_eq!(store.head(&home()).await, Ok(1));
}

#[tokio::test]
async fn a_newer_schema_that_breaks_this_build_is_refused_by_migrate_and_by_connect() {
    let database = Database::migrated().await;
    let breaks = "CREATE OR REPLACE FUNCTION memfleet.compatible_since() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 999::bigint'";
    migrate_to_next(&database, breaks).await;
    let is_newer = |error: &StoreError| matches!(error, StoreError::Newer { found: 999, .. });
    let refused = migrate(&database.url()).await.expect_err("newer");
    assert!(is_newer(&refused), "{refused:?}");
    let refused = connected(&database.url()).await.expect_err("newer");
    assert!(is_newer(&refused), "{refused:?}");
}

/// An owner of the database who is no superuser migrates it; a user of its own, who owns nothing, works with it.
#[tokio::test]
async fn owner_and_user_need_not_be_superusers() {
    let database = Database::empty().await;
    let name = database.name();
    let (owner, user) = (format!("{name}_owner"), format!("{name}_user"));
    administer(&format!("CREATE ROLE {owner} LOGIN PASSWORD '{owner}'")).await;
    administer(&format!("CREATE ROLE {user} LOGIN PASSWORD '{user}'")).await;
    administer(&format!("ALTER DATABASE {name} OWNER TO {owner}")).await;
    // What an administrator does once; the roles may be there from other databases.
    migrate_elsewhere().await;
    administer(&format!("GRANT memfleet_sweep TO {owner}")).await;
    run(&database, "CREATE EXTENSION IF NOT EXISTS vector").await;
    let migrated = migrate(&database.url_as(&owner)).await;
    let refused = connected(&database.url_as(&user)).await;
    administer(&format!("GRANT memfleet_app TO {user}")).await;
    let store = connected(&database.url_as(&user)).await;
    let head = match &store {
        Ok(store) => store.head(&home()).await,
        Err(error) => Err(error.clone()),
    };
    drop(database);
    administer(&format!("DROP ROLE {user}, {owner}")).await;
    assert!(migrated.is_ok(), "{migrated:?}");
    assert_eq!(head, Ok(0));
    let refused = refused.expect_err("no member yet").to_string();
    assert!(refused.contains("GRANT memfleet_app TO"), "{refused}");
}

/// Spaces of the schema before derived memory wait for their agents, whoever owns the tables.
#[tokio::test]
async fn what_was_stored_before_there_were_agents_waits_for_them() {
    let database = Database::empty().await;
    migrate_elsewhere().await;
    let owner = format!("{}_owner", database.name());
    administer(&format!("CREATE ROLE {owner}")).await;
    administer(&format!("GRANT memfleet_sweep TO {owner}")).await;
    administer(&format!(
        "GRANT CREATE ON DATABASE {} TO {owner}",
        database.name()
    ))
    .await;
    let before = [
        include_str!("../../migrations/0001_first.sql"),
        include_str!("../../migrations/0002_access.sql"),
        include_str!("../../migrations/0003_outbox.sql"),
        "INSERT INTO spaces (tenant, key, name, settings, created_at, head) VALUES ('acme', '', 'ada', '{}', 0, 1)",
    ]
    .join(";");
    run(
        &database,
        &format!(
            "CREATE EXTENSION IF NOT EXISTS vector; SET SESSION AUTHORIZATION {owner}; CREATE SCHEMA memfleet;
             SET search_path = memfleet, public; CREATE TABLE _sqlx_migrations (); SET memfleet.tenant = 'acme'; {before};
             RESET memfleet.tenant; BEGIN; {}; COMMIT",
            include_str!("../../migrations/0004_knowledge.sql"),
        ),
    )
    .await;
    let mut connection = database.connect().await;
    let waiting =
        sqlx::query_scalar("SELECT tenant || '/' || name FROM memfleet.spaces_behind('judge', 9)");
    let waiting: Vec<String> = waiting.fetch_all(&mut connection).await.expect("spaces");
    drop(database);
    administer(&format!("DROP ROLE {owner}")).await;
    assert_eq!(waiting, ["acme/ada"]);
}

/// So that the roles exist.
async fn migrate_elsewhere() {
    drop(Database::migrated().await);
}
