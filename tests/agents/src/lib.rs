//! The agents together on a real store, without a process around them: what is said goes in, what is known comes out.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::missing_panics_doc, reason = "tests")]

use std::sync::Arc;
use std::sync::Mutex;

use memfleet_consolidator::{LocalConsolidator, Options, Plotter, Rebinder, Relater, Replotter};
use memfleet_constructor::{
    Deriver, Extractor, ModelExtractor, NoExtractor, Rebuilder, Refiner, Reteller, Semanticizer,
    StatementExtractor, Summariser, TopicFilter,
};
use memfleet_domain::derivation::{Conflict, Derivation, Kind};
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::{AsOf, Clock, Timestamp};
use memfleet_domain::turn::AcceptedTurn;
use memfleet_judge::{Comparer, LocalJudge};
use memfleet_ports::conformance::samples::{batch, edit, home, indexed, instant, turn_in};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::events::Events;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Progress, Question, Stage, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::testing::{SentenceReader, SubjectEmbedder, WordEmbedder};
use memfleet_prompts::Adviser;
use memfleet_refresher::{LocalRefresher, Reviewer};
use memfleet_retrieval::{ModelCalibrations, Weights};
use memfleet_retriever::LocalRetriever;
use memfleet_sqlite::SqliteStore;
use memfleet_workers::{Agent, Follower, Heard, Indexer};

/// A clock that tests move.
#[derive(Debug)]
pub struct Hands(Mutex<Timestamp>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A memory with its agents.
pub struct Memory {
    /// The store.
    pub store: Arc<SqliteStore>,
    /// The refresher, for corrections.
    pub refresher: LocalRefresher,
    deriver: Deriver,
    judge: LocalJudge,
    consolidator: Arc<LocalConsolidator>,
    events: Events,
    clock: Arc<Hands>,
    heard: Heard,
    said: Mutex<u64>,
    _directory: tempfile::TempDir,
}

impl Memory {
    /// An empty one, with statements by a reader that goes by sentences.
    pub async fn new() -> Self {
        let reader = Arc::new(SentenceReader::default());
        Self::with(Arc::new(StatementExtractor { reader })).await
    }

    /// An empty one in which only a language model finds facts.
    pub async fn without_reader() -> Self {
        Self::with(Arc::new(NoExtractor)).await
    }

    async fn with(extractor: Arc<dyn Extractor>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.db");
        let store = SqliteStore::open(path, memfleet_sqlite::Options::default()).await;
        let store = Arc::new(store.unwrap());
        let events = Events::default();
        let clock = Arc::new(Hands(Mutex::new(instant(0))));
        let embedder = Arc::new(WordEmbedder::default());
        let indexer = Indexer {
            spaces: store.clone(),
            embedder: embedder.clone(),
        };
        let retriever = LocalRetriever::new(
            store.clone(),
            None,
            store.clone(),
            store.clone(),
            embedder,
            memfleet_retriever::Options {
                index_cache: 64 << 20,
                token_cache: 16 << 20,
                answer_bytes: memfleet_retriever::MAX_ANSWER_BYTES,
                calibrations: ModelCalibrations::of_every_model(Weights::shipped()),
            },
        );
        let subjects = Arc::new(SubjectEmbedder::default());
        let topics = TopicFilter::new(store.clone(), subjects, Vec::new());
        Self {
            deriver: Deriver {
                ledger: store.clone(),
                feed: store.clone(),
                knowledge: store.clone(),
                indexer: indexer.clone(),
                extractor,
                topics: Arc::new(topics),
                events: events.clone(),
                clock: clock.clone(),
            },
            judge: LocalJudge {
                knowledge: store.clone(),
                feed: store.clone(),
                ledger: store.clone(),
                retriever: Arc::new(retriever),
                reader: Arc::new(SentenceReader::default()),
                events: events.clone(),
                clock: clock.clone(),
            },
            consolidator: Arc::new(LocalConsolidator {
                ledger: store.clone(),
                feed: store.clone(),
                knowledge: store.clone(),
                indexer: indexer.clone(),
                events: events.clone(),
                clock: clock.clone(),
                shelf: Arc::default(),
            }),
            refresher: LocalRefresher {
                erasure: store.clone(),
                queue: store.clone(),
                spaces: store.clone(),
                knowledge: store.clone(),
                feed: store.clone(),
                indexer,
                events: events.clone(),
                clock: clock.clone(),
            },
            store,
            events,
            clock,
            heard: Heard::default(),
            said: Mutex::default(),
            _directory: directory,
        }
    }

    /// Ada says something on a day, and the agents do their work; the turn.
    pub async fn say(&self, day: i64, text: &str) -> AcceptedTurn {
        self.say_in(day, day, text).await
    }

    /// The same in the session of another day.
    pub async fn say_in(&self, session: i64, day: i64, text: &str) -> AcceptedTurn {
        let turn = self.store_turn(session, day, text).await;
        self.settle().await;
        turn
    }

    /// Ada says something on a day, and no agent works.
    pub async fn say_alone(&self, day: i64, text: &str) -> AcceptedTurn {
        self.store_turn(day, day, text).await
    }

    async fn store_turn(&self, session: i64, day: i64, text: &str) -> AcceptedTurn {
        let number = {
            let mut said = self.said.lock().unwrap();
            *said += 1;
            *said
        };
        let session = format!("day {session}");
        let mut turn = turn_in(&home(), &session, &number.to_string(), text);
        turn.event_time = Some(instant(day * 86_400));
        turn.recorded_at = instant(day * 86_400 + 60);
        *self.clock.0.lock().unwrap() = instant(day * 86_400 + 120);
        let batch = batch(&number.to_string(), vec![turn.clone()]);
        self.store
            .commit(vec![indexed(batch, number)])
            .await
            .unwrap();
        turn
    }

    /// Ada takes back what she said, on a day; the agents do their work.
    pub async fn replace(&self, day: i64, told: &AcceptedTurn, text: &str) {
        let number = {
            let mut said = self.said.lock().unwrap();
            *said += 1;
            *said
        };
        let mut turn = edit(told, &number.to_string(), text);
        turn.event_time = Some(instant(day * 86_400));
        turn.recorded_at = instant(day * 86_400 + 60);
        *self.clock.0.lock().unwrap() = instant(day * 86_400 + 120);
        let batch = batch(&number.to_string(), vec![turn]);
        let committed = self.store.commit(vec![indexed(batch, number)]).await;
        committed.unwrap();
        self.settle().await;
    }

    /// Ada says several things on a day, and the agents do their work; the turns.
    pub async fn say_all(&self, day: i64, texts: &[String]) -> Vec<AcceptedTurn> {
        let mut said = Vec::with_capacity(texts.len());
        for (place, text) in texts.iter().enumerate() {
            let name = format!("{day}-{place}");
            let mut turn = turn_in(&home(), &format!("day {day}"), &name, text);
            turn.event_time = Some(instant(day * 86_400 + place as i64));
            turn.recorded_at = instant(day * 86_400 + 3_600);
            said.push(turn);
        }
        *self.clock.0.lock().unwrap() = instant(day * 86_400 + 7_200);
        let number = {
            let mut said = self.said.lock().unwrap();
            *said += 1;
            *said
        };
        let batch = batch(&number.to_string(), said.clone());
        let committed = self.store.commit(vec![indexed(batch, number)]).await;
        committed.unwrap();
        self.settle().await;
        said
    }

    /// These turns are forgotten.
    pub async fn forget(&self, turns: &[TurnId]) {
        let filter = TurnFilter {
            turns: turns.to_vec(),
            ..TurnFilter::default()
        };
        self.store.remove(&home(), &filter).await.unwrap();
    }

    /// A model does once more what a stage has done, as far as it can be asked.
    pub async fn advise(&self, stage: Stage, adviser: Adviser) {
        self.follow(stage, &*self.advised(stage, adviser)).await;
    }

    /// The same from the beginning, as by one that was cut off before it could note how far it came.
    pub async fn advise_anew(&self, stage: Stage, adviser: Adviser) {
        let now = self.clock.now();
        self.store.claim(&home(), stage, now, now).await.unwrap();
        let agent = self.advised(stage, adviser);
        agent.work(&home(), 0).await.unwrap();
    }

    fn advised(&self, stage: Stage, adviser: Adviser) -> Box<dyn Agent> {
        match stage {
            Stage::Refine => Box::new(Refiner {
                deriver: Arc::new(self.deriver.clone()),
                model: Arc::new(ModelExtractor::new(adviser)),
            }),
            Stage::Retell => Box::new(Reteller {
                deriver: Arc::new(self.deriver.clone()),
                adviser,
                heard: self.heard.clone(),
            }),
            Stage::Rebind => Box::new(Rebinder {
                consolidator: self.consolidator.clone(),
                adviser,
                heard: self.heard.clone(),
            }),
            Stage::Replot => Box::new(Replotter {
                consolidator: self.consolidator.clone(),
                fragments: Options::default().fragments,
                adviser,
                heard: self.heard.clone(),
            }),
            Stage::Semanticize => Box::new(Semanticizer {
                deriver: Arc::new(self.deriver.clone()),
                adviser,
                heard: self.heard.clone(),
            }),
            Stage::Compare => Box::new(Comparer {
                judge: self.judge.clone(),
                adviser,
            }),
            Stage::Review => Box::new(Reviewer {
                refresher: self.refresher.clone(),
                ledger: self.store.clone(),
                adviser,
            }),
            _ => panic!("{} asks no model", stage.name()),
        }
    }

    /// A stage is to look at everything once more.
    pub async fn rewind(&self, stage: Stage) {
        let position = self.store.position(&home(), stage).await.unwrap();
        let from = position.unwrap().reached;
        let work = Work {
            progress: Some(Progress { stage, from, to: 0 }),
            ..Work::default()
        };
        self.store.apply(&home(), work).await.unwrap();
        assert!(self.is_behind(stage).await);
    }

    /// A process begins anew: it remembers nothing that is not stored.
    pub fn restart(&mut self) {
        self.heard = Heard::default();
    }

    /// Whether a stage has work left.
    pub async fn is_behind(&self, stage: Stage) -> bool {
        !self.store.pending(stage, 1).await.unwrap().is_empty()
    }

    /// The clock of the agents.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// The agents do what there is to do.
    pub async fn settle(&self) {
        for _ in 0..2 {
            self.follow(Stage::Derive, &self.deriver).await;
            self.follow(Stage::Judge, &self.judge).await;
            self.follow(Stage::Settle, &self.refresher).await;
        }
    }

    /// The constructor does what there is to do.
    pub async fn derive_alone(&self) {
        self.follow(Stage::Derive, &self.deriver).await;
    }

    /// The refresher does what there is to do.
    pub async fn settle_alone(&self) {
        self.follow(Stage::Settle, &self.refresher).await;
    }

    /// Facts are derived once more, as statements.
    pub async fn rebuild_as_statements(&self) {
        self.store.begin_rebuild(&home()).await.unwrap();
        let reader = Arc::new(SentenceReader::default());
        let deriver = Deriver {
            extractor: Arc::new(StatementExtractor { reader }),
            ..self.deriver.clone()
        };
        self.follow(Stage::Rebuild, &Rebuilder(Arc::new(deriver)))
            .await;
    }

    /// The rules cut sessions into episodes.
    pub async fn cut(&self) {
        let summariser = Summariser(Arc::new(self.deriver.clone()));
        self.follow(Stage::Episodes, &summariser).await;
    }

    /// The rules bind what episodes tell to narratives, and put together those that nothing was said of for so many turns.
    pub async fn bind(&self, span: u32) {
        self.follow(Stage::Bind, &*self.consolidator).await;
        let options = Options {
            span,
            ..Options::default()
        };
        let plotter = Plotter::new(self.consolidator.clone(), options);
        self.follow(Stage::Consolidate, &plotter).await;
    }

    /// The semantic graph is brought to where the facts are.
    pub async fn relate(&self) {
        let relater = Relater {
            consolidator: self.consolidator.clone(),
            graph: self.store.clone(),
        };
        self.follow(Stage::Relate, &relater).await;
    }

    async fn follow(&self, stage: Stage, agent: &dyn Agent) {
        let follower = Follower {
            knowledge: self.store.clone(),
            stage,
            events: self.events.clone(),
            clock: self.clock.clone(),
        };
        follower.sweep(agent).await;
    }

    /// What held on a day, as it is known now: sentences.
    pub async fn known(&self, day: i64) -> Vec<String> {
        let happened_by = Some(instant(day * 86_400 + 43_200));
        let facts = self
            .facts(AsOf {
                happened_by,
                known_at: None,
            })
            .await;
        let stated = facts.iter().filter_map(Derivation::fact);
        let stated = stated.filter(|fact| !fact.is_negated());
        stated.map(|fact| fact.text.clone()).collect()
    }

    /// Facts as of an instant.
    pub async fn facts(&self, as_of: AsOf) -> Vec<Derivation> {
        self.derived(Kind::Fact, as_of).await
    }

    /// Facts as they are now.
    pub async fn facts_now(&self) -> Vec<Derivation> {
        self.facts(AsOf::default()).await
    }

    /// Episodes as they are now.
    pub async fn episodes(&self) -> Vec<Derivation> {
        self.derived(Kind::Episode, AsOf::default()).await
    }

    /// Fragments as they are now.
    pub async fn fragments(&self) -> Vec<Derivation> {
        self.derived(Kind::Fragment, AsOf::default()).await
    }

    /// Narratives as they are now.
    pub async fn narratives(&self) -> Vec<Derivation> {
        self.derived(Kind::Narrative, AsOf::default()).await
    }

    async fn derived(&self, kind: Kind, as_of: AsOf) -> Vec<Derivation> {
        let question = Question {
            kind: Some(kind),
            as_of,
            ..Question::default()
        };
        let page = self
            .store
            .derivations(&home(), &question, 1_000, None)
            .await;
        page.unwrap().items
    }

    /// All conflicts.
    pub async fn conflicts(&self) -> Vec<Conflict> {
        let page = self.store.conflicts(&home(), &[], 1_000, None).await;
        page.unwrap().items
    }
}

/// The fact with this text.
pub fn saying<'f>(facts: &'f [Derivation], text: &str) -> &'f Derivation {
    let says = |fact: &&Derivation| fact.fact().is_some_and(|draft| draft.text == text);
    facts.iter().find(says).expect("a fact has this text")
}
