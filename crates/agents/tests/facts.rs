//! What the rules take from sentences, and what they leave.
#![allow(clippy::unwrap_used)]

use chrono_tz::Tz;
use memfleet_agents::facts::{Utterance, as_told, facts, is_supported, sources};
use memfleet_domain::fact::{Draft, Stance};
use memfleet_domain::ids::TurnId;
use memfleet_domain::space::Locale;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::{Role, Trust};
use memfleet_language::Language;
use proptest::prelude::*;

fn said<'t>(number: u8, speaker: &'t str, text: &'t str) -> Utterance<'t> {
    Utterance {
        id: TurnId::from_bytes([number; 16]),
        speaker,
        role: Role::User,
        trust: Trust::User,
        text,
        said_at: Timestamp::from_timestamp(1_718_000_000, 0).unwrap(),
    }
}

fn drafts(text: &str) -> Vec<Draft> {
    facts(&said(9, "Ada", text), &[], Language::English, Tz::UTC)
}

/// Claims as `subject/attribute=value`, `!` before what is denied.
fn claims(text: &str) -> Vec<String> {
    shown(&drafts(text))
}

fn shown(drafts: &[Draft]) -> Vec<String> {
    let shown = drafts.iter().map(|draft| {
        let negation = if draft.is_negated() { "!" } else { "" };
        let claim = &draft.claim;
        format!(
            "{negation}{}/{}={}",
            claim.subject, claim.attribute, claim.value
        )
    });
    shown.collect()
}

/// When a fact of a text holds that somebody else dates like this, and how much of that the text does not tell.
fn dated(text: &str, from: &str, until: &str) -> (String, u32) {
    let date = |date: &str| {
        let instant = format!("{date}T00:00:00Z");
        (!date.is_empty()).then(|| instant.parse::<Timestamp>().unwrap())
    };
    let utterance = said(9, "Ada", text);
    let mut draft = drafts("I live in Rome.").remove(0);
    draft.evidence = 0..text.len() as u32;
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
        let draft = drafts("I live in Rome.").remove(0);
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
        let mut draft = drafts("I live in Oslo.").remove(0);
        draft.stance = Stance::Corrects;
        let (draft, untold) = as_told(draft, text, utterance.said_at, &Locale::default());
        assert_eq!(draft.stance, stance, "{text}");
        assert_eq!(untold == 0, stance == Stance::Corrects, "{text}");
    }
}

#[test]
fn one_attribute_is_told_in_many_ways() {
    for text in [
        "I live in Lisbon.",
        "I moved to Lisbon last spring.",
        "We've relocated to Lisbon!",
        "I'm based in Lisbon now",
        "By the way, I settled in Lisbon.",
        "I've been living in Lisbon since March.",
        "My hometown is Lisbon.",
    ] {
        assert_eq!(claims(text), ["ada/residence=lisbon"], "{text}");
    }
    for text in ["I work for Acme.", "I joined Acme.", "My employer is Acme."] {
        assert_eq!(claims(text), ["ada/employer=acme"], "{text}");
    }
    for text in [
        "My favourite colour is teal.",
        "My favorite color is teal now.",
    ] {
        assert!(
            claims(text)[0].starts_with("ada/favorite color=teal"),
            "{text}: {:?}",
            claims(text)
        );
    }
    assert_eq!(claims("I'm 34 years old."), ["ada/age=34"]);
    assert_eq!(claims("I'm a nurse at St Mary."), ["ada/occupation=nurse"]);
    assert_eq!(
        claims("My phone number is 555-0147."),
        ["ada/phone=555-0147"]
    );
    assert_eq!(claims("I have three cats."), ["ada/number of cats=3"]);
}

#[test]
fn a_speaker_takes_back_an_own_statement_in_so_many_words() {
    let taken_back = |text: &str| {
        let drafts = drafts(text);
        let taken: Vec<_> = drafts.iter().filter(|draft| draft.takes_back).collect();
        shown(&taken.into_iter().cloned().collect::<Vec<_>>())
    };
    for text in [
        "I no longer live in Rome.",
        "I don't live in Rome anymore.",
        "I don't live in Rome any more.",
    ] {
        assert_eq!(taken_back(text), ["!ada/residence=rome"], "{text}");
    }
    assert_eq!(
        taken_back("I said I live in Rome but I meant Oslo."),
        ["!ada/residence=rome", "ada/residence=oslo"]
    );
    for text in [
        "I don't live in Rome.",
        "Ben no longer lives in Rome.",
        "She no longer lives in Rome.",
        "I left Rome.",
        "I quit smoking.",
        "I hardly live in Rome.",
        "I used to live in Rome.",
        "Ben said \"I no longer live in Rome.\"",
    ] {
        assert_eq!(taken_back(text), [""; 0], "{text}");
    }
}

#[test]
fn leaving_and_moving_deny_nothing() {
    for text in [
        "I quit smoking last year.",
        "I left Anna at the station.",
        "I moved from Rome to Oslo.",
        "I resigned from Acme.",
        "I sold the car.",
    ] {
        assert!(
            !claims(text).iter().any(|claim| claim.starts_with('!')),
            "{text}: {:?}",
            claims(text)
        );
    }
}

#[test]
fn only_the_own_words_of_a_user_state_facts() {
    for text in [
        "Can you summarise this email?\n\nFrom: Dana\n\nI live in Denver now and I work for Globex.",
        "> I live in Rome and I have no partner.\n\nHaha, that is so you!",
        "```python\n# I live in Rome\n```\nWhy does this fail?",
        "Mentor, 10:02: I moved to Lima, I work at Globex now\nme: congrats!",
        "2025-03-01 12:00:01 ERROR worker-3 is not responding",
        "Translate to French: I live in Rome and I work at Globex.",
        "She wrote \"I live in Rome. I work at Globex.\"",
        "«Ich wohne in Rom» und «I live in Rome»",
    ] {
        let claims = claims(text);
        let is_foreign = |claim: &String| claim.contains("residence") || claim.contains("employer");
        assert!(!claims.iter().any(is_foreign), "{text}: {claims:?}");
    }
    let text = "I live in Rome.";
    for (role, trust) in [
        (Role::Assistant, Trust::Assistant),
        (Role::Tool, Trust::Tool),
        (Role::System, Trust::User),
        (Role::User, Trust::Web),
        (Role::User, Trust::Tool),
    ] {
        let turn = Utterance {
            role,
            trust,
            ..said(9, "Ada", text)
        };
        assert_eq!(
            facts(&turn, &[], Language::English, Tz::UTC),
            [],
            "{role:?} {trust:?}"
        );
    }
}

#[test]
fn what_is_no_statement_is_left_out() {
    for text in [
        "Do you live in Rome?",
        "I might move to Rome.",
        "If I lived in Rome, I would eat well.",
        "I want to live in Rome.",
        "I'm thinking about moving to Rome.",
        "I would love to work for Acme.",
        "I wish I lived in Rome.",
        "Maybe I work for Acme.",
        "I think Ben lives in Rome.",
        "Move to Rome!",
        "I have to move to Rome.",
    ] {
        assert_eq!(claims(text), [""; 0], "{text}");
    }
}

#[test]
fn what_somebody_who_is_named_has_is_not_the_speakers() {
    for text in [
        "Ben's phone number is 555-0147-22.",
        "Ben drives a Tesla.",
        "Ben's employer is Acme.",
        "Ben is on a keto diet.",
        "Ben has a new phone, a Pixel 9.",
        "Ben wakes up at 6:15 am.",
        "Clara told me her email is clara@example.com.",
        "Clara's favorite color is teal.",
        "My mother-in-law drives a Mazda.",
        "The other team has 28 people.",
    ] {
        let claims = claims(text);
        assert!(
            !claims.iter().any(|claim| claim.starts_with("ada/")),
            "{text}: {claims:?}"
        );
    }
    assert_eq!(claims("Ben is our new team lead."), ["ada/team lead=ben"]);
}

#[test]
fn somebody_else_is_somebody_else() {
    assert_eq!(
        claims("My brother lives in Rome."),
        ["ada's brother/residence=rome"]
    );
    assert_eq!(
        claims("My sister Mia moved to Rome."),
        ["mia/residence=rome"]
    );
    assert_eq!(claims("Ben works for Acme."), ["ben/employer=acme"]);
    assert_eq!(
        claims("I live in Oslo and my brother lives in Rome."),
        ["ada/residence=oslo", "ada's brother/residence=rome"]
    );
    assert_eq!(
        claims("I live in Oslo and work for Acme."),
        ["ada/residence=oslo", "ada/employer=acme"]
    );
    let context = [
        said(1, "Ada", "My sister Mia called."),
        said(2, "Ben", "Nice!"),
    ];
    let turn = said(3, "Ada", "She lives in Rome.");
    let drafts = facts(&turn, &context, Language::English, Tz::UTC);
    assert_eq!(shown(&drafts), ["mia/residence=rome"]);
    assert_eq!(drafts[0].related, [context[0].id]);
}

#[test]
fn evidence_has_the_subject_that_a_clause_goes_on_from() {
    let text = "Hi! Ben lives in Oslo and works for Acme.";
    let evidence =
        |draft: &Draft| text[draft.evidence.start as usize..draft.evidence.end as usize].to_owned();
    let evidence: Vec<String> = drafts(text).iter().map(evidence).collect();
    assert_eq!(
        evidence,
        ["Ben lives in Oslo", "Ben lives in Oslo and works for Acme"]
    );
}

#[test]
fn what_was_so_once_has_ended() {
    let drafts = drafts("I used to live in Rome.");
    assert_eq!(shown(&drafts), ["ada/residence=rome"]);
    assert!(drafts[0].valid.end.is_some());
}

#[test]
fn a_denial_of_the_time_denies_nothing_else() {
    for text in [
        "I don't go to the gym on Mondays.",
        "My project isn't due on May 5.",
        "I don't swim on Tuesday evening.",
    ] {
        assert_eq!(claims(text), Vec::<String>::new(), "{text}");
    }
    for text in [
        "I don't live in Rome.",
        "I haven't lived in Rome since May.",
    ] {
        assert_eq!(claims(text), ["!ada/residence=rome"], "{text}");
    }
}

#[test]
fn a_fact_is_supported_by_its_own_words_only() {
    let text = "Emma does not live in Atlanta, she moved to Rome.";
    let draft = drafts("Emma lives in Atlanta.").remove(0);
    let supported = |value: &str, sentence: &str| {
        let mut draft = draft.clone();
        draft.text = sentence.to_owned();
        draft.clause.as_mut().unwrap().complement = Some(value.to_owned());
        draft.evidence = 0..text.len() as u32;
        is_supported(&draft, text, &["Ada"])
    };
    assert!(supported("Rome", "Emma moved to Rome."));
    assert!(!supported("Atlantis", "Emma lives in Atlantis."));
    assert!(!supported("Atlantis", "Emma moved to Rome."));
}

#[test]
fn other_languages_are_not_guessed_at() {
    let turn = said(1, "Ada", "Ich wohne in Rom.");
    assert_eq!(facts(&turn, &[], Language::German, Tz::UTC), []);
}

proptest! {
    #[test]
    fn any_text_is_read_and_every_fact_rests_on_its_words(text in "(I|My|She|We|Ada|the|moved|lives|is|not|to|in|Rome|and|,|\\.| |'s|\\PC){0,40}") {
        for draft in drafts(&text) {
            let evidence = &text[draft.evidence.start as usize..draft.evidence.end as usize];
            prop_assert!(!evidence.is_empty());
            prop_assert!(is_supported(&draft, &text, &["Ada"]), "{draft:?}");
        }
    }
}

/// Names and values of which each is said by the turns that hold it and by nothing else.
const NAMES: [&str; 4] = ["Zebulonia", "Quorrin", "Ysolde", "Wimbleton"];
const VALUES: [&str; 6] = ["Porto", "Siemens", "Pixel", "poodle", "lawyer", "Lisbon"];
const KIN: [&str; 3] = ["sister", "boss", "friend"];
const THINGS: [&str; 4] = ["husband", "dog", "phone", "house"];

/// A sentence with names, pronouns, possessives, answers and quotations.
fn sentence() -> impl Strategy<Value = String> {
    let owner = prop::sample::select(vec!["My", "His", "Her", "Their", "Your"]);
    let who = prop::sample::select(vec!["I", "He", "She", "They", "You", "It", "That"]);
    let (name, value) = (
        prop::sample::select(&NAMES[..]),
        prop::sample::select(&VALUES[..]),
    );
    let (kin, thing) = (
        prop::sample::select(&KIN[..]),
        prop::sample::select(&THINGS[..]),
    );
    prop_oneof![
        (kin.clone(), name.clone(), value.clone())
            .prop_map(|(kin, name, value)| format!("My {kin} {name} moved to {value} last week.")),
        (kin, value.clone()).prop_map(|(kin, value)| format!("My {kin} works at {value}.")),
        (owner, thing, value.clone())
            .prop_map(|(owner, thing, value)| format!("{owner} {thing} is a {value}.")),
        (who, value.clone()).prop_map(|(who, value)| format!("{who} lives in {value}.")),
        (name.clone(), value.clone())
            .prop_map(|(name, value)| format!("{name} is in {value} and she likes {value}.")),
        (name, value.clone())
            .prop_map(|(name, value)| format!("{name} said \"I live in {value}\" and laughed.")),
        value.prop_map(|value| format!("In {value}, yes.")),
    ]
}

proptest! {
    #[test]
    fn every_word_of_a_fact_is_said_by_a_turn_of_its_lineage(
        texts in prop::collection::vec((0..2_usize, prop::collection::vec(sentence(), 1..4)), 1..7)
    ) {
        let texts: Vec<_> = texts.iter().map(|(who, said)| (["Ada", "Brunhild"][*who], said.join(" "))).collect();
        let turns = texts.iter().zip(1..).map(|((speaker, text), number)| said(number, speaker, text));
        let turns: Vec<_> = turns.collect();
        let (turn, before) = turns.split_last().unwrap();
        for draft in facts(turn, before, Language::English, Tz::UTC) {
            let untraced = Draft { related: Vec::new(), ..draft.clone() };
            for related in [&draft.related, &sources(&untraced, turn, before).unwrap()] {
                let lineage = turns.iter().filter(|said| said.id == turn.id || related.contains(&said.id));
                let words = lineage.map(|said| format!("{} {}", said.speaker, said.text).to_lowercase());
                let words: String = words.collect();
                for word in NAMES.iter().chain(&VALUES).chain(&KIN).chain(&THINGS).chain(&["Ada", "Brunhild"]) {
                    let word = word.to_lowercase();
                    let is_said = !draft.text.to_lowercase().contains(&word) || words.contains(&word);
                    prop_assert!(is_said, "{word} of {draft:?} is not in {words}");
                }
            }
        }
    }
}
