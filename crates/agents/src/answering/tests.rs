use std::collections::BTreeMap;

use chrono_tz::UTC;
use memfleet_domain::derivation::{Body, Origin};
use memfleet_domain::ids::{ChangeId, SessionId, Speaker, TurnId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::{AcceptedTurn, Content, Replacement, Role, Trust};
use proptest::prelude::*;

use super::*;
use crate::facts::{Utterance, facts};

/// Turns in the order in which they were said, a day apart, with the facts that the rules find in them.
struct Told {
    turns: Vec<(Turn, Vec<Derivation>)>,
}

fn instant(day: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(86_400 * day as u64)
}

impl Told {
    fn of(said: &[(&str, &str)]) -> Self {
        let turns = said.iter().enumerate().map(|(place, (speaker, text))| {
            let turn = turn(place as u8, speaker, text);
            let facts = stated(&turn);
            (turn, facts)
        });
        Self {
            turns: turns.collect(),
        }
    }

    /// Ends what a turn states when another begins.
    fn ended(mut self, old: usize, new: usize) -> Self {
        let next = self.turns[new].1[0].clone();
        for fact in &mut self.turns[old].1 {
            fact.valid.end = next.valid.start;
            fact.succeeded_by = Some(next.id);
        }
        self
    }

    fn ask(&self, text: &str) -> Vec<Statement> {
        self.ask_at(text, instant(100))
    }

    fn ask_at(&self, text: &str, holds_at: Timestamp) -> Vec<Statement> {
        let texts: Vec<String> = self
            .turns
            .iter()
            .map(|(turn, _)| turn.accepted.content.searchable_text())
            .collect();
        let asking = Asking::of(text, Language::English);
        let evidence: Vec<Evidence<'_>> = self
            .turns
            .iter()
            .zip(&texts)
            .map(|((turn, facts), text)| Evidence {
                turn,
                text,
                facts,
                outdated: facts
                    .iter()
                    .find(|fact| {
                        let draft = fact.fact().unwrap();
                        fact.succeeded_by.is_some()
                            && !fact.valid.contains(holds_at)
                            && asking.is_for(draft, turn.accepted.speaker.as_str())
                    })
                    .map(|fact| fact.id),
            })
            .collect();
        let question = Question {
            text,
            language: Language::English,
            zone: UTC,
            asked_at: holds_at,
            holds_at,
        };
        answer(&question, &evidence)
    }

    fn says(&self, text: &str) -> Vec<String> {
        let said = self.ask(text).into_iter();
        said.map(|statement| statement.text).collect()
    }

    fn quoted(&self, statement: &Statement) -> &str {
        let source = &statement.sources[0];
        let text = &self.turns[source.place].0.accepted.content.text;
        &text[source.words.start as usize..source.words.end as usize]
    }
}

fn turn(place: u8, speaker: &str, text: &str) -> Turn {
    let accepted = AcceptedTurn {
        id: TurnId::from_bytes([place + 1; 16]),
        session: SessionId::new("s").unwrap(),
        external_id: None,
        speaker: Speaker::new(speaker).unwrap(),
        role: Role::User,
        content: Content {
            text: text.to_owned(),
            media: Vec::new(),
        },
        event_time: Some(instant(place.into())),
        recorded_at: instant(place.into()),
        metadata: BTreeMap::new(),
        trust: Trust::User,
        replaces: None,
        echoes: Vec::new(),
        place: None,
    };
    Turn {
        accepted,
        position: place.into(),
        replaced: None,
    }
}

fn stated(turn: &Turn) -> Vec<Derivation> {
    let said = Utterance {
        id: turn.accepted.id,
        speaker: turn.accepted.speaker.as_str(),
        role: turn.accepted.role,
        trust: turn.accepted.trust,
        text: &turn.accepted.content.text,
        said_at: turn.accepted.effective_time(),
    };
    let drafts = facts(&said, &[], Language::English, UTC).into_iter();
    let kept = drafts.map(|draft| Derivation {
        id: DerivationId::of_fact(said.id, &draft.claim, draft.is_negated()),
        version: 1,
        valid: TimeRange {
            start: Some(draft.valid.start.unwrap_or(said.said_at)),
            ..draft.valid
        },
        body: Body::Fact(Box::new(draft)),
        turns: vec![said.id],
        known: TimeRange::default(),
        origin: Origin::Extracted("model/facts-1".into()),
        change: ChangeId::from_bytes([1; 16]),
        succeeded_by: None,
    });
    kept.collect()
}

fn moved() -> Told {
    Told::of(&[("Ada", "I live in Rome."), ("Ada", "I moved to Oslo.")]).ended(0, 1)
}

#[test]
fn how_it_is_now_is_what_holds_now() {
    let told = moved();
    for question in [
        "Where does Ada live?",
        "Where do I live these days?",
        "Which city does Ada currently live in?",
        "Does Ada live in Rome?",
    ] {
        let said = told.ask(question);
        assert_eq!(said.len(), 1, "{question}: {said:?}");
        assert!(said[0].text.contains("Oslo"), "{question}: {said:?}");
        assert_eq!(told.quoted(&said[0]), "I moved to Oslo", "{question}");
    }
}

#[test]
fn how_it_was_comes_with_its_dates() {
    for question in [
        "Where did Ada live before?",
        "Where did Ada live before Oslo?",
    ] {
        assert_eq!(
            moved().says(question),
            ["Ada lives in Rome. (1970-01-01 to 1970-01-02)"],
            "{question}"
        );
    }
    let said = moved().ask_at("Where does Ada live?", instant(0));
    assert_eq!(said[0].text, "Ada lives in Rome.");
}

#[test]
fn several_values_are_all_said_newest_first_and_one_value_once() {
    let told = Told::of(&[
        ("Ada", "I like figs."),
        ("Ada", "I like olives."),
        ("Ada", "I like figs."),
    ]);
    let said = told.ask("What does Ada like?");
    let texts: Vec<_> = said.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts, ["Ada likes figs.", "Ada likes olives."]);
    let places: Vec<_> = said[0].sources.iter().map(|source| source.place).collect();
    assert_eq!(places, [2, 0]);
}

#[test]
fn a_denial_answers_who_asks_for_it() {
    let told = Told::of(&[("Ada", "I don't like olives."), ("Ada", "I like figs.")]);
    assert_eq!(told.says("What does Ada like?"), ["Ada likes figs."]);
    let said = told.says("Does Ada like olives?");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("not"), "{said:?}");
}

#[test]
fn what_was_never_said_is_not_answered() {
    let told = Told::of(&[
        ("Ada", "I live in Rome."),
        ("Ada", "My sister lives in Bergen."),
        ("Ben", "My favorite color is blue."),
        ("Ben", "I bought a piano."),
        ("Ada", "What is the name of your dog?"),
        ("Ada", "My dog is ill."),
    ]);
    for question in [
        "What is Ada's favorite color?",
        "What is Ada's favorite film?",
        "Where does Cleo live?",
        "Where does Ben live?",
        "Where does Ada's brother live?",
        "What did Ben buy in Paris?",
        "What is the name of Ada's dog?",
        "Why did Ada move to Rome?",
        "Who is Ada?",
        "What is the weather in Lisbon?",
    ] {
        assert_eq!(told.ask(question), [], "{question}");
    }
    assert_eq!(told.says("Where does Ada live?"), ["Ada lives in Rome."]);
    let sister = told.says("Where does Ada's sister live?");
    assert_eq!(sister, ["Ada's sister lives in Bergen."]);
}

#[test]
fn a_sentence_that_covers_the_question_is_quoted_with_who_and_when() {
    let told = Told::of(&[
        ("Ben", "Hello! How was the trip?"),
        (
            "Ada",
            "It rained all week. The ferry to Bodø was cancelled because of the storm. We played cards.",
        ),
    ]);
    let said = told.ask("Why was the ferry cancelled?");
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(
        said[0].text,
        "Ada, 1970-01-02: \"The ferry to Bodø was cancelled because of the storm.\""
    );
    assert_eq!(
        told.quoted(&said[0]),
        "The ferry to Bodø was cancelled because of the storm."
    );
}

#[test]
fn words_that_stand_in_several_sentences_are_quoted_together() {
    let told = Told::of(&[(
        "Ada",
        "We adopted a greyhound. Her name is Biscuit. It is late.",
    )]);
    let said = told.ask("How is the greyhound's name spelled or said?");
    assert!(
        said.is_empty() || told.quoted(&said[0]).contains("Biscuit"),
        "{said:?}"
    );
    let said = told.ask("When did we name the greyhound?");
    assert_eq!(
        told.quoted(&said[0]),
        "We adopted a greyhound. Her name is Biscuit."
    );
}

#[test]
fn a_time_is_covered_by_a_turn_of_that_time() {
    let told = Told::of(&[
        ("Ada", "The concert was wonderful."),
        ("Ada", "The concert was too loud."),
    ]);
    let said = told.says("How was the concert on January 2, 1970?");
    assert_eq!(said, ["Ada, 1970-01-02: \"The concert was too loud.\""]);
}

#[test]
fn what_is_over_is_marked_and_never_the_answer() {
    let told = moved();
    let said = told.says("Why does Ada mention Rome?");
    assert_eq!(
        said,
        ["Ada, 1970-01-01: \"I live in Rome.\" (no longer so since 1970-01-02)"]
    );
    let alone = Told {
        turns: vec![told.turns[0].clone()],
    };
    assert_eq!(alone.ask("Where does Ada live?"), []);
}

#[test]
fn a_corrected_fact_rests_on_no_words_and_marks_those_that_were_said() {
    let mut told = Told::of(&[("Ada", "I live in Rome.")]);
    let fact = &mut told.turns[0].1[0];
    fact.origin = Origin::Corrected;
    let Body::Fact(draft) = &mut fact.body else {
        unreachable!()
    };
    draft.text = "Ada lives in Riga.".into();
    draft.claim.value = "riga".into();
    let said = told.ask("Where does Ada live?");
    assert_eq!(said[0].text, "Ada lives in Riga.");
    assert!(said[0].sources[0].words.is_empty());
    let said = told.says("When was Ada in Rome?");
    assert!(
        said[0].ends_with("(corrected: Ada lives in Riga.)"),
        "{said:?}"
    );
}

#[test]
fn a_replaced_turn_is_not_quoted() {
    let mut told = Told::of(&[("Ada", "The ferry was cancelled.")]);
    let by = TurnId::from_bytes([9; 16]);
    told.turns[0].0.replaced = Some(Replacement { by, at: instant(1) });
    assert_eq!(told.ask("Was the ferry cancelled?"), []);
}

#[test]
fn other_scripts_are_quoted_whole() {
    let told = Told::of(&[
        ("艾达", "我的猫叫小白。她喜欢吃鱼。"),
        ("Ада", "Паром отменили из-за шторма."),
    ]);
    let said = told.ask("小白喜欢吃鱼");
    assert!(
        said.is_empty() || told.quoted(&said[0]).ends_with('。'),
        "{said:?}"
    );
    let said = told.ask("Паром отменили?");
    assert_eq!(told.quoted(&said[0]), "Паром отменили из-за шторма.");
}

proptest! {
    #[test]
    fn any_text_is_cut_at_its_letters(text in "(\\PC|[?.。 \n]|figs ){0,60}", question in "\\PC{0,40} figs\\PC{0,9}") {
        let text = format!("{text}x");
        let told = Told::of(&[("Ada", &text), ("Ада", "I like figs.")]);
        for statement in told.ask(&question) {
            prop_assert!(!told.quoted(&statement).is_empty());
        }
    }
}
