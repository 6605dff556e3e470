//! Files of every earlier version, with memory in them, come to the newest one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use memfleet_domain::Scope;
use memfleet_domain::derivation::{Conflict, Derivation};
use memfleet_domain::turn::Turn;
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact};
use memfleet_ports::conformance::samples::{batch_in, home, indexed, instant, scope, turn_in};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::{Changes, IndexFeed};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Question, Stage, Work};
use memfleet_ports::ledger::{Ledger, Page};
use memfleet_ports::queue::{Bounds, Depths, IngestQueue};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_sqlite::{Options, SqliteStore, migrate_to, versions};
use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// All that is read of a space.
#[derive(Debug, PartialEq)]
struct Seen {
    turns: Page<Turn>,
    changes: Changes,
    derivations: Page<Derivation>,
    conflicts: Page<Conflict>,
    space: String,
    depth: Depths,
}

/// Content of a file of the newest schema.
struct Memory {
    path: PathBuf,
    seen: Vec<Seen>,
    _directory: TempDir,
}

static MEMORY: OnceCell<Memory> = OnceCell::const_new();

fn spaces() -> [Scope; 2] {
    [home(), scope("globex", "ada")]
}

fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    (directory, path)
}

async fn opened(path: &Path, label: &str) -> SqliteStore {
    let store = SqliteStore::open(path, Options::default()).await;
    store.expect(label)
}

async fn raw(path: &Path) -> SqliteConnection {
    let url = format!("sqlite:{}", path.display());
    let mut connection = SqliteConnection::connect(&url).await.expect("connect");
    let pragma = connection.execute("PRAGMA foreign_keys = OFF").await;
    pragma.expect("a pragma");
    connection
}

/// Rows that no port of the store writes by itself, or not without others.
const MORE: &str = "
    INSERT INTO dead_letters (acceptance, space_key, batch, payload, reason, failed_at, attempts, tenant)
        VALUES (900, x'01', x'02', '{}', 'EXTERNAL_ID_TAKEN', 1, 1, '');
    INSERT INTO settings VALUES ('acme', 'policy', '', 'p', 1, 'app', 1, '{}');
    INSERT INTO setting_revisions VALUES ('acme', 1);
    INSERT INTO model_use VALUES ('acme', 1, 1, 1, 1);
    INSERT INTO exchanges (tenant, session, name, version, tokens, updated_at, expires_at, forgotten, turns, state)
        VALUES ('acme', 's', 'e', 1, 1, 1, 1, 0, '[]', '{}');
    INSERT INTO injections (tenant, id, at, forgotten, caller, request_id, decision, spaces, turns, record)
        VALUES ('acme', x'01', 1, 0, 'app', 'r', 'injected', '[]', '[]', '{}')";

async fn memory() -> Memory {
    let (directory, path) = place();
    let store = opened(&path, "an empty store").await;
    for space in &spaces() {
        fill(&store, space).await;
    }
    store.close().await.expect("close");
    drop(store);
    let mut connection = raw(&path).await;
    connection.execute(MORE).await.expect("more rows");
    connection.close().await.expect("close");
    let store = opened(&path, "a store with memory").await;
    let mut read = Vec::new();
    for space in &spaces() {
        read.push(seen(&store, space).await);
    }
    store.close().await.expect("close");
    Memory {
        path,
        seen: read,
        _directory: directory,
    }
}

/// Turns, one of which was forgotten, facts that contradict each other, a turn that was refused and
/// one that waits.
async fn fill(store: &SqliteStore, space: &Scope) {
    let told: Vec<_> = (0..9)
        .map(|n| {
            turn_in(
                space,
                &format!("s{}", n % 3),
                &n.to_string(),
                &n.to_string(),
            )
        })
        .collect();
    let refused = turn_in(space, "s0", "0", "other words under a name that is taken");
    let waits = batch_in(space, "waits", vec![turn_in(space, "s0", "late", "later")]);
    let published = store.publish(&waits, instant(1), Bounds::NONE).await;
    published.expect("publish");
    let gone = TurnFilter {
        turns: vec![told[7].id],
        ..TurnFilter::default()
    };
    let [rome, oslo] = [1, 2].map(|n| fact(&told[n], "Ada", &n.to_string(), instant(n as i64)));
    let batch = indexed(batch_in(space, "k", told), 1);
    let refused = indexed(batch_in(space, "refused", vec![refused]), 2);
    store.commit(vec![batch, refused]).await.expect("commit");
    store.remove(space, &gone).await.expect("remove");
    let work = Work {
        rewrites: vec![
            deriving(&[&rome]),
            deriving(&[&oslo]),
            closing(&rome, &oslo, 9),
        ],
        found: vec![conflict(&rome, &oslo)],
        ..Work::default()
    };
    store.apply(space, work).await.expect("apply");
}

async fn seen(store: &SqliteStore, space: &Scope) -> Seen {
    let everything = TurnFilter::default();
    let turns = Ledger::list(store, space, &everything, 100, None).await;
    Seen {
        turns: turns.expect("list"),
        changes: store.changes_after(space, 0, 100).await.expect("changes"),
        derivations: store
            .derivations(space, &Question::default(), 9, None)
            .await
            .expect("derivations"),
        conflicts: store
            .conflicts(space, &[], 9, None)
            .await
            .expect("conflicts"),
        space: format!("{:?}", SpaceCatalog::get(store, space).await),
        depth: store.depth(None).await.expect("depth"),
    }
}

async fn strings(connection: &mut SqliteConnection, query: &str) -> Vec<String> {
    let rows = sqlx::query_scalar(AssertSqlSafe(query.to_owned()));
    rows.fetch_all(connection).await.expect(query)
}

const TABLES: &str = "SELECT name FROM sqlite_schema
    WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT IN ('_sqlx_migrations', 'progress', 'unscrubbed') ORDER BY name";

/// Tables, and the names of their columns that a file of any version and the newest have in common.
async fn columns(connection: &mut SqliteConnection) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for table in strings(connection, TABLES).await {
        let query = format!(
            "SELECT coalesce(group_concat('\"' || name || '\"'), '') FROM pragma_table_xinfo('{table}')
             WHERE hidden = 0 AND name IN (SELECT name FROM pragma_table_xinfo('{table}', 'memory') WHERE hidden = 0)"
        );
        let names = strings(connection, &query).await.concat();
        all.push((table, names));
    }
    all.retain(|(_, names)| !names.is_empty());
    all
}

/// Rows of these columns, as text.
async fn rows(connection: &mut SqliteConnection, columns: &[(String, String)]) -> Vec<String> {
    let mut all = Vec::new();
    for (table, names) in columns {
        let quoted: Vec<_> = names.split(',').map(|it| format!("quote({it})")).collect();
        let quoted = quoted.join(" || ',' || ");
        let query = format!("SELECT '{table}: ' || {quoted} FROM main.{table} ORDER BY 1");
        all.extend(strings(connection, &query).await);
    }
    all
}

/// Makes a file of a version with the memory in it, and brings it to the newest version. All rows
/// are found again.
async fn upgrade(path: &Path, from: i64) {
    let memory = MEMORY.get_or_init(memory).await;
    let label = format!("from version {from}");
    migrate_to(path, from).await.expect(&label);
    let mut connection = raw(path).await;
    let attach = format!("ATTACH '{}' AS memory", memory.path.display());
    connection
        .execute(AssertSqlSafe(attach))
        .await
        .expect("attach");
    let columns = columns(&mut connection).await;
    for (table, names) in &columns {
        let insert =
            format!("INSERT INTO main.{table} ({names}) SELECT {names} FROM memory.{table}");
        connection
            .execute(AssertSqlSafe(insert))
            .await
            .expect(table);
    }
    // Earlier versions have one row at most here, and a start removes it: a scrub is made up for.
    connection
        .execute("INSERT INTO main.unscrubbed (id) VALUES (1)")
        .await
        .expect("a scrub that is due");
    let before = rows(&mut connection, &columns).await;
    connection.close().await.expect("close");
    let store = opened(path, &label).await;
    store.close().await.expect(&label);
    drop(store);
    let mut connection = raw(path).await;
    let after = rows(&mut connection, &columns).await;
    assert_eq!(after, before, "{label}");
    let broken = strings(
        &mut connection,
        "SELECT \"table\" FROM pragma_foreign_key_check",
    )
    .await;
    assert_eq!(broken, [""; 0], "{label}");
    connection.close().await.expect("close");
}

#[tokio::test]
async fn every_version_with_memory_comes_to_the_newest() {
    for from in versions() {
        let label = format!("from version {from}");
        let (_directory, path) = place();
        upgrade(&path, from).await;
        let store = opened(&path, &label).await;
        let memory = MEMORY.get().expect("it was put in");
        for (space, before) in spaces().iter().zip(&memory.seen) {
            let after = seen(&store, space).await;
            assert_eq!(after.turns, before.turns, "{label}");
            assert_eq!(after.depth, before.depth, "{label}");
            // Versions from before derived memory had none of it.
            if !after.derivations.items.is_empty() {
                assert_eq!(&after, before, "{label}");
            }
            let pending = store.pending(Stage::Derive, 9).await.expect("pending");
            assert!(pending.contains(space), "{label}: {pending:?}");
        }
        for space in &spaces() {
            goes_on(&store, space, &label).await;
        }
    }
}

/// Does not bring back what was forgotten; writes, and forgets.
async fn goes_on(store: &SqliteStore, space: &Scope, label: &str) {
    let again = turn_in(space, "s1", "7", "7");
    let again = indexed(batch_in(space, "again", vec![again]), 1);
    let more = vec![turn_in(space, "new", "x", "more")];
    let more = indexed(batch_in(space, "more", more), 9);
    store.commit(vec![again, more]).await.expect(label);
    let everything = TurnFilter::default();
    let listed = Ledger::list(store, space, &everything, 100, None).await;
    assert_eq!(
        listed.expect(label).items.len(),
        9,
        "{label}: one of ten was forgotten"
    );
    store.remove(space, &everything).await.expect(label);
    let listed = Ledger::list(store, space, &everything, 100, None).await;
    assert_eq!(listed.expect(label).items, [], "{label}");
}

/// A file without rows that came from an earlier version, which the name of the test picks:
/// together the cases of the suites see every version.
pub async fn upgraded() -> (TempDir, PathBuf) {
    let versions: Vec<i64> = versions().collect();
    let mut hasher = DefaultHasher::new();
    std::thread::current().name().hash(&mut hasher);
    let from = versions[(hasher.finish() % versions.len() as u64) as usize];
    eprintln!("upgraded from version {from}");
    let (directory, path) = place();
    upgrade(&path, from).await;
    let mut connection = raw(&path).await;
    let mut tables = strings(&mut connection, TABLES).await;
    tables.extend(["progress".to_owned(), "sqlite_sequence".to_owned()]);
    for table in tables {
        let delete = format!("DELETE FROM {table}");
        connection
            .execute(AssertSqlSafe(delete))
            .await
            .expect(&table);
    }
    connection.close().await.expect("close");
    (directory, path)
}
