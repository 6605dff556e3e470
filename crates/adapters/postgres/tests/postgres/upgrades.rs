//! Databases of every earlier version, with memory in them, come to the newest one.

use std::hash::{DefaultHasher, Hash, Hasher};

use futures::{StreamExt, stream};
use memfleet_columns::embedding_key;
use memfleet_domain::Scope;
use memfleet_ports::conformance::samples::{batch_in, indexed, scope, turn_in};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Stage};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{Migrated, PostgresErasure, PostgresStore, migrate, migrate_to, versions};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::sync::OnceCell;

use crate::contents::{OWNER, SpaceContents, connected, fill, prepare, seen};
use crate::database::{Database, template};
use crate::migrations::default_model;

/// Content of a database of the newest schema, of two tenants.
struct Memory {
    /// Tables, and their rows as JSON.
    tables: Vec<(String, String)>,
    seen: Vec<SpaceContents>,
}

static MEMORY: OnceCell<Memory> = OnceCell::const_new();

fn spaces() -> [Scope; 2] {
    [scope("acme", "ada"), scope("globex", "ada")]
}

/// Rows that no port of the store writes by itself, or not without others.
const MORE: &str = "
    INSERT INTO memfleet.keys (tenant, id, created_at, rights, operator, hash, label, spaces)
        VALUES ('acme', gen_random_uuid(), 1, 7, false, '\\x01', 'app', '[]');
    INSERT INTO memfleet.quotas VALUES ('acme', 60, 1000);
    INSERT INTO memfleet.audit (tenant, at, kind, caller, request_id) VALUES ('acme', 1, 'forget', 'app', 'r');
    INSERT INTO memfleet.model_use VALUES ('acme', 1, 1, 1, 1);
    INSERT INTO memfleet.settings VALUES ('acme', 'policy', '', 'p', 1, 1, 'app', '\\x7b7d');
    INSERT INTO memfleet.setting_revisions VALUES ('acme', 1);
    INSERT INTO memfleet.exchanges (tenant, session, name, version, tokens, updated_at, expires_at, forgotten, turns, state)
        VALUES ('acme', 's', 'e', 1, 1, 1, 1, false, '[]', '\\x7b7d');
    INSERT INTO memfleet.injections (tenant, id, at, forgotten, caller, request_id, decision, spaces, turns, record)
        VALUES ('acme', gen_random_uuid(), 1, false, 'app', 'r', 'injected', '[]', '[]', '\\x7b7d')";

/// `progress` is left out: it follows from the spaces and the agents that a version has.
const TABLES: &str = "SELECT relname::text FROM pg_class
    WHERE relnamespace = 'memfleet'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
        AND relname NOT IN ('_sqlx_migrations', 'progress') ORDER BY relname";

async fn memory() -> Memory {
    let database = Database::migrated().await;
    let store = database.store().await;
    let mut read = Vec::new();
    for space in &spaces() {
        fill(&store, space).await;
    }
    let mut connection = database.connect().await;
    connection.execute(MORE).await.expect("more rows");
    for space in &spaces() {
        read.push(seen(&store, space).await);
    }
    let mut tables = Vec::new();
    for table in strings(&mut connection, TABLES).await {
        let rows = format!("SELECT coalesce(json_agg(t), '[]')::text FROM memfleet.{table} t");
        let rows = strings(&mut connection, &rows).await.concat();
        tables.push((table, rows));
    }
    Memory { tables, seen: read }
}

async fn strings(connection: &mut PgConnection, query: &str) -> Vec<String> {
    let rows = sqlx::query_scalar(AssertSqlSafe(query.to_owned()));
    rows.fetch_all(connection).await.expect(query)
}

/// Puts the rows into a schema of any version, as far as that has tables and columns for them. The
/// agents of the version are behind.
async fn put_in(connection: &mut PgConnection, memory: &Memory) {
    let there = strings(connection, TABLES).await;
    // Rows come in any order: keys are not compared meanwhile.
    let unchecked = "SET session_replication_role = replica";
    connection.execute(unchecked).await.expect("a superuser");
    for (table, rows) in memory
        .tables
        .iter()
        .filter(|(name, _)| there.contains(name))
    {
        let insert = format!(
            "INSERT INTO memfleet.{table} OVERRIDING SYSTEM VALUE
             SELECT * FROM json_populate_recordset(NULL::memfleet.{table}, $1::json)"
        );
        let insert = sqlx::query(AssertSqlSafe(insert)).bind(rows);
        insert.execute(&mut *connection).await.expect(table);
    }
    // Versions that do not name the embedding space of a place had vectors of the default model.
    let is_unnamed = "SELECT 1::text WHERE NOT EXISTS (SELECT FROM pg_attribute
        WHERE attrelid = 'memfleet.spaces'::regclass AND attname = 'embedding')";
    if !strings(connection, is_unnamed).await.is_empty() {
        let rename = "UPDATE memfleet.turns SET embedding = $1 WHERE embedding IS NOT NULL";
        let rename = sqlx::query(rename).bind(embedding_key(&default_model()));
        rename.execute(&mut *connection).await.expect("turns");
    }
    // Numbers go on behind those of the rows.
    let counters = "SELECT format('SELECT setval(pg_get_serial_sequence(%L, %L), max(%I))::text FROM memfleet.%I',
            'memfleet.' || relname, attname, attname, relname)
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = 'memfleet'::regnamespace AND attidentity <> '' AND NOT relispartition";
    for counter in strings(connection, counters).await {
        let set = sqlx::query(AssertSqlSafe(counter));
        set.fetch_one(&mut *connection).await.expect("a number");
    }
    if strings(connection, "SELECT to_regclass('memfleet.progress')::text WHERE to_regclass('memfleet.progress') IS NOT NULL").await.is_empty() {
        return;
    }
    for stage in Stage::ALL {
        let row = "INSERT INTO memfleet.progress (tenant, space, stage, behind_since)
            SELECT s.tenant, s.id, $1, 1 FROM memfleet.spaces s, pg_proc p
            WHERE p.proname = 'fall_behind' AND position(quote_literal($1) IN p.prosrc) > 0";
        let row = sqlx::query(row).bind(stage.name());
        row.execute(&mut *connection).await.expect("progress");
    }
}

/// Rows of every table of the memory, of the columns that the schema has now.
async fn rows(
    connection: &mut PgConnection,
    columns: &[(String, String)],
) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for (table, columns) in columns {
        let query = format!(
            "SELECT to_jsonb(t)::text FROM (SELECT {columns} FROM memfleet.{table}) t ORDER BY 1"
        );
        all.push((table.clone(), strings(connection, &query).await));
    }
    all
}

async fn columns(connection: &mut PgConnection) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for table in strings(connection, TABLES).await {
        let query = format!(
            "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
             WHERE attrelid = 'memfleet.{table}'::regclass AND attnum > 0 AND NOT attisdropped"
        );
        let names = strings(connection, &query).await.concat();
        all.push((table, names));
    }
    all
}

/// The user that migrates: the owner of deploy/postgres/roles.sql, or a superuser.
#[derive(Debug, Clone, Copy, PartialEq)]
enum User {
    Owner,
    Superuser,
}

/// Brings an empty database to a version, puts the memory in, and brings it to the newest version.
/// All rows are found again.
async fn upgrade(database: &Database, from: i64, user: User) {
    let memory = MEMORY.get_or_init(memory).await;
    prepare(database).await;
    let url = match user {
        User::Owner => database.url_as(OWNER),
        User::Superuser => database.url(),
    };
    let label = format!("from version {from} as {user:?}");
    let began = migrate_to(&url, from).await;
    assert_eq!(began.map(|it| it.to), Ok(from), "{label}");
    let mut connection = database.connect().await;
    put_in(&mut connection, memory).await;
    let columns = columns(&mut connection).await;
    let before = rows(&mut connection, &columns).await;
    let migrated = migrate(&url).await;
    let to = versions().next_back().expect("a version");
    assert_eq!(migrated, Ok(Migrated { from, to }), "{label}");
    for (after, before) in rows(&mut connection, &columns).await.iter().zip(&before) {
        assert_eq!(after, before, "{label}");
    }
    connection.close().await.expect("close");
}

async fn is_in_use(from: i64, user: User) {
    let label = format!("from version {from} as {user:?}");
    let database = Database::empty().await;
    upgrade(&database, from, user).await;
    let store = connected(&database).await;
    for stage in Stage::ALL.into_iter().filter(|it| *it != Stage::Rebuild) {
        let mut pending = store.pending(stage, 9).await.expect("pending");
        pending.sort_by(|one, other| one.tenant.cmp(&other.tenant));
        assert_eq!(pending, spaces(), "{label}: {stage:?}");
    }
    let memory = MEMORY.get().expect("it was put in");
    for (space, before) in spaces().iter().zip(&memory.seen) {
        let mut after = seen(&store, space).await;
        assert_eq!(
            after.conflicts.items.is_empty(),
            after.derivations.items.is_empty(),
            "{label}"
        );
        assert_eq!(after.turns, before.turns, "{label}");
        // Versions from before derived memory had none of it.
        if !after.derivations.items.is_empty() {
            after.pending.clone_from(&before.pending);
            assert_eq!(&after, before, "{label}");
        }
        goes_on(&store, space, &label).await;
    }
}

/// Writes, and does not bring back what was forgotten; forgets.
async fn goes_on(store: &PostgresStore, space: &Scope, label: &str) {
    let words = |n| format!("{} said number {n}", space.tenant);
    let again = (0..40).map(|n| turn_in(space, &format!("s{}", n % 3), &n.to_string(), &words(n)));
    let again = indexed(batch_in(space, "again", again.collect()), 1);
    let more = vec![turn_in(space, "new", "x", "more")];
    let more = indexed(batch_in(space, "more", more), 9);
    store.commit(vec![again, more]).await.expect(label);
    let everything = TurnFilter::default();
    let listed = Ledger::list(store, space, &everything, 100, None).await;
    assert_eq!(
        listed.expect(label).items.len(),
        40,
        "{label}: one of 41 was forgotten"
    );
    let erasure = PostgresErasure::new(store.clone(), std::sync::Arc::new(NothingWaits));
    erasure.remove(space, &everything).await.expect(label);
    let listed = Ledger::list(store, space, &everything, 100, None).await;
    assert_eq!(listed.expect(label).items, [], "{label}");
    assert!(store.head(space).await.is_ok(), "{label}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_with_memory_comes_to_the_newest() {
    let from = versions().flat_map(|from| [(from, User::Owner), (from, User::Superuser)]);
    let tried = stream::iter(from).for_each_concurrent(4, |(from, user)| is_in_use(from, user));
    tried.await;
}

/// A database without rows that came from an earlier version, which the name of the test picks:
/// together the cases of the suites see every version.
pub async fn upgraded() -> Database {
    let versions: Vec<i64> = versions().collect();
    let mut hasher = DefaultHasher::new();
    std::thread::current().name().hash(&mut hasher);
    let from = versions[(hasher.finish() % versions.len() as u64) as usize];
    eprintln!("upgraded from version {from}");
    let kind = format!("upgraded_{from}");
    let template = template(&kind, async |database| {
        upgrade(database, from, User::Owner).await;
        let mut connection = database.connect().await;
        let tables = strings(&mut connection, TABLES).await.join(", memfleet.");
        let empty = format!("TRUNCATE memfleet.{tables}, memfleet.progress RESTART IDENTITY");
        connection
            .execute(AssertSqlSafe(empty))
            .await
            .expect("empty");
        connection.close().await.expect("close");
    });
    Database::copied(&template.await).await
}
