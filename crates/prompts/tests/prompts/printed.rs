//! Every prompt, word for word: a change of its words raises its version.

use memfleet_domain::ids::ConflictId;
use memfleet_ports::language_model::{Message, Voice};
use memfleet_prompts::Template;
use memfleet_prompts::answer::Question;
use memfleet_prompts::ask::Prompt;
use memfleet_prompts::conflicts::Comparing;
use memfleet_prompts::episode::Summing;
use memfleet_prompts::query::Asking;
use memfleet_prompts::refresh::{Conflict, Settling};
use memfleet_prompts::relevance::{Candidate, Judging};
use memfleet_prompts::semantics::Peripheral;
use memfleet_prompts::stories::choice::Choosing;
use memfleet_prompts::stories::plot::Plotting;
use memfleet_prompts::stories::{Beginning, Binding};
use tokio::time::Instant;

use crate::samples::{facts, fragments, instant, press, sentence, story, supports, turns};

fn shown(messages: &[Message]) -> String {
    let show = |message: &Message| match message.voice {
        Voice::System => format!("== system\n{}", message.text),
        Voice::User => format!("== user\n{}", message.text),
        Voice::Assistant => format!("== assistant\n{}", message.text),
    };
    messages.iter().map(show).collect::<Vec<_>>().join("\n")
}

fn hold<P: Prompt>(prompt: &P) {
    let call = press().call(prompt, Instant::now());
    let schema = call.schema.unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let schema = serde_json::to_string_pretty(&schema).unwrap();
    let text = format!("{}\n== schema\n{schema}", shown(&call.messages));
    insta::assert_snapshot!(P::ID.to_string(), text);
}

#[test]
fn facts_are_asked_for() {
    let turns = turns();
    let known = ["Clara is Ada's sister.".to_owned()];
    let mut prompt = facts(&turns);
    prompt.known = &known;
    hold(&prompt);
}

#[test]
fn a_summary_is_asked_for() {
    hold(&Summing {
        turns: &turns(),
        is_supported: &supports,
    });
}

#[test]
fn a_query_is_asked_about() {
    hold(&Asking {
        query: "Where does she live now?",
        now: instant("2026-03-10T08:00:00Z"),
        turns: &turns(),
    });
}

#[test]
fn relevance_is_asked_for() {
    let candidate = |text: &str| Candidate {
        time: Some(instant("2026-03-09T10:00:00Z")),
        text: text.to_owned(),
    };
    hold(&Judging {
        query: "Where does Clara live?",
        now: instant("2026-03-10T08:00:00Z"),
        candidates: &[
            candidate("Clara moved to Lisbon."),
            candidate("Ada bakes bread."),
        ],
    });
}

#[test]
fn conflicts_are_asked_for() {
    hold(&Comparing {
        new: &[sentence("n", "Clara lives in Lisbon.")],
        known: &[sentence("f", "Clara lives in Rome.")],
    });
}

#[test]
fn a_settlement_is_asked_for() {
    let (known, new) = (
        sentence("f", "Clara lives in Rome."),
        sentence("n", "Clara lives in Lisbon."),
    );
    hold(&Settling {
        conflicts: &[Conflict {
            id: ConflictId::of(known.id, new.id),
            known,
            new,
            evidence: turns().remove(1),
        }],
        is_told: &|_, _| false,
        takes_back: &|_| false,
    });
}

#[test]
fn an_answer_is_asked_for() {
    let question = Question {
        question: "Where does Clara live?",
        now: instant("2026-03-10T08:00:00Z"),
        turns: &turns(),
        derived: &["Clara lives in Lisbon.".to_owned()],
    };
    let call = press().question(&question, Instant::now());
    assert_eq!(call.schema, None);
    insta::assert_snapshot!(Question::ID.to_string(), shown(&call.messages));
}

#[test]
fn the_beginning_of_stories_is_asked_for() {
    hold(&Beginning {
        turns: &turns(),
        is_supported: &supports,
    });
}

#[test]
fn binding_is_asked_for() {
    hold(&Binding {
        stories: &[story("Clara in Lisbon")],
        turns: &turns(),
        earlier: 1,
        is_supported: &supports,
    });
}

#[test]
fn a_plot_is_asked_for() {
    hold(&Plotting {
        story: &story("Clara in Lisbon"),
        fragments: &fragments(),
        is_supported: &|_, _| true,
    });
}

#[test]
fn stories_are_asked_for() {
    hold(&Choosing {
        query: "Where does Clara live?",
        now: instant("2026-03-10T08:00:00Z"),
        stories: &[story("Clara in Lisbon")],
        most: 2,
    });
}

#[test]
fn what_is_peripheral_is_asked_for() {
    let turns = turns();
    let known = ["Clara is Ada's sister.".to_owned()];
    let mut shown = facts(&turns);
    (shown.earlier, shown.known) = (0, &known);
    hold(&Peripheral {
        story: &story("Clara in Lisbon"),
        facts: shown,
        is_plot: &|_| false,
    });
}
