//! Questions answered by quotations.

use chrono::TimeDelta;
use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::time::Timestamp;
use memfleet_ports::conformance::knowledge::{deriving, statement};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::knowledge::{Applied, Knowledge, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::memory::Outcome;

use crate::answering::{Answer, ask, question};
use crate::roles::{Node, acme, said, space};

/// A node to which these turns were said a day apart.
async fn told(turns: &[&str]) -> Node {
    let node = Node::new().await;
    for (day, text) in turns.iter().enumerate() {
        let mut turn = said(text);
        turn.event_time = Some(Timestamp::UNIX_EPOCH + TimeDelta::days(day as i64));
        node.told("ada", vec![turn]).await;
    }
    node
}

async fn asked(node: &Node, text: &str) -> Answer {
    ask(&node.gateway, question("ada", text)).await.unwrap()
}

#[tokio::test]
async fn a_statement_is_quoted_in_its_own_words_with_who_said_it_and_when() {
    let long = format!(
        "Thanks! My bicycle is blue. {}",
        "It rains again. ".repeat(10)
    );
    let node = told(&[&long, "We ate soup."]).await;
    let answer = asked(&node, "Bicycle?").await;
    assert_eq!(answer.text, "1970-01-01, Ada: \"My bicycle is blue.\"");
    let [citation] = &answer.cited[..] else {
        panic!("{answer:?}");
    };
    assert_eq!(citation.quote, "My bicycle is blue.");
    assert_eq!(answer.end.outcome, Outcome::Answered);
    assert!(!answer.end.is_uncertain && answer.end.degraded.is_empty());
}

#[tokio::test]
async fn a_short_turn_is_quoted_as_a_whole() {
    let node = told(&["Thanks! My bicycle is blue."]).await;
    let answer = asked(&node, "Bicycle?").await;
    assert_eq!(
        answer.text,
        "1970-01-01, Ada: \"Thanks! My bicycle is blue.\""
    );
}

#[tokio::test]
async fn memory_that_does_not_hold_the_answer_is_not_quoted() {
    let node = told(&["My bicycle is blue.", "Where is my umbrella?"]).await;
    for text in ["Dentist?", "Umbrella?"] {
        let answer = asked(&node, text).await;
        assert_eq!(answer.end.outcome, Outcome::Abstained, "{answer:?}");
        assert!(answer.text.is_empty() && answer.cited.is_empty());
    }
}

#[tokio::test]
async fn of_two_statements_the_one_that_holds_is_quoted_and_of_the_past_the_one_that_ended() {
    let node = told(&["My bicycle is blue as before.", "My bicycle is green now."]).await;
    let answer = asked(&node, "Bicycle?").await;
    assert_eq!(answer.text, "1970-01-02, Ada: \"My bicycle is green now.\"");
    let answer = asked(&node, "Bicycle before?").await;
    assert_eq!(
        answer.text,
        "1970-01-01, Ada: \"My bicycle is blue as before.\""
    );
}

#[tokio::test]
async fn words_of_any_script_are_quoted() {
    let node = told(&["我的自行车是蓝色的。", "मेरी साइकिल नीली है।"]).await;
    let answer = asked(&node, "मेरी साइकिल").await;
    assert_eq!(answer.text, "1970-01-02, Ada: \"मेरी साइकिल नीली है।\"");
}

#[tokio::test]
async fn without_a_reader_there_is_no_answer_and_it_says_so() {
    let node = told(&["My bicycle is blue."]).await;
    node.reader.set_missing(true);
    let answer = asked(&node, "Bicycle?").await;
    let [degraded] = &answer.end.degraded[..] else {
        panic!("{answer:?}");
    };
    assert!(
        degraded.starts_with("quotations: the reader of turns"),
        "{degraded}"
    );
    assert_eq!(answer.end.outcome, Outcome::Abstained);
    assert!(answer.text.is_empty() && answer.cited.is_empty());
}

#[tokio::test]
async fn words_that_a_caller_corrected_are_not_quoted() {
    let node = told(&["My bicycle is blue."]).await;
    let scope = acme().scope(&space("ada"));
    let session = said("").session;
    let turns = node.store.latest(&scope, &session, 1).await.unwrap();
    let stated = statement(&turns[0].accepted, "My bicycle is blue.", instant(10));
    let corrected = Derivation {
        origin: Origin::Corrected,
        ..stated
    };
    let work = Work {
        rewrites: vec![deriving(&[&corrected])],
        ..Work::default()
    };
    let applied = node.store.apply(&scope, work).await.unwrap();
    assert_ne!(applied, Applied::Stale);
    let answer = asked(&node, "Bicycle?").await;
    assert_eq!(answer.end.outcome, Outcome::Abstained, "{answer:?}");
}
