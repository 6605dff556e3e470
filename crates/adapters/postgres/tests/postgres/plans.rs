//! What runs all the time finds its rows by index, however large the tables are: the server counts the scans of whole tables.

mod access;
mod knowledge;
mod prompts;

use std::collections::BTreeMap;
use std::sync::Arc;

use memfleet_domain::Scope;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::candidates::Candidates;
use memfleet_ports::conformance::samples::{
    batch_in, edit, embedding_space, indexed, instant, scope, turn_in, vectors, without_vectors,
};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{IndexedBatch, Ledger, TextVectors};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{PostgresErasure, PostgresStore};
use sqlx::{Connection, Executor, PgConnection, Row};

use crate::database::Database;

/// Tenants beside the one that is asked about, so that no table is so small that a scan of it would be right.
const OTHERS: usize = 400;
/// Turns of the space that is asked about.
const TURNS: usize = 4_000;

fn home() -> Scope {
    scope("acme", "ada")
}

fn told(scope: &Scope, number: usize) -> AcceptedTurn {
    AcceptedTurn {
        event_time: Some(instant(number as i64)),
        metadata: [("n".to_owned(), (number / 10).to_string())].into(),
        ..turn_in(
            scope,
            &format!("s{}", number / 20),
            &number.to_string(),
            &format!("turn number {number}"),
        )
    }
}

fn batch(scope: &Scope, numbers: std::ops::Range<usize>) -> IndexedBatch {
    let acceptance = numbers.start as u64;
    let key = numbers.start.to_string();
    indexed(
        batch_in(scope, &key, numbers.map(|n| told(scope, n)).collect()),
        acceptance,
    )
}

async fn fill(store: &PostgresStore) {
    let others = (0..OTHERS).map(|n| scope(&format!("tenant {n}"), "space"));
    let mut batches: Vec<_> = others.map(|other| batch(&other, 0..5)).collect();
    batches.extend(
        (0..TURNS)
            .step_by(20)
            .map(|first| batch(&home(), first..first + 20)),
    );
    // A few wait for vectors, a few were forgotten.
    batches[OTHERS + 1] = without_vectors(batches[OTHERS + 1].clone());
    for batches in batches.chunks(50) {
        store.commit(batches.to_vec()).await.expect("commit");
    }
    let erasure = PostgresErasure::new(store.clone(), Arc::new(NothingWaits));
    let some = (0..TURNS).step_by(2).map(|n| told(&home(), n).id);
    let filter = TurnFilter {
        turns: some.collect(),
        ..TurnFilter::default()
    };
    erasure.remove(&home(), &filter).await.expect("remove");
}

/// What is asked or told again and again; `round` makes writes differ.
const CALLS: [&str; 20] = [
    "extent",
    "outline_after",
    "postings",
    "nearest",
    "passages",
    "head",
    "changes_after",
    "token_vectors",
    "with_metadata",
    "turns",
    "known",
    "batch",
    "history",
    "list",
    "list by turn",
    "list_accepted",
    "without_vectors",
    "locale and sessions",
    "commit",
    "remove",
];

async fn call(store: &PostgresStore, name: &str, round: usize) {
    let (here, everything) = (home(), TurnFilter::default());
    let ids = [told(&here, 1).id, told(&here, 3).id];
    let model = embedding_space("1");
    let by_turn = TurnFilter {
        turns: vec![told(&here, round * 4 + 1).id],
        ..TurnFilter::default()
    };
    match name {
        "extent" => drop(store.extent(&here, None).await.expect(name)),
        "outline_after" => drop(store.outline_after(&here, 100, 50).await.expect(name)),
        "postings" => {
            let terms = ["turn", "number", "77"].map(str::to_owned);
            drop(store.postings(&here, &terms).await.expect(name));
        }
        "nearest" => {
            let query = vectors("turn number").sentence;
            // Of more, where a space fills a partition of short rows, to read all of that is right.
            let among = (0..10).collect();
            let near = store.nearest(&here, None, &query, &among, 20);
            drop(near.await.expect(name));
        }
        "passages" => {
            let numbers: Vec<u32> = (0..64).map(|n| n * 29).collect();
            drop(store.passages(&here, None, &numbers).await.expect(name));
        }
        "head" => drop(store.head(&here).await.expect(name)),
        "changes_after" => drop(store.changes_after(&here, 100, 50).await.expect(name)),
        "token_vectors" => {
            let passages: Vec<u32> = (0..64).map(|n| n * 29).collect();
            let vectors = store.token_vectors(&here, None, &passages);
            drop(vectors.await.expect(name));
        }
        "with_metadata" => {
            let labels = [("n".to_owned(), "3".to_owned())];
            drop(store.with_metadata(&here, &labels).await.expect(name));
        }
        "turns" => drop(store.turns(&here, &ids).await.expect(name)),
        "known" => drop(store.known(&here, &ids).await.expect(name)),
        "batch" => {
            let id = batch(&here, 20..40).batch.id;
            drop(store.batch(&here, id).await.expect(name));
        }
        "history" => drop(store.history(&here, ids[0]).await.expect(name)),
        "list" => {
            let first = Ledger::list(store, &here, &everything, 20, None)
                .await
                .expect(name);
            let next = first.next.as_ref();
            drop(
                Ledger::list(store, &here, &everything, 20, next)
                    .await
                    .expect(name),
            );
        }
        "list by turn" => drop(
            Ledger::list(store, &here, &by_turn, 20, None)
                .await
                .expect(name),
        ),
        "list_accepted" => drop(
            store
                .list_accepted(&here, &everything, 20, None)
                .await
                .expect(name),
        ),
        "without_vectors" => {
            let waiting = store.without_vectors(&model, 10).await.expect(name);
            assert_eq!(waiting.len(), 10);
            let Some(turn) = waiting.first().filter(|_| round == 9) else {
                return;
            };
            let vectors = turn.ranges.iter().map(|_| vectors("x")).collect();
            let made = [TextVectors::of_turn(turn.turn.accepted.id, vectors)];
            let attached = store.attach_vectors(&turn.scope, &model, &made);
            attached.await.expect(name);
        }
        "locale and sessions" => {
            drop(store.locale(&here).await.expect(name));
            drop(store.sessions(&here, 10, None).await.expect(name));
        }
        "commit" => {
            let first = TURNS + round * 10;
            let mut new = batch(&here, first..first + 10);
            new.batch.turns[5] = edit(
                &told(&here, round * 4 + 3),
                &format!("edit {round}"),
                "anew",
            );
            // Before others that are there.
            new.acceptance = 500;
            drop(store.commit(vec![new]).await.expect(name));
        }
        "remove" => {
            let erasure = PostgresErasure::new(store.clone(), Arc::new(NothingWaits));
            drop(erasure.remove(&here, &by_turn).await.expect(name));
        }
        _ if knowledge::CALLS.contains(&name) => knowledge::call(store, name, round).await,
        _ if prompts::CALLS.contains(&name) => prompts::call(store, name, round).await,
        _ => access::call(store, name, round).await,
    }
}

/// How often each table was scanned as a whole. Other connections end first: they report when they do.
async fn scans(administrator: &mut PgConnection) -> BTreeMap<String, i64> {
    administrator
        .execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )
        .await
        .expect("terminate");
    let rows = administrator
        .fetch_all(
            "SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'memfleet'",
        )
        .await
        .expect("statistics");
    let scans = rows.iter().map(|row| (row.get(0), row.get(1)));
    scans.collect()
}

#[tokio::test]
async fn no_call_scans_a_whole_table() {
    let database = Database::migrated().await;
    let store = database.store().await;
    fill(&store).await;
    access::fill(&store).await;
    knowledge::fill(&store).await;
    prompts::fill(&store).await;
    let mut administrator = database.connect().await;
    // By a connection that ends, and with it what it scanned.
    let mut owner = database.connect().await;
    let index = owner.execute("SELECT memfleet.index_vectors(4)").await;
    index.expect("an index");
    owner.close().await.expect("close");
    administrator
        .execute("VACUUM ANALYZE")
        .await
        .expect("analyze");
    let mut scanning = Vec::new();
    let calls = CALLS.into_iter().chain(access::CALLS);
    for name in calls.chain(knowledge::CALLS).chain(prompts::CALLS) {
        let before = scans(&mut administrator).await;
        let store = database.store().await;
        // The server plans a statement anew five times, and then once for any values.
        for round in 0..10 {
            call(&store, name, round).await;
        }
        store.close().await;
        for (table, count) in scans(&mut administrator).await {
            let more = count - before[&table];
            // Receipts of the whole space are looked through: half of the table here.
            let looks_through = ["remove", "forget", "retention", "forget a turn of prompts"]
                .contains(&name)
                && table == "batches";
            // The turns of a space are counted by its sessions: a third of the table here.
            let adds_up = name == "retention" && table == "sessions";
            let is_right = table == "_sqlx_migrations" || looks_through || adds_up;
            if more > 0 && !is_right {
                scanning.push(format!("{name} scanned {table} {more} times"));
            }
        }
    }
    assert!(scanning.is_empty(), "{scanning:#?}");
}
