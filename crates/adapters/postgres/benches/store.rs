//! What the store costs and how fast it is, on the turns that the store of one node is measured with. Needs the server of the
//! tests (`MEMFLEET_TEST_POSTGRES_URL`). Prints one line a figure; `TURNS` sets the size, 10,000 by default.

#[path = "../../sqlite/benches/synthetic/turns.rs"]
mod turns;

use std::str::FromStr;
use std::time::{Duration, Instant};

use memfleet_domain::ids::TurnId;
use memfleet_ports::candidates::Candidates;
use memfleet_ports::conformance::samples::home;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_postgres::{Options, PostgresStore, migrate};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor, Row};

use self::turns::{indexed, measure, told};

#[tokio::main]
async fn main() {
    let turns = std::env::var("TURNS")
        .ok()
        .and_then(|turns| turns.parse().ok())
        .unwrap_or(10_000);
    let url = std::env::var("MEMFLEET_TEST_POSTGRES_URL").expect("the URL of a superuser");
    let server = PgConnectOptions::from_str(&url).expect("a URL");
    let mut administrator = server.connect().await.expect("connect");
    let drop_database = "DROP DATABASE IF EXISTS memfleet_bench WITH (FORCE)";
    administrator.execute(drop_database).await.expect("drop");
    let create = "CREATE DATABASE memfleet_bench";
    administrator.execute(create).await.expect("create");
    let database = server.database("memfleet_bench");
    let url = database.to_url_lossy().to_string();
    migrate(&url).await.expect("migrate");
    let store = PostgresStore::connect(&url, Options::default()).await;
    let store = store.expect("connect");
    ingest(&store, turns).await;
    let mut inside = database.connect().await.expect("connect");
    inside.execute("VACUUM ANALYZE").await.expect("analyze");
    sizes(&mut inside, turns as i64).await;
    reading(&store, turns).await;
    single(&store).await;
    store.close().await;
    administrator.execute(drop_database).await.expect("drop");
}

async fn ingest(store: &PostgresStore, turns: usize) {
    let mut random = StdRng::seed_from_u64(1);
    let mut spent = Duration::ZERO;
    for first in (0..turns).step_by(64) {
        let batch = indexed(&mut random, first, 64.min(turns - first));
        let start = Instant::now();
        store.commit(vec![batch]).await.expect("commit");
        spent += start.elapsed();
    }
    let rate = turns as f64 / spent.as_secs_f64();
    println!("bulk commit: {rate:.0} turns/s");
}

/// Bytes a turn of every table with its indexes and what it keeps out of line.
async fn sizes(connection: &mut PgConnection, turns: i64) {
    let rows = connection
        .fetch_all(
            "SELECT coalesce(parent.relname, c.relname)::text, sum(pg_table_size(c.oid))::bigint, sum(pg_indexes_size(c.oid))::bigint
             FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
             WHERE c.relnamespace = 'memfleet'::regnamespace AND c.relkind = 'r' GROUP BY 1 ORDER BY 2 DESC",
        )
        .await
        .expect("sizes");
    let mut total = 0;
    for row in &rows {
        let (name, table, indexes): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        total += table + indexes;
        println!(
            "disk: {name} {} + {} (indexes) bytes a turn",
            table / turns,
            indexes / turns
        );
    }
    println!("disk: {} bytes a turn", total / turns);
}

async fn reading(store: &PostgresStore, turns: usize) {
    let mut random = StdRng::seed_from_u64(2);
    measure("head", 1_000, async || {
        store.head(&home()).await.expect("head");
    })
    .await;
    for count in [64, 1_000] {
        let numbers = (0..count).map(|_| random.random_range(0..turns as u32));
        let passages: Vec<u32> = numbers.collect();
        measure(
            &format!("token vectors of {count} passages"),
            50,
            async || {
                let found = store.token_vectors(&home(), None, &passages).await;
                assert_eq!(found.expect("token vectors").len(), count);
            },
        )
        .await;
    }
    let start = Instant::now();
    let (mut reached, mut count, mut more) = (0, 0, true);
    while more {
        let page = store.changes_after(&home(), reached, 2_000).await;
        let page = page.expect("changes");
        count += page.changes.len();
        (reached, more) = (page.reached, page.more);
    }
    println!("feed from 0: {count} changes in {:?}", start.elapsed());
    let start = Instant::now();
    let (mut reached, mut more) = (0, true);
    while more {
        let page = store.outline_after(&home(), reached, 20_000).await;
        let page = page.expect("outline");
        (reached, more) = (page.reached, page.more);
    }
    println!("outline from 0: {:?}", start.elapsed());
    let terms = ["w1", "w20", "w300", "w4000"].map(str::to_owned);
    measure("postings of 4 terms", 50, async || {
        store.postings(&home(), &terms).await.expect("postings");
    })
    .await;
    let ids: Vec<TurnId> = (0..20)
        .map(|number| told(&mut StdRng::seed_from_u64(3), number * 7).0.id)
        .collect();
    measure("20 turns by id", 200, async || {
        assert_eq!(store.turns(&home(), &ids).await.expect("turns").len(), 20);
    })
    .await;
}

async fn single(store: &PostgresStore) {
    let mut random = StdRng::seed_from_u64(4);
    let mut next = 10_000_000;
    measure("commit of one turn", 300, async || {
        next += 1;
        let batch = indexed(&mut random, next, 1);
        store.commit(vec![batch]).await.expect("commit");
    })
    .await;
}
