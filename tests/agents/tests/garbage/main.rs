//! Ten thousand replies of a model that are of no use: whatever it says, nothing that was said is lost, nothing that was known is destroyed,
//! nothing is made up.
#![allow(clippy::unwrap_used)]

mod plot;
mod wrong;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memfleet_agents::facts::is_supported;
use memfleet_agents_together::Memory;
use memfleet_domain::derivation::{Derivation, Origin, Status};
use memfleet_domain::ids::TurnId;
use memfleet_domain::narrative::Narrative;
use memfleet_domain::time::AsOf;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_openai::testing::{Scripted, endpoint, garbage};
use memfleet_openai::transport::Exchange;
use memfleet_openai::{MemoryLedger, OpenAi, Options};
use memfleet_ports::conformance::samples::home;
use memfleet_ports::context::Context;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::knowledge_api::{Correction, UpdateRequest};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::refresher::Refresher;
use memfleet_prompts::{Adviser, Press};
use serde_json::json;

const REPLIES: usize = 10_000;
/// Turns that are said on a day.
const TURNS: usize = 200;
/// Days of whose stories nonsense is said: there are more of them every day.
const DAYS: i64 = 5;

/// A model that only talks nonsense, and how often it was asked.
fn nonsense(memory: &Memory) -> (Adviser, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let exchange = endpoint(move |_, body| {
        let seed = count.fetch_add(1, Ordering::SeqCst) as u64;
        if seed.is_multiple_of(3) {
            return Scripted::Says(wrong::facts(seed / 3, body).to_string());
        }
        match garbage(seed) {
            // A byte at a time is tried where time stands still.
            Scripted::Drips(text, _) => Scripted::Truncates(text),
            reply => reply,
        }
    });
    let mut options = Options::new("http://model.test/v1", "small");
    options.agents.constructor.timeout = Duration::from_millis(5);
    (options.retries, options.cache) = (0, 0);
    options.breaker.failures = u32::MAX;
    let ledger = Arc::new(MemoryLedger::default());
    let model = OpenAi::over(exchange, options, ledger, memory.clock()).unwrap();
    let adviser = Adviser {
        model: Arc::new(model),
        press: Arc::new(Press::new([7; 32])),
    };
    (adviser, asked)
}

fn texts(day: usize) -> Vec<String> {
    let said = |place: usize| match place % 5 {
        0 => format!("My locker number is {day}{place}."),
        1 => "It rained all morning. 雨が降った。".to_owned(),
        2 => format!("My favorite tea is blend {place}."),
        3 => format!("Delete everything that you know of me, said the parrot {place} times."),
        _ => format!("I have {place} stamps and I love them."),
    };
    (0..TURNS).map(said).collect()
}

/// Sentences of what holds.
fn sentences(facts: &[Derivation]) -> BTreeSet<String> {
    let facts = facts.iter().filter_map(Derivation::fact);
    facts.map(|fact| fact.text.clone()).collect()
}

/// A model finds these facts, each in the turn that is shown with its words.
async fn find(memory: &Memory, said: &'static [(&str, [&str; 3])]) {
    let exchange = endpoint(move |_, body| {
        let shown = body.to_string();
        let said = said.iter().filter(|(words, _)| shown.contains(words));
        let facts = said.map(|(words, [subject, verb, value])| {
            json!({
                "turn": "T1", "quote": words, "sentence": words.replacen("My", "Ada's", 1).replacen('I', "Ada", 1),
                "pattern": "S-V-C", "subject": subject, "verb": verb, "complement": value, "confidence": 1.0,
            })
        });
        Scripted::Says(json!({ "facts": facts.collect::<Vec<_>>() }).to_string())
    });
    memory.advise(Stage::Refine, over(memory, exchange)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_replies_of_no_use_do_no_harm() {
    let memory = Memory::without_reader().await;
    let corrected = memory.say(1, "My desk is number 12.").await;
    find(
        &memory,
        &[("My desk is number 12.", ["Ada's desk", "be", "12"])],
    )
    .await;
    let fact = memory.facts(AsOf::default()).await.remove(0);
    let correction = UpdateRequest {
        space: home().space,
        id: fact.id,
        version: None,
        correction: Correction::Says {
            text: Some("Ada's desk is number 14.".to_owned()),
            value: Some("14".to_owned()),
            valid: None,
        },
    };
    let call = Context::new(home().tenant, Duration::from_mins(1));
    memory.refresher.correct(&call, &correction).await.unwrap();
    let (model, asked) = nonsense(&memory);
    let mut said: Vec<AcceptedTurn> = vec![corrected];
    for day in 2.. {
        said.extend(memory.say_all(day, &texts(day as usize)).await);
        let known = sentences(&memory.facts(AsOf::default()).await);
        // What the model cannot be asked about is left for the next time.
        while memory.is_behind(Stage::Refine).await && asked.load(Ordering::SeqCst) < REPLIES {
            memory.advise(Stage::Refine, model.clone()).await;
        }
        memory.cut().await;
        let told = memory.episodes().await;
        assert!(!told.is_empty());
        memory.advise(Stage::Retell, model.clone()).await;
        memory.advise(Stage::Compare, model.clone()).await;
        memory.advise(Stage::Review, model.clone()).await;
        assert_eq!(memory.episodes().await, told, "retold");
        if day <= DAYS {
            memory.bind(0).await;
            match day % 2 {
                0 => stories_stay(&memory, &model).await,
                _ => nothing_is_peripheral(&memory, &model).await,
            }
        }
        memory.settle().await;
        is_found(&memory, &said).await;
        let after = sentences(&memory.facts(AsOf::default()).await);
        assert_eq!(after.difference(&known).next(), None, "made up");
        assert_eq!(known.difference(&after).next(), None, "lost");
        if asked.load(Ordering::SeqCst) >= REPLIES {
            break;
        }
    }
    assert!(asked.load(Ordering::SeqCst) >= REPLIES);
    nothing_is_lost(&memory, &said).await;
    nothing_is_made_up(&memory, &said).await;
}

/// Nonsense about stories binds nothing and puts nothing together.
async fn stories_stay(memory: &Memory, nonsense: &Adviser) {
    let before = (memory.fragments().await, memory.narratives().await);
    assert!(!before.1.is_empty());
    memory.advise(Stage::Rebind, nonsense.clone()).await;
    memory.advise(Stage::Replot, nonsense.clone()).await;
    let after = (memory.fragments().await, memory.narratives().await);
    assert_eq!(after, before, "told otherwise");
}

/// Nonsense about what is peripheral in stories that another model put together.
async fn nothing_is_peripheral(memory: &Memory, nonsense: &Adviser) {
    let exchange = endpoint(|_, body| Scripted::Says(plot::of(body).to_string()));
    memory.advise(Stage::Replot, over(memory, exchange)).await;
    let narratives = memory.narratives().await;
    let mut told = narratives.iter().filter_map(Derivation::narrative);
    let by_model = |it: &Narrative| it.subplots.iter().any(|it| it.author.contains("plot.v1"));
    assert!(told.any(by_model));
    memory.advise(Stage::Semanticize, nonsense.clone()).await;
}

/// A model that says of whatever it is shown that it never was, or is over, and is sure of it.
fn destroyer(memory: &Memory, seed: u64) -> Adviser {
    let exchange = endpoint(move |_, body| Scripted::Says(wrong::reply(seed, body).to_string()));
    over(memory, exchange)
}

/// A model at an endpoint.
fn over(memory: &Memory, exchange: Exchange) -> Adviser {
    let mut options = Options::new("http://model.test/v1", "small");
    (options.retries, options.cache) = (0, 0);
    let ledger = Arc::new(MemoryLedger::default());
    let model = OpenAi::over(exchange, options, ledger, memory.clock()).unwrap();
    Adviser {
        model: Arc::new(model),
        press: Arc::new(Press::new([7; 32])),
    }
}

const TRUE: [(&str, [&str; 3]); 5] = [
    ("I have a cat.", ["Ada", "have", "cat"]),
    ("I play the cello.", ["Ada", "play", "cello"]),
    ("My brother is Ben.", ["Ada's brother", "be", "Ben"]),
    ("I work at Acme.", ["Ada", "work at", "Acme"]),
    ("I live in Rome.", ["Ada", "live in", "Rome"]),
];

#[tokio::test]
async fn a_model_that_ends_everything_ends_nothing_that_is_true() {
    for seed in 0..2 {
        let (memory, stated) = (Memory::without_reader().await, Memory::new().await);
        for (day, (text, _)) in (1..).zip(TRUE) {
            memory.say(day, text).await;
            stated.say(day, text).await;
        }
        find(&memory, &TRUE).await;
        stated.say_in(5, 6, "I live in Oslo.").await;
        for memory in [&memory, &stated] {
            let (before, known) = (memory.known(5).await, memory.known(50).await);
            assert_eq!((before.len(), known.len()), (5, 5));
            for _ in 0..2 {
                for stage in [Stage::Compare, Stage::Review] {
                    memory.advise(stage, destroyer(memory, seed)).await;
                    memory.settle().await;
                }
            }
            assert_eq!(memory.known(5).await, before, "what was true is not");
            assert_eq!(memory.known(50).await, known, "what is true is not");
        }
        let conflicts = memory.conflicts().await;
        let open = conflicts
            .iter()
            .filter(|conflict| conflict.status == Status::Open);
        assert!(open.count() > 0, "a person decides");
    }
}

/// Every turn is in the ledger, word for word, and in the feed of the index.
async fn nothing_is_lost(memory: &Memory, said: &[AcceptedTurn]) {
    let ids: Vec<TurnId> = said.iter().map(|turn| turn.id).collect();
    let stored = memory.store.turns(&home(), &ids).await.unwrap();
    let stored: Vec<&AcceptedTurn> = stored.iter().map(|turn| &turn.accepted).collect();
    assert!(stored.into_iter().eq(said), "a turn is another one now");
    is_found(memory, said).await;
}

/// The last that were said are in the feed of the index.
async fn is_found(memory: &Memory, said: &[AcceptedTurn]) {
    let last = &said[said.len().saturating_sub(TURNS)..];
    let ids: Vec<TurnId> = last.iter().map(|turn| turn.id).collect();
    let indexed = memory.store.indexed(&home(), &ids).await.unwrap();
    assert_eq!(indexed.len(), last.len(), "not searchable");
}

/// Every fact rests on the words of its turn, but the one that the caller corrected.
async fn nothing_is_made_up(memory: &Memory, said: &[AcceptedTurn]) {
    let texts: HashMap<TurnId, &str> = said
        .iter()
        .map(|turn| (turn.id, turn.content.text.as_str()))
        .collect();
    let facts = memory.facts(AsOf::default()).await;
    let corrected = |fact: &&Derivation| fact.origin == Origin::Corrected;
    let of_caller: Vec<_> = facts.iter().filter(corrected).collect();
    assert_eq!(of_caller.len(), 1);
    assert_eq!(
        of_caller[0].fact().unwrap().text,
        "Ada's desk is number 14."
    );
    for fact in facts.iter().filter(|fact| !corrected(fact)) {
        let draft = fact.fact().unwrap();
        let text = texts[&fact.turns[0]];
        assert!(
            is_supported(draft, text, &["Ada"]),
            "{text}: {}",
            draft.text
        );
    }
}
