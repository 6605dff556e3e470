use chrono::{TimeZone, Utc};
use chrono_tz::Tz;
use memfleet_language::Language;
use proptest::prelude::*;

use super::*;

fn now() -> Timestamp {
    Utc.with_ymd_and_hms(2024, 5, 17, 9, 0, 0).unwrap()
}

fn said(text: &str) -> Utterance<'_> {
    Utterance {
        id: "018f2b6c-7a35-8d6e-9c41-5b0a7d3e2f10".parse().unwrap(),
        speaker: "Ben",
        text,
        said_at: now(),
    }
}

fn asked(query: &str, turns: &[&str]) -> Reading {
    let recent: Vec<_> = turns.iter().map(|text| said(text)).collect();
    read(query, &recent, now(), Tz::UTC, Language::English)
}

fn bits(query: &str, language: Language) -> [bool; 4] {
    let Intent {
        fine,
        abstracted,
        event,
        atomic,
    } = read(query, &[], now(), Tz::UTC, language).intent;
    [fine, abstracted, event, atomic]
}

const FINE: [bool; 4] = [true, false, false, false];
const ABSTRACT: [bool; 4] = [false, true, false, false];
const EVENT: [bool; 4] = [false, false, true, false];
const ATOMIC: [bool; 4] = [false, false, false, true];

#[test]
fn wording_tells_the_intent() {
    for (query, intent) in [
        ("What exactly did Anna say about the roof?", FINE),
        ("Who said \"never again\"?", FINE),
        ("Which invoice had the number 48213?", FINE),
        ("Give me an overview of the renovation.", ABSTRACT),
        ("What are the main points about the garden?", ABSTRACT),
        ("How did her opinion of the job evolve?", EVENT),
        ("In which order did I visit the museums?", EVENT),
        ("Where does Anna live?", ATOMIC),
        ("What is my dentist called?", ATOMIC),
        ("Where was I in May 2023?", ATOMIC),
        ("Tell me something nice.", [false; 4]),
    ] {
        assert_eq!(bits(query, Language::English), intent, "{query}");
    }
}

#[test]
fn intents_are_heard_in_other_languages() {
    for (query, language, intent) in [
        (
            "Was genau hat Anna über das Dach gesagt?",
            Language::German,
            FINE,
        ),
        (
            "Gib mir einen Überblick über den Umbau.",
            Language::German,
            ABSTRACT,
        ),
        ("Wo wohnt Anna?", Language::German, ATOMIC),
        (
            "Dans quel ordre ai-je visité les musées ?",
            Language::French,
            EVENT,
        ),
        ("¿Dónde vive Anna?", Language::Spanish, ATOMIC),
        ("Dove vive Anna?", Language::Italian, [false; 4]),
    ] {
        assert_eq!(bits(query, language), intent, "{query}");
    }
}

#[test]
fn as_many_memories_are_wanted_as_the_query_says() {
    for (query, count) in [
        ("Where does Anna live?", 1),
        ("Which two cities did I visit?", 2),
        ("Name three dishes that I cooked.", 3),
        ("What were the last 12 films?", 12),
        ("Which books did she read?", 10),
        ("Sum up the renovation in an overview.", 10),
        ("List all the instruments.", 30),
        ("How many times did I swim?", 30),
        ("What happened in the first 3000 pages?", 1),
        ("What does the garden need?", 1),
    ] {
        assert_eq!(asked(query, &[]).k_dyn, count, "{query}");
    }
}

#[test]
fn pronouns_are_named_where_one_choice_is_left() {
    for (query, turns, rewritten) in [
        (
            "Where does she work?",
            &["I had lunch with Anna yesterday."][..],
            "Where does Anna work?",
        ),
        (
            "What is her job?",
            &["My sister Carla texted me."],
            "What is Carla's job?",
        ),
        (
            "When did I see her?",
            &["I met Anna again."],
            "When did I see Anna?",
        ),
        (
            "What did he buy?",
            &["My brother was here.", "Nice weather today!"],
            "What did the brother buy?",
        ),
        (
            "Who do I know there?",
            &["We are moving to Oslo in March."],
            "Who do I know in Oslo?",
        ),
        (
            "What did it cost?",
            &["I finally bought a red bicycle."],
            "What did the red bicycle cost?",
        ),
        (
            "What did I say about that?",
            &["We sold the old piano."],
            "What did I say about the old piano?",
        ),
    ] {
        assert_eq!(asked(query, turns).rewritten, rewritten);
    }
}

#[test]
fn pronouns_stay_where_several_choices_or_none_are_left() {
    for (query, turns) in [
        ("Where does she work?", &["I met Anna and saw Carla."][..]),
        ("Where does she work?", &["My brother was here."]),
        ("Where does she work?", &[]),
        ("Is there any milk?", &["We moved to Oslo."]),
        ("Did Anna's mother like her job?", &["I met Carla."]),
        ("Did it rain?", &["I bought a red bicycle."]),
        ("What time is it?", &["I bought a red bicycle."]),
        ("I know that Anna left.", &["I bought a red bicycle."]),
        (
            "Did the cake have cream in it?",
            &["I bought a red bicycle."],
        ),
        ("Did she like it there?", &["Oslo was great."]),
    ] {
        assert_eq!(asked(query, turns).rewritten, query);
    }
}

#[test]
fn the_nearest_turn_decides() {
    let turns = ["I met Anna.", "Then I met Carla."];
    assert_eq!(asked("Where is she?", &turns).rewritten, "Where is Carla?");
}

#[test]
fn other_languages_keep_their_words() {
    let turn = said("I met Anna.");
    let query = "Where does she work?";
    let reading = read(query, &[turn], now(), Tz::UTC, Language::German);
    assert_eq!(reading.rewritten, query);
}

proptest! {
    #[test]
    fn any_text_can_be_read(query in "\\PC{0,80}", turn in "\\PC{0,80}") {
        let reading = asked(&format!("she it there {query}"), &[&turn]);
        prop_assert!(reading.k_dyn >= 1);
        prop_assert!(!reading.rewritten.is_empty());
    }
}
