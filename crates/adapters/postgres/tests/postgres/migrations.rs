//! Schema versions: who makes them, and who refuses whom.

use std::time::{Duration, Instant};

use futures::future::join_all;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_ports::conformance::samples::{
    batch, batch_in, embedding_space, home, indexed, scope, turn, turn_in,
};
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::store::StoreError;
use memfleet_postgres::{Migrated, Options, PostgresStore, migrate, migrate_to};
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

/// A transaction that goes on for long has a table that a migration changes: writers do not wait
/// behind the migration.
#[tokio::test(flavor = "multi_thread")]
async fn writers_do_not_wait_while_a_migration_waits() {
    let database = Database::empty().await;
    let before = migrate_to(&database.url(), 12).await;
    before.expect("a version before a change of `spaces`");
    run(&database, ONE_SPACE).await;
    let mut long = database.connect().await;
    let read = "BEGIN; SELECT count(*) FROM memfleet.spaces";
    long.execute(read).await.expect("a snapshot");
    let url = database.url();
    let migrating = tokio::spawn(async move { migrate(&url).await });
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    let mut writer = database.connect().await;
    while begun.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        let write = "UPDATE memfleet.spaces SET head = head + 1";
        writer.execute(write).await.expect("a write");
        longest = longest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!migrating.is_finished(), "the table is in use");
    long.execute("COMMIT").await.expect("the end of it");
    let migrated = migrating.await.expect("no panic");
    assert_eq!(migrated.map(|it| it.from), Ok(12));
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

/// A migration that was killed while it made an index of a partitioned table: one partition's is
/// there and not attached, another's broke off.
#[tokio::test]
async fn an_index_that_was_left_half_made_is_completed() {
    let database = Database::empty().await;
    let url = database.url();
    migrate_to(&url, 21).await.expect("before the indexes");
    run(
        &database,
        "SET search_path = memfleet;
         CREATE INDEX turns_by_time ON ONLY turns (tenant, space, (coalesce(event_time, recorded_at)), acceptance, ordinal);
         CREATE INDEX turns_0_by_time ON turns_0 (tenant, space, (coalesce(event_time, recorded_at)), acceptance, ordinal);
         CREATE INDEX turns_1_by_time ON turns_1 (tenant, space, (coalesce(event_time, recorded_at)), acceptance, ordinal);
         UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'turns_1_by_time'::regclass",
    )
    .await;
    migrate(&url).await.expect("migrate");
    let mut connection = database.connect().await;
    let invalid =
        sqlx::query_scalar("SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid");
    let invalid: Vec<String> = invalid.fetch_all(&mut connection).await.expect("indexes");
    assert_eq!(invalid, [""; 0]);
    let parts = sqlx::query_scalar(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'memfleet.turns_by_time'::regclass",
    );
    let parts: i64 = parts.fetch_one(&mut connection).await.expect("partitions");
    assert_eq!(parts, 8);
}

/// Some migrations were edited before the first release.
#[tokio::test]
async fn a_database_that_the_edited_migrations_were_applied_to_is_taken() {
    let database = Database::migrated().await;
    run(&database, ONE_SPACE).await;
    let old = "UPDATE memfleet._sqlx_migrations SET checksum = decode('e0f447664d20d4ab51048b0c9c87ea4b8addff4f936ffa2b2804866657b7ef457425132d9ea2e6cd4bb2a49724bbd292', 'hex') WHERE version = 6";
    run(&database, old).await;
    assert!(migrate(&database.url()).await.is_ok());
    let foreign = "UPDATE memfleet._sqlx_migrations SET checksum = 'another' WHERE version = 6";
    run(&database, foreign).await;
    let refused = migrate(&database.url())
        .await
        .expect_err("an unknown migration");
    assert!(refused.to_string().contains("migration 6"), "{refused}");
}

/// Tables in any schema but ours; what extensions bring does not count.
#[tokio::test]
async fn a_schema_of_another_application_is_refused_and_left_alone() {
    let count = "SELECT count(*) FROM pg_class";
    let database = Database::empty().await;
    run(&database, "CREATE EXTENSION vector; CREATE SCHEMA memfleet").await;
    run(&database, "CREATE TABLE memfleet.notes (id bigint)").await;
    let mut connection = database.connect().await;
    let before: i64 = sqlx::query_scalar(count)
        .fetch_one(&mut connection)
        .await
        .expect("a count");
    let refused = migrate(&database.url())
        .await
        .expect_err("not ours")
        .to_string();
    assert!(refused.contains("another application"), "{refused}");
    assert!(
        refused.contains("notes") && refused.contains(database.name()),
        "{refused}"
    );
    let after: i64 = sqlx::query_scalar(count)
        .fetch_one(&mut connection)
        .await
        .expect("a count");
    assert_eq!(after, before);
}

#[tokio::test]
async fn other_schemas_of_a_shared_database_are_left_alone() {
    let database = Database::empty().await;
    run(&database, "CREATE EXTENSION vector; CREATE SCHEMA app").await;
    run(
        &database,
        "CREATE TABLE notes (id bigint); CREATE TABLE app.notes (id bigint)",
    )
    .await;
    migrate(&database.url()).await.expect("a schema of its own");
}

/// A space with a row of the first schema.
const ONE_SPACE: &str = "INSERT INTO memfleet.spaces (tenant, key, name, settings, created_at, head) VALUES ('acme', '', 'ada', '{}', 0, 1)";

/// So that the roles exist.
async fn migrate_elsewhere() {
    drop(Database::migrated().await);
}

/// The default model of versions before.
pub fn default_model() -> EmbeddingSpace {
    EmbeddingSpace {
        model: "all-MiniLM-L6-v2".to_owned(),
        revision: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41".to_owned(),
        recipe: "int8-3".to_owned(),
        projection: "6ec9698815df47f5".to_owned(),
    }
}

/// Upgrade of three spaces: one always had the default model, one another, and one changed its own.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_names_each_place_and_removes_vectors_that_may_be_of_an_earlier_model() {
    let database = Database::migrated().await;
    let store = database.store().await;
    for (space, embedding) in [
        ("ada", default_model()),
        ("bob", embedding_space("1")),
        ("eve", default_model()),
    ] {
        let space = scope("acme", space);
        let turns = ["a", "b", "c"].map(|text| turn_in(&space, "s", text, text));
        let mut batch = indexed(batch_in(&space, "k", turns.into()), 1);
        batch.embedding_space = Some(embedding);
        store.commit(vec![batch]).await.expect("commit");
    }
    // A turn of an earlier model, and a derivation by the passage of the second turn.
    for statement in [
        "UPDATE memfleet.turns SET embedding = 5 WHERE first_passage = 0
             AND space = (SELECT max(id) FROM memfleet.spaces)",
        "INSERT INTO memfleet.derivations (tenant, space, id, first, change, known_from, written_by, version, passage, kind, document)
             SELECT tenant, id, gen_random_uuid(), 1, 1, 1, gen_random_uuid(), 1, 1, 0, '{}' FROM memfleet.spaces",
        "UPDATE memfleet.spaces SET embedding = NULL",
        "DELETE FROM memfleet._sqlx_migrations WHERE version = 29",
    ] {
        run(&database, statement).await;
    }
    migrate(&database.url()).await.expect("migrate");
    let mut connection = database.connect().await;
    let seen: Vec<(bool, Option<i64>, Vec<bool>)> = sqlx::query_as(
        "SELECT p.embedding = (SELECT t.embedding FROM memfleet.turns t WHERE t.space = p.id AND t.first_passage = 2),
             p.embedded, (SELECT array_agg(g.sentence IS NOT NULL AND v.passage IS NOT NULL ORDER BY g.passage)
                 FROM memfleet.passages g LEFT JOIN memfleet.token_vectors v ON v.space = g.space AND v.passage = g.passage
                 WHERE g.space = p.id)
         FROM memfleet.spaces p ORDER BY p.id",
    )
    .fetch_all(&mut connection)
    .await
    .expect("rows");
    assert_eq!(
        seen,
        [
            (true, None, vec![true, true, true]),
            (true, Some(0), vec![true, false, true]),
            (true, Some(0), vec![false, false, true]),
        ]
    );
}
