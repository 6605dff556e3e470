//! A store, a constructor that cuts episodes, and a consolidator over both. What a turn is about stands in its vector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memfleet_consolidator::{LocalConsolidator, Mode, Options, Plotter};
use memfleet_constructor::{Deriver, StatementExtractor, Summariser, TopicFilter};
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};
use memfleet_domain::ids::{DerivationId, Speaker, TurnId};
use memfleet_domain::time::FixedClock;
use memfleet_domain::turn::{AcceptedTurn, Role};
use memfleet_ports::conformance::samples::{
    batch, home, indexed, instant, session, turn_in, vectors,
};
use memfleet_ports::context::Context;
use memfleet_ports::erasure::Erasure;
use memfleet_ports::events::Events;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Question, Stage};
use memfleet_ports::ledger::{Ledger, TextOwner, TextVectors};
use memfleet_ports::model_switch::{
    ModelSwitches, OrderGiver, SpaceComparison, SwitchGoal, SwitchOrder, SwitchStep,
};
use memfleet_ports::refresher::Refresher;
use memfleet_ports::testing::{SentenceReader, WordEmbedder};
use memfleet_refresher::LocalRefresher;
use memfleet_sqlite::SqliteStore;
use memfleet_workers::{Agent, Follower, Indexer};

/// What something is about.
#[derive(Debug, Clone, Copy)]
pub enum About {
    Garden,
    Boat,
    Choir,
    Nothing,
}

impl About {
    fn vector(self) -> Vec<i8> {
        match self {
            Self::Garden => vec![100, 0, 0, 0],
            Self::Boat => vec![0, 100, 0, 0],
            Self::Choir => vec![0, 0, 100, 0],
            Self::Nothing => vec![1, 1, 1, 100],
        }
    }

    /// The vector of another model, which has gardens where the first one has boats.
    fn second_vector(self) -> Vec<i8> {
        match self {
            Self::Garden => Self::Boat.vector(),
            Self::Boat => Self::Garden.vector(),
            other => other.vector(),
        }
    }
}

/// What a user says in a session, and a reply.
pub struct Said(pub &'static str, pub &'static str, pub About);

pub struct Bench {
    pub store: Arc<SqliteStore>,
    pub consolidator: LocalConsolidator,
    pub plotter: Plotter,
    summariser: Summariser,
    refresher: LocalRefresher,
    said: AtomicU64,
    /// The embedding space of what is said from now on, where it is another one than at first.
    second: Option<EmbeddingSpace>,
    _directory: tempfile::TempDir,
}

impl Bench {
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.db");
        let store = SqliteStore::open(path, memfleet_sqlite::Options::default()).await;
        let store = Arc::new(store.unwrap());
        let embedder = WordEmbedder::default();
        embedder.pull_second();
        let indexer = Indexer {
            spaces: store.clone(),
            embedder: Arc::new(embedder),
        };
        let (events, clock) = (Events::default(), Arc::new(FixedClock(instant(100))));
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
        Self {
            store,
            plotter: plotter(&consolidator, Mode::Momentum),
            consolidator,
            summariser: Summariser(Arc::new(deriver)),
            refresher,
            said: AtomicU64::new(0),
            second: None,
            _directory: directory,
        }
    }

    /// Stores what was said; the users' turns.
    pub async fn say(&self, all: impl IntoIterator<Item = Said>) -> Vec<TurnId> {
        self.store(all, None).await
    }

    /// Stores what somebody else than Ada said; the turn.
    pub async fn say_by(&self, speaker: &str, Said(session, text, about): Said) -> TurnId {
        let number = self.said.fetch_add(1, Ordering::SeqCst) + 1;
        let turn = AcceptedTurn {
            speaker: Speaker::new(speaker).unwrap(),
            event_time: Some(instant(number as i64)),
            ..turn_in(&home(), session, &format!("{number} said"), text)
        };
        let id = turn.id;
        self.commit(number, vec![turn], about).await;
        id
    }

    /// Stores what was said instead of a turn.
    pub async fn say_instead(&self, before: TurnId, said: Said) -> TurnId {
        self.store([said], Some(before)).await[0]
    }

    async fn store(
        &self,
        all: impl IntoIterator<Item = Said>,
        instead: Option<TurnId>,
    ) -> Vec<TurnId> {
        let mut asked = Vec::new();
        for Said(session, text, about) in all {
            let number = self.said.fetch_add(1, Ordering::SeqCst) + 1;
            let at = instant(number as i64);
            let question = AcceptedTurn {
                event_time: Some(at),
                ..turn_in(&home(), session, &format!("{number} asked"), text)
            };
            let reply = AcceptedTurn {
                role: Role::Assistant,
                event_time: Some(at),
                ..turn_in(
                    &home(),
                    session,
                    &format!("{number} replied"),
                    "Noted, all of it, thank you.",
                )
            };
            let question = match instead {
                Some(before) => AcceptedTurn {
                    replaces: Some(before),
                    ..question
                },
                None => question,
            };
            asked.push(question.id);
            self.commit(number, vec![question, reply], about).await;
        }
        asked
    }

    async fn commit(&self, number: u64, turns: Vec<AcceptedTurn>, about: About) {
        let batch = batch(&number.to_string(), turns);
        let mut indexed = indexed(batch, number);
        for passage in indexed.passages.iter_mut().flatten() {
            if let Some(vectors) = &mut passage.vectors {
                vectors.sentence = match self.second {
                    Some(_) => about.second_vector(),
                    None => about.vector(),
                };
            }
        }
        if let Some(second) = &self.second {
            indexed.embedding_space = Some(second.clone());
        }
        self.store.commit(vec![indexed]).await.unwrap();
    }

    /// Cuts and binds what there is; the fragments then.
    pub async fn bind(&self) -> Vec<Derivation> {
        self.sweep(Stage::Episodes, &self.summariser).await;
        self.sweep(Stage::Bind, &self.consolidator).await;
        self.of(Kind::Fragment).await
    }

    /// Binds what there is, and puts narratives together.
    pub async fn consolidate(&self) {
        self.bind().await;
        self.sweep(Stage::Consolidate, &self.plotter).await;
    }

    pub async fn sweep(&self, stage: Stage, agent: &dyn Agent) {
        let follower = Follower {
            knowledge: self.store.clone(),
            stage,
            events: Events::default(),
            clock: Arc::new(FixedClock(instant(100))),
        };
        while follower.sweep(agent).await {}
        assert_eq!(self.store.pending(stage, 9).await.unwrap(), []);
    }

    /// Searches use another model from now on; `about` tells the subject of a text.
    pub async fn change_model(&mut self, about: fn(&str) -> About) {
        let order = SwitchOrder {
            target: WordEmbedder::default().second().clone(),
            goal: SwitchGoal::Serve,
            drops: false,
            forced: false,
            every_language: false,
            giver: OrderGiver::Operator,
        };
        let (store, target) = (&*self.store, &order.target);
        store.set_order(&order).await.unwrap();
        self.step(&order, SwitchStep::Build).await;
        for turn in store.without_vectors(target, 100).await.unwrap() {
            let accepted = &turn.turn.accepted;
            let made = PassageVectors {
                sentence: about(&accepted.content.text).second_vector(),
                ..vectors(&accepted.content.text)
            };
            let made = vec![made; turn.ranges.len()];
            let made = [TextVectors::of_turn(accepted.id, made)];
            let attached = store.attach_vectors(&turn.scope, target, &made);
            attached.await.unwrap();
        }
        for it in store
            .derivations_without_vectors(target, 100)
            .await
            .unwrap()
        {
            let made = [TextVectors {
                owner: TextOwner::Derivation(it.derivation.id, it.derivation.version),
                vectors: vec![vectors("derived")],
            }];
            let attached = store.attach_vectors(&it.scope, target, &made);
            attached.await.unwrap();
        }
        // A look without anything to do takes the note off.
        assert_eq!(store.without_vectors(target, 100).await.unwrap(), []);
        self.step(&order, SwitchStep::Compare).await;
        self.step(&order, SwitchStep::Serve).await;
        self.second = Some(order.target);
    }

    async fn step(&self, order: &SwitchOrder, step: SwitchStep) {
        let steps = self.store.steps(Some(order), 10).await.unwrap();
        let [next] = &steps[..] else {
            panic!("{step:?}: {steps:?}");
        };
        assert_eq!((&next.scope, next.step), (&home(), step));
        let taken = self.store.take(next, SpaceComparison::default());
        taken.await.unwrap();
    }

    /// Derivations of a kind that hold.
    pub async fn of(&self, kind: Kind) -> Vec<Derivation> {
        let question = Question {
            kind: Some(kind),
            ..Question::default()
        };
        self.store
            .all_derivations(&home(), &question)
            .await
            .unwrap()
    }

    /// The consolidator is another process from now on, which remembers nothing.
    pub fn restart(&mut self) {
        self.consolidator.shelf = Arc::default();
        self.consolidate_by(Mode::Momentum);
    }

    /// Narratives are consolidated otherwise from now on, by who has looked at nothing yet.
    pub fn consolidate_by(&mut self, mode: Mode) {
        self.plotter = plotter(&self.consolidator, mode);
    }

    /// A caller undoes the change that wrote this version.
    pub async fn undo(&self, written: &Derivation) {
        let call = Context::new(home().tenant, Duration::from_mins(1));
        let space = home().space;
        let undone = self.refresher.revert(&call, &space, written.change);
        undone.await.unwrap();
    }

    pub async fn forget(&self, turn: TurnId) {
        let turns = vec![turn];
        self.remove(TurnFilter {
            turns,
            ..TurnFilter::default()
        })
        .await;
    }

    /// All that somebody said.
    pub async fn forget_speaker(&self, name: &str) {
        let speakers = vec![Speaker::new(name).unwrap()];
        self.remove(TurnFilter {
            speakers,
            ..TurnFilter::default()
        })
        .await;
    }

    pub async fn forget_session(&self, name: &str) {
        let sessions = vec![session(name)];
        self.remove(TurnFilter {
            sessions,
            ..TurnFilter::default()
        })
        .await;
    }

    async fn remove(&self, filter: TurnFilter) {
        self.store.remove(&home(), &filter).await.unwrap();
    }
}

/// A narrative is inactive after 4 turns without it.
fn plotter(consolidator: &LocalConsolidator, mode: Mode) -> Plotter {
    let options = Options {
        mode,
        span: 4,
        fragments: 10,
    };
    Plotter::new(Arc::new(consolidator.clone()), options)
}

/// The narrative of the fragment that a turn is in.
pub fn narrative(fragments: &[Derivation], turn: TurnId) -> DerivationId {
    let found = fragments.iter().find(|it| it.turns.contains(&turn));
    found.and_then(Derivation::fragment).unwrap().narrative
}
