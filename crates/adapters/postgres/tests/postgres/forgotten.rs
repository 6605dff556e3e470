//! No word that only forgotten turns said is left in any table, whichever tables there are.

use std::collections::BTreeSet;
use std::sync::Arc;

use memfleet_domain::ids::{ChangeId, ExchangeName, InjectionId, TurnId};
use memfleet_domain::ingestion::TurnState;
use memfleet_domain::turn::{AcceptedTurn, Media};
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact, fragment};
use memfleet_ports::conformance::samples::{
    batch, home, indexed, instant, passages, session, speaker, turn,
};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::exchanges::{Entry, Exchange, Exchanges};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::injections::Injection;
use memfleet_ports::knowledge::{Knowledge, Revision, Staging, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{PostgresErasure, PostgresStore};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::database::Database;

/// A turn whose words are said by no other, and which.
struct Marked {
    turn: AcceptedTurn,
    words: Vec<String>,
}

fn marked(random: &mut StdRng, number: u32) -> Marked {
    let words: Vec<String> = (0..10)
        .map(|_| {
            (0..12)
                .map(|_| char::from(random.random_range(b'a'..=b'z')))
                .collect()
        })
        .collect();
    let [by, key, value, caption, rest @ ..] = &words[..] else {
        unreachable!("there are ten")
    };
    let mut turn = turn(&number.to_string(), &rest.join(" "));
    turn.speaker = speaker(by);
    turn.metadata = [(key.clone(), value.clone())].into();
    turn.content.media = vec![Media {
        uri: format!("https://example.org/{caption}"),
        mime_type: String::new(),
        caption: caption.clone(),
    }];
    Marked { turn, words }
}

/// Everything that a store keeps of a turn besides itself; its fact takes words from the turn before it, and ends that one's.
async fn derive(store: &PostgresStore, before: Option<&Marked>, marked: &Marked) {
    let told = |marked: &Marked, number: usize| {
        let words = &marked.words;
        let mut fact = fact(&marked.turn, &words[4], &words[number], instant(10));
        fact.change = ChangeId::of("test", &[words[number].as_bytes()]);
        fact
    };
    let revision = |derivation| Revision {
        derivation,
        passage: passages(&marked.words[6..].join(" ")).pop(),
    };
    let mut own = told(marked, 5);
    let mut work = Work::default();
    if let Some(before) = before {
        own.turns.push(before.turn.id);
        let older = told(before, 5);
        work.found.push(conflict(&older, &own));
        work.rewrites.push(closing(&older, &own, 30));
    }
    work.rewrites.insert(0, deriving(&[&own]));
    let mut bound = deriving(&[&fragment(&marked.turn, own.id)]);
    bound.change.id = ChangeId::of("bound", &[marked.turn.id.as_bytes()]);
    bound.revisions[0].derivation.change = bound.change.id;
    work.rewrites.push(bound);
    work.staging = Staging {
        new: vec![revision(told(marked, 7))],
        confirmed: vec![own.id],
    };
    store.apply(&home(), work).await.expect("apply");
}

async fn prompt(store: &PostgresStore, number: u32, Marked { turn, words }: &Marked) {
    let turns = vec![(home().space, turn.id)];
    let name = ExchangeName::new(number.to_string()).expect("a name");
    let exchange = Exchange {
        session: session("s1"),
        name: name.clone(),
        state: words.join(" "),
        tally: String::new(),
        tokens: 1,
        turns: turns.clone(),
        updated_at: instant(1),
        expires_at: instant(1_000),
    };
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    let injection = Injection {
        id: InjectionId::from_bytes(id),
        at: instant(1),
        caller: "somebody".into(),
        request_id: "r".into(),
        session: None,
        exchange: Some(name),
        spaces: vec![home().space],
        decision: "INJECTED".into(),
        block: Some(words.join("\n")),
        block_hash: Some([0; 32]),
        record: "{}".into(),
        turns,
        expires_at: None,
        forgotten: false,
    };
    let entry = Entry {
        injection: Some(&injection),
        ..Entry::of(&exchange, None)
    };
    let kept = Exchanges::keep(store, &home().tenant, entry).await;
    kept.expect("keep");
}

/// Where one of these words is, as text or as bytes, in all rows of all tables.
async fn left(connection: &mut PgConnection, words: &[&Marked]) -> BTreeSet<String> {
    let names = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'memfleet'";
    let tables: Vec<String> = sqlx::query_scalar(names)
        .fetch_all(&mut *connection)
        .await
        .expect("tables");
    let words: Vec<&String> = words.iter().flat_map(|marked| &marked.words).collect();
    let hex = |word: &str| {
        let digits: Vec<_> = word.bytes().map(|byte| format!("{byte:02x}")).collect();
        digits.concat()
    };
    let mut left = BTreeSet::new();
    for table in tables {
        let rows = AssertSqlSafe(format!("SELECT t::text FROM memfleet.{table} t"));
        let rows: Vec<String> = sqlx::query_scalar(rows)
            .fetch_all(&mut *connection)
            .await
            .expect("rows");
        for row in rows {
            let row = row.to_lowercase();
            let is_there = |word: &&&String| row.contains(**word) || row.contains(&hex(word));
            left.extend(
                words
                    .iter()
                    .filter(is_there)
                    .map(|word| format!("{table}: {word}")),
            );
        }
    }
    left
}

/// Generated spaces: one, or as many as `FORGET_SEEDS` says.
fn seeds() -> u64 {
    std::env::var("FORGET_SEEDS").map_or(1, |seeds| seeds.parse().expect("a number"))
}

#[tokio::test]
async fn no_word_of_a_forgotten_turn_is_left_in_any_table() {
    for seed in 0..seeds() {
        forgets_one_by_one(seed).await;
    }
}

async fn forgets_one_by_one(seed: u64) {
    let database = Database::migrated().await;
    let store = database.store().await;
    let mut connection = database.connect().await;
    let mut random = StdRng::seed_from_u64(seed);
    let mut told: Vec<Marked> = (0..12).map(|number| marked(&mut random, number)).collect();
    let turns = told.iter().map(|marked| marked.turn.clone()).collect();
    store
        .commit(vec![indexed(batch("k", turns), 1)])
        .await
        .expect("commit");
    store.begin_rebuild(&home()).await.expect("a rebuild");
    for (number, marked) in told.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| &told[before]);
        derive(&store, before, marked).await;
        prompt(&store, number as u32, marked).await;
    }
    let all: Vec<_> = told.iter().collect();
    let tables = left(&mut connection, &all).await;
    let tables: BTreeSet<_> = tables
        .iter()
        .filter_map(|found| found.split(':').next())
        .collect();
    // Partitions have names of their own.
    for table in [
        "turns",
        "passages",
        "derivations",
        "staged",
        "exchanges",
        "injections",
    ] {
        assert!(
            tables.iter().any(|name| name.starts_with(table)),
            "{table} is not in {tables:?}"
        );
    }
    let erasure = PostgresErasure::new(store.clone(), Arc::new(NothingWaits));
    let mut gone = Vec::new();
    while !told.is_empty() {
        let marked = told.swap_remove(random.random_range(0..told.len()));
        let filter = TurnFilter {
            turns: vec![marked.turn.id],
            ..TurnFilter::default()
        };
        erasure.remove(&home(), &filter).await.expect("remove");
        gone.push(marked);
        let gone: Vec<_> = gone.iter().collect();
        let left = left(&mut connection, &gone).await;
        assert_eq!(left, BTreeSet::new(), "seed {seed}");
    }
}

/// A space whose batches hold three turns each, and all of its turns.
async fn batches_of_three(store: &PostgresStore) -> Vec<Vec<AcceptedTurn>> {
    let told = (0..10).map(|number| {
        let name = |part| format!("{number}.{part}");
        let turns = (0..3).map(|part| turn(&name(part), &name(part)));
        turns.collect::<Vec<_>>()
    });
    let told: Vec<_> = told.collect();
    for (at, turns) in told.iter().enumerate() {
        let batch = indexed(batch(&at.to_string(), turns.clone()), at as u64 + 1);
        store.commit(vec![batch]).await.expect("commit");
    }
    told
}

async fn forget(store: &PostgresStore, turns: Vec<TurnId>) {
    let erasure = PostgresErasure::new(store.clone(), Arc::new(NothingWaits));
    let filter = TurnFilter {
        turns,
        ..TurnFilter::default()
    };
    erasure.remove(&home(), &filter).await.expect("remove");
}

/// For each turn of a batch, whether it is forgotten.
async fn are_forgotten(store: &PostgresStore, name: &str) -> Vec<bool> {
    let status = store.batch(&home(), batch(name, vec![]).id).await;
    let receipts = status.expect("batch").expect("known").turns;
    let states = receipts.iter().map(|receipt| receipt.state);
    states.map(|state| state == TurnState::Forgotten).collect()
}

#[tokio::test]
async fn a_forget_of_few_turns_reads_the_receipts_of_their_batches_alone() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let told = batches_of_three(&store).await;
    let damaged = batch("7", vec![]).id;
    sqlx::query("UPDATE memfleet.batches SET receipts = 'damaged' WHERE id = $1")
        .bind(uuid::Uuid::from_bytes(*damaged.as_bytes()))
        .execute(&mut database.connect().await)
        .await
        .expect("damage");
    forget(&store, vec![told[2][1].id, told[4][0].id]).await;
    assert_eq!(are_forgotten(&store, "2").await, [false, true, false]);
    assert_eq!(are_forgotten(&store, "4").await, [true, false, false]);
    assert_eq!(are_forgotten(&store, "5").await, [false; 3]);
}

#[tokio::test]
async fn a_forget_of_many_turns_is_told_by_each_of_their_batches() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let told = batches_of_three(&store).await;
    let gone = told[1..]
        .iter()
        .flat_map(|turns| [turns[0].id, turns[2].id]);
    forget(&store, gone.collect()).await;
    assert_eq!(are_forgotten(&store, "0").await, [false; 3]);
    for number in 1..10 {
        let name = number.to_string();
        assert_eq!(are_forgotten(&store, &name).await, [true, false, true]);
    }
}
