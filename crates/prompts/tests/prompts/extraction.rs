//! Facts of a reply: those that hold are kept, all others counted.

use memfleet_domain::fact::{Pattern, Stance};
use memfleet_prompts::facts::{Extraction, Said};
use memfleet_prompts::semantics::Peripheral;
use memfleet_prompts::{Misread, Prompt};
use serde_json::{Value, json};

use crate::samples::{facts, instant, story, turn_id, turns};

/// "Clara moved to Lisbon", as a reply should have it.
fn moved() -> Value {
    json!({
        "turn": "T2",
        "quote": "She moved to Lisbon",
        "sentence": "Clara moved to Lisbon.",
        "pattern": "S-V-C",
        "subject": "Clara",
        "verb": "move to",
        "object": null,
        "complement": "Lisbon",
        "negated": false,
        "correction": false,
        "from": "2026-03-02",
        "until": null,
        "related": ["T1"],
        "confidence": 0.9,
    })
}

fn with(changes: &Value) -> Value {
    let mut fact = moved();
    for (key, value) in changes.as_object().unwrap() {
        fact[key] = value.clone();
    }
    fact
}

fn read(facts_said: &[Value]) -> Extraction {
    let said: Said = serde_json::from_value(json!({ "facts": facts_said })).unwrap();
    let turns = turns();
    facts(&turns).check(said).unwrap()
}

#[test]
fn a_fact_becomes_a_draft_with_its_evidence() {
    let found = read(&[moved()]);
    assert!(found.dropped.is_none());
    let [(turn, draft)] = &found.drafts[..] else {
        panic!("{found:?}");
    };
    assert_eq!(*turn, turn_id("2"));
    assert_eq!(draft.text, "Clara moved to Lisbon.");
    assert_eq!(
        draft.clause.as_ref().unwrap().pattern,
        Pattern::VerbComplement
    );
    assert_eq!(draft.claim.subject, "clara");
    assert_eq!(draft.stance, Stance::States);
    let text = &turns()[1].text;
    let evidence = draft.evidence.start as usize..draft.evidence.end as usize;
    assert_eq!(&text[evidence], "She moved to Lisbon");
    assert_eq!(draft.valid.start, Some(instant("2026-03-02T00:00:00Z")));
    assert_eq!(draft.related, [turn_id("1")]);
}

#[test]
fn turns_that_were_not_new_or_not_shown_state_nothing() {
    for turn in ["T1", "T3", "F2", "", "all"] {
        let found = read(&[with(&json!({ "turn": turn })), moved()]);
        assert_eq!(
            (found.drafts.len(), found.dropped.unknown),
            (1, 1),
            "{turn}"
        );
    }
}

#[test]
fn what_the_turn_does_not_say_is_unsupported() {
    for changes in [
        json!({"quote": "She moved to Paris"}),
        json!({"sentence": "Clara moved to Atlantis."}),
        json!({"sentence": "Clara moved to Lisbon.", "related": []}),
    ] {
        let found = read(&[with(&changes)]);
        assert_eq!(
            (found.drafts.len(), found.dropped.unsupported),
            (0, 1),
            "{changes}"
        );
    }
}

#[test]
fn what_has_the_wrong_form_is_malformed() {
    for changes in [
        json!({"sentence": " "}),
        json!({"sentence": "Clara moved\nto Lisbon."}),
        json!({"sentence": "Lisbon ".repeat(200)}),
        json!({"quote": ""}),
        json!({"subject": ""}),
        json!({"pattern": "S-V-O"}),
        json!({"pattern": "S-V"}),
        json!({"complement": ""}),
        json!({"from": "last week"}),
        json!({"until": "2026-03-01"}),
        json!({"confidence": 1.5}),
    ] {
        let found = read(&[with(&changes)]);
        assert_eq!(
            (found.drafts.len(), found.dropped.malformed),
            (0, 1),
            "{changes}"
        );
    }
}

#[test]
fn unknown_related_turns_are_left_out_and_the_fact_stays() {
    let found = read(&[with(&json!({"related": ["T1", "T9", "T2", "T1"]}))]);
    assert_eq!(found.drafts[0].1.related, [turn_id("1")]);
    assert_eq!(found.dropped.unknown, 1);
}

#[test]
fn the_same_fact_twice_and_too_many_facts_are_left_out() {
    let found = read(&vec![moved(); 50]);
    assert_eq!((found.drafts.len(), found.dropped.malformed), (1, 49));
}

#[test]
fn a_denial_is_kept_as_such() {
    let found = read(&[with(&json!({"negated": true}))]);
    assert!(found.dropped.is_none());
    assert!(found.drafts[0].1.is_negated());
}

#[test]
fn dates_and_corrections_that_the_turn_does_not_tell_are_left_out_and_the_fact_stays() {
    let found = read(&[with(&json!({"from": "1950-01-01", "correction": true}))]);
    let draft = &found.drafts[0].1;
    assert_eq!((draft.valid.start, draft.stance), (None, Stance::States));
    assert_eq!(found.dropped.unsupported, 2);
}

/// What is peripheral in the two turns, to a story whose headlines say that Clara moved.
fn read_beside_a_story(facts_said: &[Value]) -> Result<Extraction, Misread> {
    let said: Said = serde_json::from_value(json!({ "facts": facts_said })).unwrap();
    let turns = turns();
    let mut shown = facts(&turns);
    shown.earlier = 0;
    let prompt = Peripheral {
        story: &story("Clara moved to Lisbon"),
        facts: shown,
        is_plot: &|sentence| sentence == "Clara moved to Lisbon.",
    };
    prompt.check(said)
}

/// "Clara is Ada's sister", from the first turn.
fn sister() -> Value {
    with(&json!({
        "turn": "T1", "quote": "your sister Clara", "sentence": "Clara is a sister.", "verb": "be", "complement": "sister",
        "from": null, "related": [],
    }))
}

#[test]
fn what_is_peripheral_is_a_fact_like_any_other() {
    let found = read_beside_a_story(&[sister()]).unwrap();
    let [(turn, draft)] = &found.drafts[..] else {
        panic!("{found:?}");
    };
    assert_eq!((*turn, &*draft.text), (turn_id("1"), "Clara is a sister."));
    assert!(found.dropped.is_none());
    assert_eq!(read_beside_a_story(&[]), Ok(Extraction::default()));
}

#[test]
fn what_the_headlines_say_is_not_peripheral() {
    let found = read_beside_a_story(&[moved(), sister()]).unwrap();
    assert_eq!((found.drafts.len(), found.dropped.malformed), (1, 1));
    assert!(read_beside_a_story(&[moved()]).is_err());
}

#[test]
fn a_reply_of_which_nothing_holds_is_refused() {
    for changes in [
        json!({"turn": "T9"}),
        json!({"turn": "S1"}),
        json!({"quote": "your sister Eve"}),
        json!({"sentence": "Clara is a pirate."}),
        json!({"confidence": -1.0}),
        json!({"pattern": "S-V"}),
    ] {
        let mut fact = sister();
        for (key, value) in changes.as_object().unwrap() {
            fact[key] = value.clone();
        }
        assert!(read_beside_a_story(&[fact.clone()]).is_err(), "{changes}");
        let found = read_beside_a_story(&[fact, sister()]).unwrap();
        assert_eq!(found.drafts.len(), 1, "{changes}");
    }
}

#[test]
fn garbage_is_no_reply() {
    for said in [
        json!({}),
        json!({"facts": "Clara is a sister."}),
        json!({"facts": [{"fact": "Clara is a sister.", "timestamp": "T1"}]}),
        json!({"facts": [with(&json!({"pattern": "delete"}))]}),
        json!({"facts": [with(&json!({"confidence": "sure"}))]}),
    ] {
        assert!(
            serde_json::from_value::<Said>(said.clone()).is_err(),
            "{said}"
        );
    }
}
