//! A dump of a database brings everything back elsewhere: by the commands of docs/operations/backup.md.

use memfleet_ports::conformance::samples::{batch_in, indexed, scope, turn_in};
use memfleet_ports::ledger::Ledger;
use memfleet_postgres::migrate;
use sqlx::{Executor, Row};

use crate::contents::{OWNER, connected, fill, prepare, run, seen, url};
use crate::database::Database;

/// Tables, indexes, policies, functions and grants, as the catalogue has them.
async fn catalogue(database: &Database) -> Vec<String> {
    let rows = database
        .connect()
        .await
        .fetch_all(
            "SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'memfleet'
             UNION ALL SELECT format('policy %s %s %s %s', tablename, policyname, roles, qual) FROM pg_policies WHERE schemaname = 'memfleet'
             UNION ALL SELECT format('table %s %s %s %s %s', relname, relrowsecurity, relforcerowsecurity, relacl, pg_get_userbyid(relowner))
                 FROM pg_class WHERE relnamespace = 'memfleet'::regnamespace
             UNION ALL SELECT format('function %s %s %s', proname, proacl, pg_get_userbyid(proowner))
                 FROM pg_proc WHERE pronamespace = 'memfleet'::regnamespace
             ORDER BY 1",
        )
        .await
        .expect("the catalogue");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_dump_restores_everything_with_its_roles_and_rights() {
    let source = Database::empty().await;
    prepare(&source).await;
    migrate(&source.url_as(OWNER)).await.expect("migrate");
    let store = connected(&source).await;
    let (acme, globex) = (scope("acme", "ada"), scope("globex", "ada"));
    fill(&store, &acme).await;
    fill(&store, &globex).await;
    let before = [seen(&store, &acme).await, seen(&store, &globex).await];
    let directory = std::env::temp_dir().join(format!("{}.dump", source.name()));
    let dump = directory.to_str().expect("a path");
    let file = format!("--file={dump}");
    let from = format!("--dbname={}", url(&source));
    run("pg_dump", &["--format=custom", &file, &from]);

    let restored = Database::empty().await;
    prepare(&restored).await;
    let to = format!("--dbname={}", url(&restored));
    run("pg_restore", &[&to, "--exit-on-error", dump]);
    std::fs::remove_file(&directory).expect("the dump");
    assert_eq!(catalogue(&restored).await, catalogue(&source).await);
    let again = migrate(&restored.url_as(OWNER)).await.expect("migrate");
    assert_eq!(again.from, again.to, "there is nothing to do");
    let store = connected(&restored).await;
    assert_eq!(seen(&store, &acme).await, before[0]);
    assert_eq!(seen(&store, &globex).await, before[1]);
    // Numbers go on where they were.
    let more = indexed(
        batch_in(&acme, "more", vec![turn_in(&acme, "new", "x", "more")]),
        9,
    );
    assert!(store.commit(vec![more]).await.is_ok());
}

#[tokio::test]
async fn whoever_row_security_binds_cannot_dump() {
    let database = Database::migrated().await;
    let store = database.store().await;
    fill(&store, &scope("acme", "ada")).await;
    let mut connection = database.connect().await;
    let statements =
        "SET row_security = off; SET ROLE memfleet_app; SELECT count(*) FROM memfleet.turns";
    let refused = connection.execute(sqlx::raw_sql(statements)).await;
    assert!(
        refused.is_err(),
        "a dump would leave out what it may not see"
    );
}
