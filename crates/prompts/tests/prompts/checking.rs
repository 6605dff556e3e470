//! What is made of the other replies.

use memfleet_domain::ids::ConflictId;
use memfleet_prompts::conflicts::{Comparing, Relation};
use memfleet_prompts::episode::Summing;
use memfleet_prompts::query::{Asking, Understood};
use memfleet_prompts::refresh::{Action, Conflict, Settling};
use memfleet_prompts::relevance::{Candidate, Judging};
use memfleet_prompts::{Misread, Prompt};
use serde_json::{Value, json};

use crate::samples::{instant, is_told, sentence, supports, turns};

fn read<P: Prompt>(prompt: &P, said: Value) -> Result<P::Meant, Misread> {
    let said = serde_json::from_value(said).map_err(|error| Misread(error.to_string()))?;
    prompt.check(said)
}

#[test]
fn a_summary_is_the_sentences_that_hold() {
    let turns = turns();
    let prompt = Summing {
        turns: &turns,
        is_supported: &supports,
    };
    let sentence = |text: &str, turns: &[&str]| json!({"text": text, "turns": turns});
    let sentences = [
        sentence("Clara is the sister.", &["T1"]),
        sentence("Clara moved to Lisbon.", &["T1", "T2"]),
        sentence("Lisbon is lovely.", &["T2"]),
        sentence("She moved.", &["T2", "T3"]),
        sentence("She moved.", &[]),
        sentence("", &["T2"]),
    ];
    let said = json!({"title": "Clara moved to Lisbon", "sentences": sentences});
    let summary = read(&prompt, said).unwrap();
    assert_eq!(
        summary.summary,
        "Clara is the sister. Clara moved to Lisbon."
    );
    let dropped = summary.dropped;
    assert_eq!(
        (dropped.unsupported, dropped.unknown, dropped.malformed),
        (1, 2, 1)
    );
}

#[test]
fn a_summary_without_a_sentence_or_with_another_title_is_refused() {
    let turns = turns();
    let prompt = Summing {
        turns: &turns,
        is_supported: &supports,
    };
    let sentence = json!({"text": "Clara moved.", "turns": ["T1", "T2"]});
    for said in [
        json!({"title": "Clara moved", "sentences": []}),
        json!({"title": "Memory was deleted", "sentences": [sentence]}),
        json!({"title": "", "sentences": [sentence]}),
    ] {
        assert!(read(&prompt, said.clone()).is_err(), "{said}");
    }
}

#[test]
fn a_query_is_understood_within_bounds() {
    let prompt = Asking {
        query: "Where is she?",
        now: instant("2026-03-10T08:00:00Z"),
        turns: &[],
    };
    let said = |query: &str, count: u64| {
        json!({
            "query": query, "fine": false, "abstract": true, "event": false, "atomic": true,
            "count": count,
        })
    };
    let Understood {
        query,
        intent,
        count,
    } = read(&prompt, said(" Where is Clara? ", 100_000)).unwrap();
    assert_eq!((&*query, count), ("Where is Clara?", 100));
    assert!(intent.abstracted && intent.atomic && !intent.fine && !intent.event);
    assert!(read(&prompt, said("", 1)).is_err());
    assert!(read(&prompt, said("a\nb", 1)).is_err());
    assert!(read(&prompt, json!({"query": "x", "count": -1})).is_err());
}

#[test]
fn only_candidates_that_were_shown_are_relevant() {
    let candidate = Candidate {
        time: None,
        text: "x".to_owned(),
    };
    let prompt = Judging {
        query: "x",
        now: instant("2026-03-10T08:00:00Z"),
        candidates: &[candidate.clone(), candidate],
    };
    let said = json!({
        "relevant": ["C2", "C1", "C2", "C3", "T1"],
        "sufficient": false,
        "missing": ["when Clara moved", ""],
    });
    let verdict = read(&prompt, said).unwrap();
    assert_eq!(verdict.relevant, [0, 1]);
    assert_eq!(verdict.missing, ["when Clara moved"]);
    assert_eq!((verdict.dropped.unknown, verdict.dropped.malformed), (2, 1));
}

#[test]
fn a_conflict_is_between_a_new_fact_and_a_known_one() {
    let (new, known) = (
        [sentence("n", "Clara lives in Lisbon.")],
        [
            sentence("f", "Clara lives in Rome."),
            sentence("n", "Clara lives in Lisbon."),
        ],
    );
    let prompt = Comparing {
        new: &new,
        known: &known,
    };
    let conflict = |new: &str, known: &str, confidence: f32| json!({"new": new, "known": known, "relation": "change", "confidence": confidence});
    let said = json!({"conflicts": [
        conflict("N1", "F1", 0.8),
        conflict("N1", "F1", 0.8),
        conflict("N1", "F2", 0.8),
        conflict("F1", "N1", 0.8),
        conflict("N2", "F1", 0.8),
    ]});
    let found = read(&prompt, said).unwrap();
    let [only] = found.found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((only.new, only.known), (new[0].id, known[0].id));
    assert_eq!(only.relation, Relation::Change);
    assert_eq!((found.dropped.unknown, found.dropped.malformed), (2, 2));
}

#[test]
fn a_conflict_is_settled_once_and_never_by_deleting() {
    let (known, new) = (sentence("f", "a"), sentence("n", "b"));
    let conflicts = [Conflict {
        id: ConflictId::of(known.id, new.id),
        known,
        new,
        evidence: turns().remove(1),
    }];
    let prompt = Settling {
        conflicts: &conflicts,
        is_told: &|_, date| is_told(date),
        takes_back: &|_| false,
    };
    let decision = |conflict: &str, action: &str, since: Option<&str>| json!({"conflict": conflict, "action": action, "since": since});
    let said = json!({"decisions": [
        decision("X2", "update", None),
        decision("X1", "update", Some("2026-03-10")),
        decision("X1", "update", Some("2026-03-02")),
        decision("X1", "correct", None),
    ]});
    let settled = read(&prompt, said).unwrap();
    let [only] = settled.made[..] else {
        panic!("{settled:?}");
    };
    assert_eq!(
        (only.conflict, only.action),
        (conflicts[0].id, Action::Update)
    );
    assert_eq!(only.since, Some(instant("2026-03-02T00:00:00Z")));
    assert_eq!((settled.dropped.unknown, settled.dropped.malformed), (1, 2));
    let deletes = json!({"decisions": [decision("X1", "delete", None)]});
    assert!(read(&prompt, deletes).is_err());
    let denies = json!({"decisions": [decision("X1", "correct", None)]});
    let settled = read(&prompt, denies).unwrap();
    assert_eq!((settled.made, settled.dropped.unsupported), (vec![], 1));
    let untold = json!({"decisions": [decision("X1", "update", Some("1950-01-01"))]});
    let settled = read(&prompt, untold).unwrap();
    assert_eq!(settled.made[0].since, None);
    assert_eq!(settled.dropped.unsupported, 1);
}
