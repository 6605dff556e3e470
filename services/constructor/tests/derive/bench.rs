//! A store, a deriver over it, and an extractor that is easily understood.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use memfleet_constructor::{
    Deriver, ExtractedFacts, Extractor, Rebuilder, Refiner, Summariser, TopicFilter, Utterances,
};
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::fact::{Claim, Clause, Draft, Pattern, Stance};
use memfleet_domain::ids::{SpaceId, TurnId};
use memfleet_domain::policy::Policy;
use memfleet_domain::space::Locale;
use memfleet_domain::time::{FixedClock, TimeRange};
use memfleet_domain::topic::Topic;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::conformance::samples::{batch, home, indexed, instant};
use memfleet_ports::events::{Event, Events};
use memfleet_ports::knowledge::{Knowledge, Progress, Question, Stage, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::policies::policy_key;
use memfleet_ports::settings::{Revised, Settings};
use memfleet_ports::testing::{SubjectEmbedder, WordEmbedder};
use memfleet_sqlite::SqliteStore;
use memfleet_workers::{Follower, Indexer};

/// The name of the extractor.
pub const LITERAL: &str = "literal-1";

pub struct Bench {
    pub store: Arc<SqliteStore>,
    pub embedder: Arc<WordEmbedder>,
    pub subjects: Arc<SubjectEmbedder>,
    pub deriver: Deriver,
    follower: Follower,
    batches: AtomicU64,
    _directory: tempfile::TempDir,
}

impl Bench {
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.db");
        let store = SqliteStore::open(path, memfleet_sqlite::Options::default()).await;
        let store = Arc::new(store.unwrap());
        let embedder = Arc::new(WordEmbedder::default());
        let subjects = Arc::new(SubjectEmbedder::default());
        let topics = TopicFilter::new(store.clone(), subjects.clone(), Vec::new());
        let (events, clock) = (Events::default(), Arc::new(FixedClock(instant(100))));
        let deriver = Deriver {
            ledger: store.clone(),
            feed: store.clone(),
            knowledge: store.clone(),
            indexer: Indexer {
                spaces: store.clone(),
                embedder: embedder.clone(),
            },
            extractor: Arc::new(Literal("is")),
            topics: Arc::new(topics),
            events: events.clone(),
            clock: clock.clone(),
        };
        let follower = Follower {
            knowledge: store.clone(),
            stage: Stage::Derive,
            events,
            clock,
        };
        Self {
            store,
            embedder,
            subjects,
            deriver,
            follower,
            batches: AtomicU64::new(1),
            _directory: directory,
        }
    }

    /// What is announced from now on.
    pub fn listen(&self) -> tokio::sync::broadcast::Receiver<Event> {
        self.follower.events.listen()
    }

    pub fn knowledge(&self) -> &dyn Knowledge {
        &*self.store
    }

    pub async fn store(&self, turns: Vec<AcceptedTurn>) {
        let number = self.batches.fetch_add(1, Ordering::SeqCst);
        let batch = indexed(batch(&number.to_string(), turns), number);
        self.store.commit(vec![batch]).await.unwrap();
    }

    /// Derives what there is to derive; the texts of all facts then.
    pub async fn derive(&self) -> Vec<String> {
        self.follower.sweep(&self.deriver).await;
        let facts = self.facts(&Question::default()).await;
        let texts = facts.iter().map(|fact| fact.fact().unwrap().text.clone());
        texts.collect()
    }

    pub async fn facts(&self, question: &Question) -> Vec<Derivation> {
        let page = self.store.derivations(&home(), question, 100, None).await;
        page.unwrap().items
    }

    /// Cuts what there is to cut; the episodes then, withdrawn ones too.
    pub async fn summarise(&self) -> Vec<Derivation> {
        let follower = Follower {
            stage: Stage::Episodes,
            ..self.follower.clone()
        };
        let summariser = Summariser(Arc::new(self.deriver.clone()));
        follower.sweep(&summariser).await;
        let question = Question {
            kind: Some(Kind::Episode),
            withdrawn: true,
            ..Question::default()
        };
        self.facts(&question).await
    }

    /// Sets the topics of the tenant or a space, and nothing else of its policy.
    pub async fn set_topics(&self, space: Option<SpaceId>, topics: Vec<Topic>) {
        let policy = Policy {
            topics: Some(topics),
            ..Policy::default()
        };
        let body = serde_json::to_string(&policy).unwrap();
        self.set_policy(space, &body).await;
    }

    /// Sets the policy of the tenant or a space.
    pub async fn set_policy(&self, space: Option<SpaceId>, body: &str) {
        let revised = Revised {
            body: Some(body.to_owned()),
            by: "a test".to_owned(),
            at: instant(1),
            expected: None,
        };
        let key = policy_key(space);
        let put = self.store.put(&home().tenant, &key, &revised).await;
        put.unwrap();
    }

    /// Reads the turns once more behind the first extractor.
    pub async fn refine(&self, extractor: Literal) {
        let refiner = Refiner {
            deriver: Arc::new(self.deriver.clone()),
            model: Arc::new(extractor),
        };
        let follower = Follower {
            stage: Stage::Refine,
            ..self.follower.clone()
        };
        follower.sweep(&refiner).await;
    }

    /// Rebuilds with an extractor that reads another verb, in rounds of its own.
    pub async fn rebuild(&self, verb: &'static str) {
        self.rebuild_by(Arc::new(Literal(verb))).await;
    }

    /// Rebuilds with another extractor, in rounds of its own.
    pub async fn rebuild_by(&self, extractor: Arc<dyn Extractor>) {
        self.store.begin_rebuild(&home()).await.unwrap();
        let deriver = Deriver {
            extractor,
            ..self.deriver.clone()
        };
        let follower = Follower {
            stage: Stage::Rebuild,
            ..self.follower.clone()
        };
        follower.sweep(&Rebuilder(Arc::new(deriver))).await;
    }

    /// As if nothing had been noted of how far the work came.
    pub async fn begin_again(&self) {
        let claimed = self
            .store
            .claim(&home(), Stage::Derive, instant(0), instant(1))
            .await;
        let progress = Some(Progress {
            stage: Stage::Derive,
            from: claimed.unwrap().unwrap(),
            to: 0,
        });
        let work = Work {
            progress,
            ..Work::default()
        };
        self.store.apply(&home(), work).await.unwrap();
        let (home, stage) = (home(), Stage::Derive);
        let released = self.store.release(&home, stage, instant(1)).await;
        released.unwrap();
    }
}

/// Reads "X is Y" (or with another verb) as it stands; "she" and "he" are the first word said before, "they" is a name that is said by
/// none.
#[derive(Clone, Copy)]
pub struct Literal(pub &'static str);

#[async_trait]
impl Extractor for Literal {
    fn replaces(&self) -> Vec<&str> {
        vec!["literal"]
    }

    async fn extract(
        &self,
        _: &Scope,
        turns: Vec<Utterances>,
        _: &Locale,
    ) -> Result<ExtractedFacts, Fault> {
        let verb = format!(" {} ", self.0);
        Ok(ExtractedFacts {
            by: LITERAL.to_owned(),
            drafts: turns.iter().map(|turn| drafts(turn, &verb)).collect(),
        })
    }
}

fn drafts(utterances: &Utterances, verb: &str) -> Vec<Draft> {
    let text = &utterances.turn.accepted.content.text;
    let sentences = text.split_terminator('.');
    let drafts = sentences.filter_map(|sentence| {
        let sentence = sentence.trim();
        let (subject, value) = sentence.split_once(verb)?;
        let start = text.find(sentence)? as u32;
        let before = utterances.before.first();
        let named = before.and_then(|turn| turn.accepted.content.text.split(' ').next());
        let (subject, related) = match (subject, named) {
            ("she", Some(name)) => (name, vec![before?.accepted.id]),
            // Does not say where it has the name from.
            ("he", Some(name)) => (name, Vec::new()),
            ("they", _) => ("Nemo", Vec::new()),
            _ => (subject, Vec::new()),
        };
        let evidence = start..start + sentence.len() as u32;
        Some(Draft {
            evidence,
            ..draft(subject, verb.trim(), value, related)
        })
    });
    drafts.collect()
}

fn draft(subject: &str, verb: &str, value: &str, related: Vec<TurnId>) -> Draft {
    Draft {
        text: format!("{subject} {verb} {value}"),
        clause: Some(Clause {
            pattern: Pattern::VerbComplement,
            subject: subject.into(),
            predicate: "be".into(),
            object: None,
            complement: Some(value.into()),
            negated: false,
        }),
        statement: None,
        claim: Claim {
            subject: subject.into(),
            attribute: verb.into(),
            value: value.into(),
        },
        stance: Stance::States,
        said_at: None,
        evidence: 0..1,
        valid: TimeRange::default(),
        related,
        confidence: 1.0,
        line: None,
        names: Vec::new(),
        topics: Vec::new(),
    }
}
