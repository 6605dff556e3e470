//! A node's store and everything that works on it by rules, and a search for words in all that it keeps.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memfleet_consolidator::{LocalConsolidator, Options, Plotter, Relater};
use memfleet_constructor::{Deriver, StatementExtractor, Summariser, TopicFilter};
use memfleet_domain::ids::{ExchangeName, InjectionId};
use memfleet_domain::time::FixedClock;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_judge::LocalJudge;
use memfleet_ports::audit::{AuditKind, AuditLog, AuditRecord, AuditedTurn};
use memfleet_ports::conformance::samples::{batch, conversation, home, indexed, instant, session};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::events::Events;
use memfleet_ports::exchanges::{Entry, Exchange, Exchanges};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::injections::Injection;
use memfleet_ports::knowledge::{Knowledge, Question, Stage};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::{Bounds, DeadLetter, IngestQueue};
use memfleet_ports::testing::{EmptyRetriever, SentenceReader, WordEmbedder};
use memfleet_refresher::LocalRefresher;
use memfleet_sqlite::SqliteStore;
use memfleet_workers::{Agent, Follower, Indexer};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use crate::talk::Talk;

pub struct Bench {
    store: Arc<SqliteStore>,
    agents: Vec<(Stage, Arc<dyn Agent>)>,
    number: AtomicU64,
    directory: tempfile::TempDir,
}

impl Bench {
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.db");
        let store = SqliteStore::open(path, memfleet_sqlite::Options::default()).await;
        let store = Arc::new(store.unwrap());
        let indexer = Indexer {
            spaces: store.clone(),
            embedder: Arc::new(WordEmbedder::default()),
        };
        let (events, clock) = (Events::default(), Arc::new(FixedClock(instant(10_000))));
        let topics = TopicFilter::new(store.clone(), indexer.embedder.clone(), Vec::new());
        let deriver = Deriver {
            ledger: store.clone(),
            feed: store.clone(),
            knowledge: store.clone(),
            indexer: indexer.clone(),
            extractor: Arc::new(StatementExtractor {
                reader: Arc::new(SentenceReader::default()),
            }),
            topics: Arc::new(topics),
            events: events.clone(),
            clock: clock.clone(),
        };
        let judge = LocalJudge {
            knowledge: store.clone(),
            feed: store.clone(),
            ledger: store.clone(),
            retriever: Arc::new(EmptyRetriever),
            reader: Arc::new(SentenceReader::default()),
            events: events.clone(),
            clock: clock.clone(),
        };
        let refresher = LocalRefresher {
            erasure: store.clone(),
            queue: store.clone(),
            spaces: store.clone(),
            knowledge: store.clone(),
            feed: store.clone(),
            indexer: indexer.clone(),
            events: events.clone(),
            clock: clock.clone(),
        };
        let consolidator = LocalConsolidator {
            ledger: store.clone(),
            feed: store.clone(),
            knowledge: store.clone(),
            indexer,
            events,
            clock,
            shelf: Arc::default(),
        };
        let plotter = Plotter::new(
            Arc::new(consolidator.clone()),
            Options {
                span: 4,
                ..Options::default()
            },
        );
        let relater = Relater {
            consolidator: Arc::new(consolidator.clone()),
            graph: store.clone(),
        };
        let agents: Vec<(Stage, Arc<dyn Agent>)> = vec![
            (Stage::Derive, Arc::new(deriver.clone())),
            (Stage::Episodes, Arc::new(Summariser(Arc::new(deriver)))),
            (Stage::Bind, Arc::new(consolidator)),
            (Stage::Consolidate, Arc::new(plotter)),
            (Stage::Judge, Arc::new(judge)),
            (Stage::Settle, Arc::new(refresher)),
            (Stage::Relate, Arc::new(relater)),
        ];
        Self {
            store,
            agents,
            number: AtomicU64::new(1),
            directory,
        }
    }

    fn next(&self) -> u64 {
        self.number.fetch_add(1, Ordering::SeqCst)
    }

    /// Stores turns, a batch each.
    pub async fn store(&self, turns: &[AcceptedTurn]) {
        for turn in turns {
            let number = self.next();
            let told = batch(&number.to_string(), vec![turn.clone()]);
            self.store
                .commit(vec![indexed(told, number)])
                .await
                .unwrap();
        }
    }

    /// All stages do what there is to do.
    pub async fn work(&self) {
        for _ in 0..3 {
            for (stage, agent) in &self.agents {
                let follower = Follower {
                    knowledge: self.store.clone(),
                    stage: *stage,
                    events: Events::default(),
                    clock: Arc::new(FixedClock(instant(10_000))),
                };
                while follower.sweep(&**agent).await {}
            }
        }
    }

    /// Stores what a prompt with a turn leaves: an exchange, a conversation, an injection and a record of it.
    pub async fn prompt(&self, turn: &AcceptedTurn) {
        let number = self.next();
        let scope = home();
        let words = format!("{}: {}", turn.speaker, turn.content.text);
        let turns = vec![(scope.space.clone(), turn.id)];
        let name = ExchangeName::new(number.to_string()).unwrap();
        let exchange = Exchange {
            session: session("prompt"),
            name: name.clone(),
            state: words.clone(),
            tally: String::new(),
            tokens: 1,
            turns: turns.clone(),
            updated_at: instant(1),
            expires_at: instant(100_000),
        };
        let heard = conversation(&scope.space, &format!("c {number}"), 1);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let injection = Injection {
            id: InjectionId::from_bytes(id),
            at: instant(1),
            caller: "somebody".into(),
            request_id: "r".into(),
            session: None,
            exchange: Some(name),
            spaces: vec![scope.space.clone()],
            decision: "INJECTED".into(),
            block: Some(words),
            block_hash: Some([0; 32]),
            record: "{}".into(),
            turns,
            expires_at: None,
            forgotten: false,
        };
        let entry = Entry {
            conversation: Some(&heard),
            injection: Some(&injection),
            ..Entry::of(&exchange, None)
        };
        Exchanges::keep(&*self.store, &scope.tenant, entry)
            .await
            .unwrap();
        let record = AuditRecord {
            at: instant(1),
            tenant: scope.tenant,
            kind: AuditKind::Injected,
            caller: "somebody".into(),
            request_id: "r".into(),
            space: Some(scope.space.clone()),
            key: None,
            turns: vec![AuditedTurn {
                space: scope.space,
                session: Some(turn.session.clone()),
                turn: turn.id,
            }],
            detail: std::collections::BTreeMap::new(),
        };
        AuditLog::append(&*self.store, &[record]).await.unwrap();
    }

    /// Turns that wait in the queue, and one that could not be applied.
    pub async fn queue(&self, talk: &mut Talk, turns: &mut Vec<AcceptedTurn>) {
        for _ in 0..3 {
            let waiting = talk.turns(&[session("s1"), session("s3")], 2);
            let told = batch(&format!("waiting {}", self.next()), waiting.clone());
            self.store
                .publish(&told, instant(1), Bounds::NONE)
                .await
                .unwrap();
            turns.extend(waiting);
        }
        for delivery in self.store.take(1).await.unwrap() {
            let letter = DeadLetter {
                acceptance: delivery.acceptance,
                batch: delivery.batch,
                reason: "POISON: x".into(),
                failed_at: instant(1),
                attempts: 5,
            };
            self.store.dead_letter(&letter).await.unwrap();
        }
    }

    pub async fn facts(&self) -> usize {
        let all = self
            .store
            .all_derivations(&home(), &Question::default())
            .await;
        all.unwrap().len()
    }

    /// Forgets what matches, stored or waiting.
    pub async fn forget(&self, filter: &TurnFilter) {
        self.store.erase(&home(), filter).await.unwrap();
    }

    /// Where one of these words is: a column of a table, each with the word, or a file.
    pub async fn left(&self, words: &BTreeSet<String>) -> Vec<String> {
        let path = self.directory.path().join("memory.db");
        let url = format!("sqlite:{}", path.display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let tables: Vec<(String, String)> = sqlx::query_as(
            "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type = 'table'",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        let mut left = Vec::new();
        for (table, column) in tables {
            let query = format!(
                "SELECT CAST(\"{column}\" AS BLOB) FROM \"{table}\" WHERE \"{column}\" IS NOT NULL"
            );
            let rows = sqlx::query(AssertSqlSafe(query))
                .fetch_all(&mut connection)
                .await
                .unwrap();
            for row in rows {
                let bytes: Vec<u8> = row.get(0);
                left.extend(found(&bytes, words).map(|word| format!("{table}.{column}: {word}")));
            }
        }
        connection.close().await.unwrap();
        for entry in std::fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            left.extend(found(&bytes, words).map(|word| format!("{}: {word}", path.display())));
        }
        left
    }
}

/// Finds the words that are among these bytes, in either case.
fn found<'w>(bytes: &[u8], words: &'w BTreeSet<String>) -> impl Iterator<Item = &'w String> {
    const LENGTH: usize = 9;
    let low = bytes.to_ascii_lowercase();
    let there: HashSet<&[u8]> = low
        .windows(LENGTH)
        .filter(|window| window.ends_with(b"zqx"))
        .collect();
    let found: Vec<&String> = words
        .iter()
        .filter(|word| there.contains(word.as_bytes()))
        .collect();
    found.into_iter()
}
