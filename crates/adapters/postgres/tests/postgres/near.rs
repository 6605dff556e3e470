//! What is found through the HNSW index, against a comparison with every vector.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use memfleet_domain::Scope;
use memfleet_ports::candidates::{Among, Candidates};
use memfleet_ports::conformance::samples::{batch_in, indexed, scope, turn_in};
use memfleet_ports::ledger::Ledger;
use memfleet_postgres::PostgresStore;
use pgvector::HalfVector;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sqlx::{AssertSqlSafe, Executor, PgConnection, Row};

use crate::database::Database;

/// As a retriever asks for.
const LIMIT: u32 = 800;

/// What vectors of texts vary in: far fewer things than they have components.
const MEANINGS: usize = 48;

/// Vectors that lie in clusters, as those of texts do.
struct Vectors {
    /// By meaning.
    directions: Vec<Vec<f32>>,
    topics: Vec<Vec<f32>>,
    dice: StdRng,
}

impl Vectors {
    fn new(length: usize) -> Self {
        let mut dice = StdRng::seed_from_u64(7);
        let mut many = |count, length| -> Vec<Vec<f32>> {
            let one = |_| (0..length).map(|_| normal(&mut dice)).collect();
            (0..count).map(one).collect()
        };
        Self {
            directions: many(MEANINGS, length),
            topics: many(300, MEANINGS),
            dice,
        }
    }

    /// A unit vector × 127.
    fn draw(&mut self) -> Vec<i8> {
        let dice = &mut self.dice;
        let topic = &self.topics[dice.random_range(0..self.topics.len())];
        let length = self.directions[0].len();
        let mut values: Vec<f32> = (0..length).map(|_| 2.0 * normal(dice)).collect();
        for (direction, meaning) in self.directions.iter().zip(topic) {
            let meaning = meaning + normal(dice);
            let pairs = values.iter_mut().zip(direction);
            pairs.for_each(|(value, x)| *value += meaning * x);
        }
        let length = values.iter().map(|x| x * x).sum::<f32>().sqrt();
        values.iter().map(|x| (x / length * 127.0) as i8).collect()
    }
}

fn normal(dice: &mut StdRng) -> f32 {
    (0..6).map(|_| dice.random_range(-1.0_f32..1.0)).sum()
}

fn half(vector: &[i8]) -> HalfVector {
    HalfVector::from_f32_slice(&vector.iter().map(|&x| f32::from(x)).collect::<Vec<_>>())
}

/// Spaces of one tenant, all in one partition.
struct World {
    _database: Database,
    store: PostgresStore,
    administrator: PgConnection,
    vectors: Vectors,
}

impl World {
    async fn new(length: usize) -> Self {
        let database = Database::migrated().await;
        let mut administrator = database.connect().await;
        let index = format!("SELECT memfleet.index_vectors({length})");
        let index = administrator.execute(AssertSqlSafe(index)).await;
        index.expect("an index");
        Self {
            store: database.store().await,
            _database: database,
            administrator,
            vectors: Vectors::new(length),
        }
    }

    /// A space of so many passages beside one that was told.
    async fn space(&mut self, name: &str, passages: usize) -> Scope {
        let scope = scope("acme", name);
        let told = vec![turn_in(&scope, "s", "a", "x")];
        let told = self
            .store
            .commit(vec![indexed(batch_in(&scope, "k", told), 1)])
            .await;
        told.expect("commit");
        let id = "SELECT id FROM memfleet.spaces WHERE name = $1";
        let id: i64 = sqlx::query_scalar(id)
            .bind(name)
            .fetch_one(&mut self.administrator)
            .await
            .expect("the space");
        for first in (1..=passages).step_by(2_000) {
            let numbers: Vec<i32> = (first..=passages.min(first + 1_999))
                .map(|n| n as i32)
                .collect();
            let vectors: Vec<_> = numbers.iter().map(|_| half(&self.vectors.draw())).collect();
            sqlx::query(
                "INSERT INTO memfleet.passages SELECT 'acme', $1, n, 0, 0, '', '', '', v FROM unnest($2::integer[], $3::halfvec[]) AS new(n, v)",
            )
            .bind(id)
            .bind(numbers)
            .bind(vectors)
            .execute(&mut self.administrator)
            .await
            .expect("passages");
        }
        scope
    }

    async fn analyze(&mut self) {
        let analyze = self
            .administrator
            .execute("VACUUM ANALYZE memfleet.passages");
        analyze.await.expect("analyze");
    }

    /// Share of the truly nearest that are found, and how long that took.
    async fn recall(&mut self, scope: &Scope, among: &Among, queries: usize) -> (f64, Duration) {
        let (mut found, mut wanted, mut spent) = (0, 0, Duration::ZERO);
        for _ in 0..queries {
            let query = self.vectors.draw();
            let exact = self.exact(scope, among, &query).await;
            let start = Instant::now();
            let near = self.store.nearest(scope, None, &query, among, LIMIT).await;
            spent += start.elapsed();
            let near = near.expect("nearest");
            assert!(near.is_sorted_by(|a, b| a.1 >= b.1));
            found += near
                .iter()
                .filter(|(number, _)| exact.contains(number))
                .count();
            wanted += exact.len();
        }
        (found as f64 / wanted as f64, spent / queries as u32)
    }

    /// Whether pgvector cannot search an index on.
    async fn extension_is_older(&mut self) -> bool {
        let version = "SELECT extversion LIKE '0.7.%' FROM pg_extension WHERE extname = 'vector'";
        let older = sqlx::query_scalar(version).fetch_one(&mut self.administrator);
        older.await.expect("the version")
    }

    /// How often an HNSW index was searched. The store is closed: connections report when they end.
    async fn index_searches(&mut self) -> i64 {
        let statements = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        let ended = self.administrator.execute(statements).await;
        ended.expect("the others end");
        let searches = sqlx::query_scalar(
            "SELECT sum(s.idx_scan)::bigint FROM pg_stat_user_indexes s
             JOIN pg_class c ON c.oid = s.indexrelid JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'hnsw'",
        );
        let searches = searches.fetch_one(&mut self.administrator).await;
        searches.expect("statistics")
    }

    /// By a comparison with each.
    async fn exact(&mut self, scope: &Scope, among: &Among, query: &[i8]) -> HashSet<u32> {
        let rows = sqlx::query(
            "SELECT passage FROM memfleet.passages g JOIN memfleet.spaces p ON p.tenant = g.tenant AND p.id = g.space
             WHERE p.name = $1 AND vector_dims(sentence) = $2 AND CASE WHEN passage < $4 THEN get_bit($3, passage) = 1 ELSE false END
             ORDER BY sentence <#> $5 LIMIT $6",
        )
        .bind(scope.space.as_str())
        .bind(query.len() as i32)
        .bind(among.bytes())
        .bind(among.bytes().len() as i32 * 8)
        .bind(half(query))
        .bind(i64::from(LIMIT))
        .fetch_all(&mut self.administrator)
        .await
        .expect("the nearest");
        rows.iter().map(|row| row.get::<i32, _>(0) as u32).collect()
    }
}

/// One of so many.
fn every(step: usize, passages: usize) -> Among {
    (1..=passages as u32).step_by(step).collect()
}

#[tokio::test]
async fn the_index_finds_what_a_comparison_with_every_vector_finds() {
    let mut world = World::new(16).await;
    let large = world.space("large", 34_000).await;
    let small = world.space("small", 500).await;
    world.analyze().await;
    for (scope, among) in [
        (&large, every(1, 34_000)),
        (&large, every(2, 34_000)),
        (&large, every(50, 34_000)),
        (&small, every(1, 500)),
    ] {
        let (recall, _) = world.recall(scope, &among, 5).await;
        assert!(
            recall >= 0.95,
            "{recall} of {} in {}",
            among.len(),
            scope.space
        );
    }
    world.store.close().await;
    let older = world.extension_is_older().await;
    assert_eq!(
        world.index_searches().await == 0,
        older,
        "pgvector 0.8 has it asked"
    );
}

/// The figures of docs/benchmarks.md; `PASSAGES` sets the size of the large space.
#[tokio::test]
#[ignore = "prints figures; takes minutes"]
async fn recall_and_speed() {
    let passages = std::env::var("PASSAGES")
        .ok()
        .and_then(|it| it.parse().ok());
    let passages = passages.unwrap_or(100_000);
    let mut world = World::new(384).await;
    let start = Instant::now();
    let large = world.space("large", passages).await;
    println!("{passages} passages stored in {:?}", start.elapsed());
    let middle = world.space("middle", passages / 4).await;
    let small = world.space("small", 5_000).await;
    world.analyze().await;
    for (scope, step, size) in [
        (&large, 1, passages),
        (&large, 2, passages),
        (&large, 5, passages),
        (&large, 20, passages),
        (&middle, 1, passages / 4),
        (&small, 1, 5_000),
    ] {
        let (recall, time) = world.recall(scope, &every(step, size), 20).await;
        let (name, percent) = (&scope.space, 100.0 * recall);
        println!(
            "{name} of {size}, one in {step}: recall@{LIMIT} {percent:.1} %, {time:?} a search"
        );
    }
}
