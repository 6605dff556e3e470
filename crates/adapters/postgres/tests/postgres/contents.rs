//! A database with the roles of deploy/postgres/roles.sql, filled and read as a whole.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use memfleet_domain::Scope;
use memfleet_domain::derivation::{Conflict, Derivation};
use memfleet_domain::turn::Turn;
use memfleet_ports::candidates::Candidates;
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact};
use memfleet_ports::conformance::samples::{batch_in, indexed, instant, turn_in, vectors};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::{Changes, IndexFeed};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{
    ChangeFilter, Knowledge, Question, Recorded, Rewrite, Stage, Work,
};
use memfleet_ports::ledger::{Ledger, Page};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{Options, PostgresErasure, PostgresStore};
use tokio::sync::Mutex;

use crate::database::Database;

pub const OWNER: &str = "memfleet_owner";
pub const FLEET: &str = "memfleet_fleet";

/// A program of the server's installation.
pub fn run(program: &str, arguments: &[&str]) {
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

/// Its URL for the superuser, without what only the driver understands.
pub fn url(database: &Database) -> String {
    let url = database.url();
    url.split('?').next().unwrap_or_default().to_owned()
}

/// Roles belong to the server: one at a time makes them.
static ROLES: Mutex<()> = Mutex::const_new(());

/// Makes the logins, and the first one the owner of the database.
pub async fn prepare(database: &Database) {
    let _one_at_a_time = ROLES.lock().await;
    let roles = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../deploy/postgres/roles.sql"
    );
    run("psql", &["--dbname", &url(database), "--file", roles]);
}

/// As the roles of the fleet connect.
pub async fn connected(database: &Database) -> PostgresStore {
    let url = database.url_as(FLEET);
    let store = PostgresStore::connect(&url, Options::default()).await;
    store.expect("connect")
}

/// Turns, one of which was forgotten, facts that contradict each other, and a turn that was
/// refused.
pub async fn fill(store: &PostgresStore, scope: &Scope) {
    let words = |number| format!("{} said number {number}", scope.tenant);
    let told = (0..40).map(|n| turn_in(scope, &format!("s{}", n % 3), &n.to_string(), &words(n)));
    let told: Vec<_> = told.collect();
    let refused = turn_in(scope, "s0", "0", "other words under a name that is taken");
    let gone = TurnFilter {
        turns: vec![told[7].id],
        ..TurnFilter::default()
    };
    let [rome, oslo] = [1, 2].map(|n| fact(&told[n], "Ada", &n.to_string(), instant(n as i64)));
    let batch = indexed(batch_in(scope, "k", told), 1);
    let refused = indexed(batch_in(scope, "refused", vec![refused]), 2);
    store.commit(vec![batch, refused]).await.expect("commit");
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
pub struct SpaceContents {
    pub turns: Page<Turn>,
    changes: Changes,
    outline: Changes,
    postings: String,
    near: Vec<(u32, f32)>,
    tokens: String,
    space: String,
    pub derivations: Page<Derivation>,
    recorded: Page<Recorded>,
    pub conflicts: Page<Conflict>,
    pub pending: Vec<Scope>,
}

/// Reads all that [`fill`] writes.
pub async fn seen(store: &PostgresStore, scope: &Scope) -> SpaceContents {
    let everything = TurnFilter::default();
    let among = (0..100).collect();
    let query = vectors("number").sentence;
    let terms = ["number".to_owned(), "7".to_owned()];
    let numbers: Vec<u32> = (0..80).collect();
    let tokens = store.token_vectors(scope, None, &numbers).await;
    SpaceContents {
        turns: Ledger::list(store, scope, &everything, 100, None)
            .await
            .expect("list"),
        changes: store.changes_after(scope, 0, 100).await.expect("changes"),
        outline: store.outline_after(scope, 0, 100).await.expect("outline"),
        postings: format!("{:?}", store.postings(scope, &terms).await),
        near: store
            .nearest(scope, None, &query, &among, 20)
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
