//! Section 3.1: facts K in five patterns, related turns R, the time τ, and the trigger T of episodes.

use chrono_tz::Tz;
use memfleet_agents::episodes::{Said, WINDOW, runs};
use memfleet_agents::facts::{Utterance, facts};
use memfleet_domain::episode::Trigger;
use memfleet_domain::fact::{Draft, Pattern};
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{Role, Trust};
use memfleet_language::Language;

/// A Monday.
const NOON: i64 = 1_718_020_800;

fn instant(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(seconds, 0).unwrap()
}

fn utterance(number: u8, text: &str) -> Utterance<'_> {
    Utterance {
        id: TurnId::from_bytes([number; 16]),
        speaker: "Ada",
        role: Role::User,
        trust: Trust::User,
        text,
        said_at: instant(NOON),
    }
}

fn drafts(text: &str, before: &[&str]) -> Vec<Draft> {
    let context: Vec<_> = (1..)
        .zip(before)
        .map(|(n, text)| utterance(n, text))
        .collect();
    facts(&utterance(99, text), &context, Language::English, Tz::UTC)
}

#[test]
fn section_3_1_each_of_the_five_patterns_is_found() {
    for (text, pattern) in [
        ("My sister moved.", Pattern::Verb),
        ("I bought a canoe.", Pattern::VerbObject),
        ("I am a nurse.", Pattern::VerbComplement),
        ("I gave a canoe to Ben.", Pattern::VerbObjectObject),
        (
            "I painted the door with a brush.",
            Pattern::VerbObjectComplement,
        ),
    ] {
        let drafts = drafts(text, &[]);
        let patterns: Vec<_> = drafts
            .iter()
            .map(|draft| draft.clause.as_ref().unwrap().pattern)
            .collect();
        assert_eq!(patterns, [pattern], "{text}");
    }
}

#[test]
fn section_3_1_facts_are_atomic() {
    let drafts = drafts("Ben lives in Oslo and works for Acme.", &[]);
    let texts: Vec<&str> = drafts.iter().map(|draft| draft.text.as_str()).collect();
    assert_eq!(texts, ["Ben lives in Oslo.", "Ben works for Acme."]);
}

#[test]
fn section_3_1_related_turns_are_those_that_a_reference_is_resolved_with() {
    let drafts = drafts(
        "She moved to Rome.",
        &["The tram was late.", "My sister Mia called."],
    );
    assert_eq!(drafts[0].clause.as_ref().unwrap().subject, "Mia");
    assert_eq!(drafts[0].related, [TurnId::from_bytes([2; 16])]);
    let own = self::drafts("I moved to Rome.", &["My sister Mia called."]);
    assert!(own[0].related.is_empty());
}

#[test]
fn section_3_1_a_time_that_is_named_is_made_absolute_and_else_it_is_that_of_the_turn() {
    let named = drafts("I moved to Rome yesterday.", &[]);
    let start = named[0].valid.start.unwrap();
    assert!(start <= instant(NOON - 12 * 3_600) && start >= instant(NOON - 36 * 3_600));
    // None named: whoever stores it takes the turn's.
    let unnamed = drafts("I moved to Rome.", &[]);
    assert_eq!(unnamed[0].valid.start, None);
}

#[test]
fn section_3_1_every_fact_names_the_words_that_say_so() {
    let text = "Hello there! I live in Oslo. What about you?";
    let drafts = drafts(text, &[]);
    let evidence = drafts[0].evidence.start as usize..drafts[0].evidence.end as usize;
    assert_eq!(&text[evidence], "I live in Oslo");
}

fn said(role: Role, text: &str) -> Said<'_> {
    Said {
        role,
        text,
        time: None,
        vector: None,
    }
}

/// Why the first episode of a session ends.
fn trigger(turns: &[Said<'_>]) -> Option<Trigger> {
    runs(turns, Language::English)[0].trigger
}

#[test]
fn section_3_1_an_episode_is_triggered_by_a_shift_a_request_and_a_full_window_only() {
    let chat = [
        said(Role::User, "How do I prune an apple tree?"),
        said(Role::Assistant, "In late winter, with sharp shears."),
    ];
    assert_eq!(trigger(&chat), None);
    let mut shifts = chat.to_vec();
    shifts.push(said(Role::User, "My landlord raised the rent."));
    shifts.push(said(Role::Assistant, "By how much?"));
    assert_eq!(trigger(&shifts), Some(Trigger::TopicShift));
    let mut asks = chat.to_vec();
    asks.push(said(Role::User, "And now let us sum up."));
    asks.push(said(Role::Assistant, "Prune in late winter."));
    asks.push(said(Role::User, "And then?"));
    assert_eq!(trigger(&asks), Some(Trigger::Request));
    let full = vec![said(Role::User, "and more"); WINDOW + 1];
    assert_eq!(trigger(&full), Some(Trigger::Saturation));
}
