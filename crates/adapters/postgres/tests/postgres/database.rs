//! A database a test, on the server that `MEMFLEET_TEST_POSTGRES_URL` names, copied from one that was migrated once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use memfleet_postgres::{Options, PostgresStore, migrate};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use tokio::sync::OnceCell;

static TEMPLATE: OnceCell<String> = OnceCell::const_new();
static NEXT: AtomicU32 = AtomicU32::new(0);

fn server() -> String {
    std::env::var("MEMFLEET_TEST_POSTGRES_URL").expect(
        "these tests need a PostgreSQL server: run `cargo xtask test`, which starts one, or set MEMFLEET_TEST_POSTGRES_URL to the URL of a superuser",
    )
}

/// A connection to the server's own database.
pub async fn administer(statement: &str) {
    let options = PgConnectOptions::from_str(&server()).expect("a URL");
    let mut connection = options.connect().await.expect("the server answers");
    run(&mut connection, statement).await;
}

async fn run(connection: &mut PgConnection, statement: &str) {
    let statement = AssertSqlSafe(statement.to_owned());
    connection.execute(statement).await.expect("a statement");
}

/// A database that goes when it is dropped.
#[derive(Debug)]
pub struct Database {
    name: String,
}

impl Database {
    /// Without any schema.
    pub async fn empty() -> Self {
        Self::copied("template1").await
    }

    /// Migrated, without rows.
    pub async fn migrated() -> Self {
        let migrated = async |database: &Self| {
            migrate(&database.url()).await.expect("migrate");
        };
        let template = TEMPLATE
            .get_or_init(|| template("template", migrated))
            .await;
        Self::copied(template).await
    }

    /// With all rows of another one, which must have no connections.
    pub async fn copied(template: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("memfleet_test_{}_{number}", std::process::id());
        administer(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        administer(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        Self { name }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> String {
        url_of(&self.name, None)
    }

    /// Its URL for another user.
    pub fn url_as(&self, user: &str) -> String {
        url_of(&self.name, Some(user))
    }

    /// As the superuser.
    pub async fn connect(&self) -> PgConnection {
        let options = PgConnectOptions::from_str(&self.url()).expect("a URL");
        options.connect().await.expect("the server answers")
    }

    pub async fn store(&self) -> PostgresStore {
        let store = PostgresStore::connect(&self.url(), Options::default()).await;
        store.expect("a migrated database")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // The test's own runtime cannot be waited for from within.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(administer(&statement));
        });
        // A database that stays is no failure of the test.
        let _stays = dropping.join();
    }
}

fn url_of(database: &str, user: Option<&str>) -> String {
    let options = PgConnectOptions::from_str(&server()).expect("a URL");
    let options = options.database(database);
    match user {
        Some(user) => options.username(user).password(user),
        None => options,
    }
    .to_url_lossy()
    .to_string()
}

/// Template databases, each made once, by the first test that needs it. Named for the migrations,
/// so that one of another version is never used, and renamed when it is complete.
pub async fn template(kind: &str, make: impl AsyncFnOnce(&Database)) -> String {
    let name = format!("memfleet_{kind}_{:016x}", migrations());
    let options = PgConnectOptions::from_str(&server()).expect("a URL");
    let mut connection = options.connect().await.expect("the server answers");
    let lock = sqlx::query("SELECT pg_advisory_lock(hashtextextended($1, 0))").bind(&name);
    lock.execute(&mut connection).await.expect("the lock");
    let found = sqlx::query("SELECT FROM pg_database WHERE datname = $1").bind(&name);
    let found = found.fetch_optional(&mut connection).await.expect("query");
    if found.is_none() {
        let new = Database::empty().await;
        make(&new).await;
        let renamed = format!("ALTER DATABASE {} RENAME TO {name}", new.name);
        run(&mut connection, &renamed).await;
    }
    connection.close().await.expect("close");
    name
}

fn migrations() -> u64 {
    // Tests of other packages use this file, too.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = above.map(|it| it.join("crates/adapters/postgres/migrations"));
    let folder = folders.find(|folder| folder.is_dir());
    let migrations = std::fs::read_dir(folder.expect("a folder")).expect("the migrations");
    let mut migrations: Vec<_> = migrations
        .map(|file| file.expect("a file").path())
        .collect();
    migrations.sort();
    let mut hasher = DefaultHasher::new();
    for file in migrations {
        std::fs::read(file).expect("a migration").hash(&mut hasher);
    }
    hasher.finish()
}
