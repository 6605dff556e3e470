//! A dump of a database brings everything back elsewhere: by the commands of docs/operations/backup.md.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use memfleet_domain::Scope;
use memfleet_domain::derivation::{Conflict, Derivation};
use memfleet_domain::turn::Turn;
use memfleet_ports::candidates::Candidates;
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact};
use memfleet_ports::conformance::samples::{batch_in, indexed, instant, scope, turn_in, vectors};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::{Changes, IndexFeed};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{
    ChangeFilter, Knowledge, Question, Recorded, Rewrite, Stage, Work,
};
use memfleet_ports::ledger::{Ledger, Page};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{Options, PostgresErasure, PostgresStore, migrate};
use sqlx::{Executor, Row};

use crate::database::Database;

const OWNER: &str = "memfleet_owner";
const FLEET: &str = "memfleet_fleet";

/// A program of the server's installation.
fn run(program: &str, arguments: &[&str]) {
    let directory = std::env::var("MEMFLEET_TEST_POSTGRES_BIN").expect(
        "this test needs the programs of PostgreSQL: run `cargo xtask test`, or set MEMFLEET_TEST_POSTGRES_BIN to their directory",
    );
    let output = Command::new(Path::new(&directory).join(program))
        .args(arguments)
        .env("MEMFLEET_OWNER_PASSWORD", OWNER)
        .env("MEMFLEET_FLEET_PASSWORD", FLEET)
        .output()
        .expect(program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
}

/// As the superuser, without what only the driver understands.
fn url(database: &Database) -> String {
    let url = database.url();
    url.split('?').next().unwrap_or_default().to_owned()
}

fn prepare(database: &Database) {
    let roles = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../deploy/postgres/roles.sql"
    );
    run("psql", &["--dbname", &url(database), "--file", roles]);
}

async fn connected(database: &Database) -> PostgresStore {
    let url = database.url_as(FLEET);
    let store = PostgresStore::connect(&url, Options::default()).await;
    store.expect("connect")
}

async fn fill(store: &PostgresStore, scope: &Scope) {
    let words = |number| format!("{} said number {number}", scope.tenant);
    let told = (0..40).map(|n| turn_in(scope, &format!("s{}", n % 3), &n.to_string(), &words(n)));
    let told: Vec<_> = told.collect();
    let gone = TurnFilter {
        turns: vec![told[7].id],
        ..TurnFilter::default()
    };
    let [rome, oslo] = [1, 2].map(|n| fact(&told[n], "Ada", &n.to_string(), instant(n as i64)));
    let batch = indexed(batch_in(scope, "k", told), 1);
    store.commit(vec![batch]).await.expect("commit");
    let erasure = PostgresErasure::new(store.clone(), Arc::new(NothingWaits));
    erasure.remove(scope, &gone).await.expect("remove");
    let rewrites: Vec<Rewrite> = vec![
        deriving(&[&rome]),
        deriving(&[&oslo]),
        closing(&rome, &oslo, 9),
    ];
    let work = Work {
        rewrites,
        found: vec![conflict(&rome, &oslo)],
        ..Work::default()
    };
    store.apply(scope, work).await.expect("apply");
}

/// All that is read of a space.
#[derive(Debug, PartialEq)]
struct Seen {
    turns: Page<Turn>,
    changes: Changes,
    outline: Changes,
    postings: String,
    near: Vec<(u32, f32)>,
    tokens: String,
    space: String,
    derivations: Page<Derivation>,
    recorded: Page<Recorded>,
    conflicts: Page<Conflict>,
    pending: Vec<Scope>,
}

async fn seen(store: &PostgresStore, scope: &Scope) -> Seen {
    let everything = TurnFilter::default();
    let among = (0..100).collect();
    let query = vectors("number").sentence;
    let terms = ["number".to_owned(), "7".to_owned()];
    let numbers: Vec<u32> = (0..80).collect();
    let tokens = store.token_vectors(scope, &numbers).await;
    Seen {
        turns: Ledger::list(store, scope, &everything, 100, None)
            .await
            .expect("list"),
        changes: store.changes_after(scope, 0, 100).await.expect("changes"),
        outline: store.outline_after(scope, 0, 100).await.expect("outline"),
        postings: format!("{:?}", store.postings(scope, &terms).await),
        near: store
            .nearest(scope, &query, &among, 20)
            .await
            .expect("nearest"),
        tokens: format!("{tokens:?}"),
        space: format!("{:?}", store.get(scope).await),
        derivations: store
            .derivations(scope, &Question::default(), 9, None)
            .await
            .expect("derivations"),
        recorded: store
            .changes(scope, &ChangeFilter::default(), 9, None)
            .await
            .expect("changes"),
        conflicts: store
            .conflicts(scope, &[], 9, None)
            .await
            .expect("conflicts"),
        pending: store.pending(Stage::Derive, 9).await.expect("pending"),
    }
}

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
    // Roles of the server, which other tests make at the same time.
    drop(Database::migrated().await);
    let source = Database::empty().await;
    prepare(&source);
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
    prepare(&restored);
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
