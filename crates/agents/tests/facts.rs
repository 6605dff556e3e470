//! Checks of what a language model finds in turns.
#![allow(clippy::unwrap_used)]

use memfleet_agents::facts::{Utterance, as_told, is_supported, is_verb_said, sources};
use memfleet_domain::derivation::Body;
use memfleet_domain::fact::{Draft, Stance};
use memfleet_domain::ids::TurnId;
use memfleet_domain::space::Locale;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_ports::conformance::knowledge::fact;
use memfleet_ports::conformance::samples::{instant, turn};
use proptest::prelude::*;

fn said<'t>(number: u8, speaker: &'t str, text: &'t str) -> Utterance<'t> {
    Utterance {
        id: TurnId::from_bytes([number; 16]),
        speaker,
        text,
        said_at: Timestamp::from_timestamp(1_718_000_000, 0).unwrap(),
    }
}

/// The fact that somebody lives somewhere, which rests on all of a text.
fn lives(who: &str, place: &str, text: &str) -> Draft {
    let fact = fact(&turn("1", text), who, place, instant(1));
    let Body::Fact(draft) = fact.body else {
        unreachable!("it is a fact");
    };
    Draft {
        evidence: 0..text.len() as u32,
        ..*draft
    }
}

/// When a fact of a text holds that somebody else dates like this, and how much of that the text does not tell.
fn dated(text: &str, from: &str, until: &str) -> (String, u32) {
    let date = |date: &str| {
        let instant = format!("{date}T00:00:00Z");
        (!date.is_empty()).then(|| instant.parse::<Timestamp>().unwrap())
    };
    let utterance = said(9, "Ada", text);
    let mut draft = lives("Ada", "Rome", text);
    draft.valid = TimeRange {
        start: date(from),
        end: date(until),
    };
    let (draft, untold) = as_told(draft, text, utterance.said_at, &Locale::default());
    let shown = |date: Option<Timestamp>| date.map(|date| date.date_naive().to_string());
    let TimeRange { start, end } = draft.valid;
    let (start, end) = (
        shown(start).unwrap_or_default(),
        shown(end).unwrap_or_default(),
    );
    (format!("{start}..{end}"), untold)
}

#[test]
fn a_date_is_taken_where_the_sentence_tells_of_it() {
    for (text, from, until, expected) in [
        // It was said on 10 June 2024.
        (
            "I live in Rome since 2019.",
            "2019-01-01",
            "",
            ("2019-01-01..", 0),
        ),
        (
            "I live in Rome since 2019.",
            "2019-05-07",
            "",
            ("2019-01-01..", 0),
        ),
        ("I live in Rome since 2019.", "2018-12-31", "", ("..", 1)),
        (
            "I moved to Rome last week.",
            "2024-06-03",
            "",
            ("2024-06-03..", 0),
        ),
        (
            "I move to Rome in August.",
            "2024-08-01",
            "",
            ("2024-08-01..", 0),
        ),
        ("I start on Friday.", "2024-06-14", "", ("2024-06-14..", 0)),
        ("I live in Rome.", "1950-01-01", "1951-01-01", ("..", 2)),
        // Over by its date, or by the turn where nothing tells the date.
        (
            "I lived in Rome until 2019.",
            "",
            "2019-01-01",
            ("..2019-01-01", 0),
        ),
        (
            "I used to play in Rome until May 2020.",
            "",
            "2020-05-31",
            ("..2020-05-31", 0),
        ),
        (
            "I played the cello until 2019.",
            "",
            "2019-01-01",
            ("..2019-01-01", 0),
        ),
        (
            "I used to live in Rome.",
            "",
            "2015-01-01",
            ("..2024-06-10", 1),
        ),
        // Not over: it only names a date of the past.
        ("I live in Rome since 2019.", "", "2019-01-01", ("..", 1)),
        ("I moved to Rome in May 2024.", "", "2024-05-31", ("..", 1)),
        (
            "I stay in Rome until next month.",
            "",
            "2024-07-31",
            ("..2024-07-31", 0),
        ),
    ] {
        let (shown, untold) = dated(text, from, until);
        assert_eq!((&*shown, untold), expected, "{text} {from} {until}");
    }
}

#[test]
fn at_the_ends_of_time_dates_are_read_as_well() {
    for said_at in [Timestamp::MIN_UTC, Timestamp::MAX_UTC] {
        let text = "I moved to Rome in March, on Friday, yesterday, next year.";
        let draft = lives("Ada", "Rome", text);
        as_told(draft, text, said_at, &Locale::default());
    }
}

#[test]
fn a_correction_is_one_where_the_turn_takes_something_back() {
    for (text, stance) in [
        ("I live in Oslo.", Stance::States),
        ("Sorry, I mixed that up. I live in Oslo.", Stance::Corrects),
        ("Ben said \"I was wrong\". I live in Oslo.", Stance::States),
    ] {
        let utterance = said(9, "Ada", text);
        let mut draft = lives("Ada", "Oslo", text);
        draft.stance = Stance::Corrects;
        let (draft, untold) = as_told(draft, text, utterance.said_at, &Locale::default());
        assert_eq!(draft.stance, stance, "{text}");
        assert_eq!(untold == 0, stance == Stance::Corrects, "{text}");
    }
}

#[test]
fn a_fact_is_supported_by_its_own_words_only() {
    let text = "Emma does not live in Atlanta, she moved to Rome.";
    let supported = |value: &str, sentence: &str| {
        let mut draft = lives("Emma", value, text);
        draft.text = sentence.to_owned();
        is_supported(&draft, text, &["Ada"])
    };
    assert!(supported("Rome", "Emma moved to Rome."));
    assert!(!supported("Atlantis", "Emma lives in Atlantis."));
    assert!(!supported("Atlantis", "Emma moved to Rome."));
}

#[test]
fn the_verb_of_a_fact_is_said_or_another_word_for_it() {
    for (text, is_said) in [
        ("I live in Rome.", true),
        ("Rome is where I've been living.", true),
        ("I moved to Rome.", true),
        ("I hate Rome.", false),
        ("Rome!", false),
    ] {
        let draft = lives("Ada", "Rome", text);
        assert_eq!(is_verb_said(&draft, text), is_said, "{text}");
    }
}

#[test]
fn a_fact_draws_on_the_turn_that_says_the_words_its_own_does_not() {
    let context = [
        said(1, "Ada", "My sister Zebulonia called."),
        said(2, "Brunhild", "Nice!"),
    ];
    let turn = said(3, "Ada", "She lives in Rome.");
    let sources_of =
        |who: &str, place: &str| sources(&lives(who, place, turn.text), &turn, &context);
    assert_eq!(sources_of("Zebulonia", "Rome"), Some(vec![context[0].id]));
    assert_eq!(sources_of("Ada", "Rome"), Some(Vec::new()));
    assert_eq!(sources_of("Zebulonia", "Atlantis"), None);
}

proptest! {
    #[test]
    fn any_text_is_checked_and_nothing_unsaid_is_supported(text in "(I|My|She|We|Ada|the|moved|lives|is|not|to|in|Rome|and|,|\\.| |'s|\\PC){0,40}") {
        let draft = lives("Ada", "Zebulonia", &text);
        prop_assert!(!is_supported(&draft, &text, &["Ada"]));
        prop_assert_eq!(sources(&draft, &said(1, "Ada", &text), &[]), None);
        let _ = is_verb_said(&draft, &text);
        let _ = as_told(draft, &text, said(1, "Ada", &text).said_at, &Locale::default());
    }
}
