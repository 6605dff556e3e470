//! Connections that break, servers that do not answer, and what messages say of them.

use std::time::Duration;

use memfleet_ports::conformance::samples::{batch, home, indexed, turn};
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::store::StoreError;
use memfleet_postgres::{Options, PostgresStore, migrate};
use sqlx::Executor;
use tokio::time::Instant;

use crate::database::Database;

#[tokio::test]
async fn a_server_that_is_down_is_unavailable_and_named_without_the_password() {
    let url = "postgres://ada:secret@127.0.0.1:1/memory";
    let options = Options {
        acquire_timeout: Duration::from_millis(200),
        ..Options::default()
    };
    let connected = PostgresStore::connect(url, options).await.map(drop);
    for refused in [connected, migrate(url).await.map(drop)] {
        let Err(StoreError::Unavailable(cause)) = refused else {
            panic!("{refused:?}");
        };
        assert!(cause.starts_with("127.0.0.1:1/memory: "), "{cause}");
        assert!(!cause.contains("secret"), "{cause}");
    }
}

/// As after a restart of the server: every idle connection is broken, and the next call does not notice.
#[tokio::test]
async fn connections_that_broke_while_idle_are_replaced() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let calls = (0..8).map(|_| async { store.head(&home()).await.map(drop) });
    let outcomes = futures::future::join_all(calls).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let mut administrator = database.connect().await;
    administrator
        .execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )
        .await
        .expect("terminate");
    assert_eq!(store.head(&home()).await, Ok(0));
    let told = indexed(batch("k", vec![turn("a", "one")]), 1);
    store.commit(vec![told]).await.expect("commit");
}

/// A caller leaves at its deadline, and its statement ends with it.
#[tokio::test]
async fn a_statement_does_not_outlive_the_deadline_of_its_caller() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let told = |key| indexed(batch(key, vec![turn(key, "x")]), 1);
    store.commit(vec![told("a")]).await.expect("commit");
    let mut other = database.connect().await;
    let lock = "BEGIN; SELECT FROM memfleet.spaces FOR UPDATE";
    other.execute(lock).await.expect("a lock");
    let due = Instant::now() + Duration::from_millis(300);
    let waiting = memfleet_trace::due_at(Some(due), store.commit(vec![told("b")]));
    let left = tokio::time::timeout_at(due, waiting).await;
    assert!(left.is_err(), "it waits for the lock");
    let holder = sqlx::query_scalar("SELECT pg_backend_pid()");
    let holder: i32 = holder.fetch_one(&mut other).await.expect("a process");
    // A transaction sees the activity as it first was: another connection looks.
    let mut observer = database.connect().await;
    let working = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), $1) AND state <> 'idle'";
    let gone_by = Instant::now() + Duration::from_secs(10);
    loop {
        let working = sqlx::query_scalar(working).bind(holder);
        let working: i64 = working.fetch_one(&mut observer).await.expect("activity");
        if working == 0 {
            break;
        }
        assert!(Instant::now() < gone_by, "{working} statements go on");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A statement waits for a lock no longer than it may, and the transaction is gone then.
#[tokio::test]
async fn a_lock_that_is_not_given_back_makes_a_commit_unavailable() {
    let database = Database::migrated().await;
    let options = Options {
        statement_timeout: Duration::from_millis(100),
        ..Options::default()
    };
    let store = PostgresStore::connect(&database.url(), options)
        .await
        .expect("connect");
    let told = |key: &str| indexed(batch(key, vec![turn(key, "x")]), 1);
    store.commit(vec![told("a")]).await.expect("commit");
    let mut other = database.connect().await;
    other
        .execute("BEGIN; SELECT * FROM memfleet.spaces FOR UPDATE")
        .await
        .expect("lock");
    let refused = store.commit(vec![told("b")]).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    other.execute("ROLLBACK").await.expect("rollback");
    store.commit(vec![told("b")]).await.expect("commit");
}

/// Callers that leave in the middle of a call leave no transaction behind.
#[tokio::test]
async fn a_call_that_is_given_up_leaves_nothing_open() {
    let database = Database::migrated().await;
    let options = Options {
        connections: 2,
        ..Options::default()
    };
    let store = PostgresStore::connect(&database.url(), options)
        .await
        .expect("connect");
    for number in 0..100_u64 {
        let told = indexed(
            batch(&number.to_string(), vec![turn(&number.to_string(), "x")]),
            number,
        );
        let patience = Duration::from_micros(number * 100);
        let _left = tokio::time::timeout(patience, store.commit(vec![told])).await;
    }
    store.head(&home()).await.expect("head");
    store.close().await;
    let closed = store.head(&home()).await;
    assert!(
        matches!(closed, Err(StoreError::Unavailable(_))),
        "{closed:?}"
    );
}
