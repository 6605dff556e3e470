//! Statements in their own words, as recall marks and orders them.

use memfleet_domain::derivation::{Conflict, Derivation, Status};
use memfleet_ports::assembly::Assembly;
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, statement};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::knowledge::{Applied, Knowledge, Question, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::memory::{HitGranularity, Memory, RecallRequest};
use memfleet_ports::retriever::{Found, Query};
use memfleet_ports::testing::SentenceReader;

use crate::assembling::assemble;
use crate::roles::{Node, acme, recall, said, space};

/// A node to which `older` was told and then `newer`, of which the second ended the first words.
async fn ended(older: &str, words: &str, newer: &str) -> (Node, Derivation) {
    let (node, [before, after]) = stated(older, words, newer).await;
    let found = conflict(&before, &after);
    for work in [
        Work {
            found: vec![found.clone()],
            ..Work::default()
        },
        Work {
            rewrites: vec![closing(&before, &after, 30)],
            settled: vec![(found.id, Status::Settled)],
            ..Work::default()
        },
    ] {
        apply(&node, work).await;
    }
    (node, before)
}

/// A node to which two turns were told, of which the second may have ended the first.
async fn possibly_ended(older: &str, newer: &str) -> (Node, [Derivation; 2]) {
    let (node, [before, after]) = stated(older, older, newer).await;
    let possible = Conflict {
        status: Status::Possible,
        probability: Some(0.75),
        judge: SentenceReader::NAME.to_owned(),
        ..conflict(&before, &after)
    };
    let work = Work {
        found: vec![possible],
        ..Work::default()
    };
    apply(&node, work).await;
    (node, [before, after])
}

async fn apply(node: &Node, work: Work) {
    let scope = acme().scope(&space("ada"));
    let applied = node.store.apply(&scope, work).await.unwrap();
    assert_ne!(applied, Applied::Stale);
}

/// A node to which `older` was told and then `newer`, with the statements `words` of the first, the
/// second, and all others.
async fn stated(older: &str, words: &str, newer: &str) -> (Node, [Derivation; 2]) {
    let node = Node::new().await;
    let scope = acme().scope(&space("ada"));
    let receipt = node.told("ada", vec![said(older), said(newer)]).await;
    let ids: Vec<_> = receipt.turns.iter().map(|turn| turn.id).collect();
    let turns = node.store.turns(&scope, &ids).await.unwrap();
    let before = statement(&turns[0].accepted, words, instant(10));
    let after = statement(&turns[1].accepted, newer, instant(20));
    let mut stated = vec![deriving(&[&before]), deriving(&[&after])];
    let others = older.split_inclusive('.').map(str::trim);
    for other in others.filter(|other| *other != words) {
        stated.push(deriving(&[&statement(
            &turns[0].accepted,
            other,
            instant(10),
        )]));
    }
    let work = Work {
        rewrites: stated,
        ..Work::default()
    };
    apply(&node, work).await;
    node.clock.set(1_000);
    (node, [before, after])
}

/// Texts of the hits, and whether the first statement is marked.
async fn found(node: &Node, before: &Derivation, query: &str) -> (Vec<String>, bool) {
    let call = acme();
    let found = node.gateway.recall(&call, recall("ada", query, &[])).await;
    let hits = found.unwrap().hits;
    let is_marked = hits.iter().any(|hit| hit.outdated == Some(before.id));
    let texts = hits.into_iter().map(|hit| hit.turn.accepted.content.text);
    (texts.collect(), is_marked)
}

#[tokio::test]
async fn a_statement_that_holds_stands_before_the_one_that_it_ended() {
    let (node, rome) = ended("I live in Rome.", "I live in Rome.", "Oslo is my home.").await;
    let (texts, is_marked) = found(&node, &rome, "Where do I live?").await;
    assert_eq!(texts, ["Oslo is my home.", "I live in Rome."]);
    assert!(is_marked);
}

#[tokio::test]
async fn a_statement_that_holds_is_brought_where_it_was_not_found() {
    let (node, rome) = ended("I live in Rome.", "I live in Rome.", "Oslo is my home.").await;
    for k in [1, 10] {
        let mut request = recall("ada", "Where do I live?", &[]);
        request.query.k = k;
        let hits = node.gateway.recall(&acme(), request).await.unwrap().hits;
        assert_eq!(hits.len(), k.min(2) as usize);
        assert_eq!(hits[0].turn.accepted.content.text, "Oslo is my home.");
        assert_eq!((hits[0].outdated, hits[0].facts.len()), (None, 1));
        assert!(hits.is_sorted_by(|one, two| one.score >= two.score));
        if let Some(old) = hits.get(1) {
            assert_eq!(old.outdated, Some(rome.id));
        }
    }
    let mut request = recall("ada", "Where do I live?", &[]);
    request.query.filter.turns = vec![rome.turns[0]];
    let hits = node.gateway.recall(&acme(), request).await.unwrap().hits;
    assert_eq!(hits.len(), 1, "the filter leaves the other out");
    assert_eq!(hits[0].outdated, Some(rome.id));
}

#[tokio::test]
async fn at_an_instant_of_the_past_it_was_so() {
    let (node, _) = ended("I live in Rome.", "I live in Rome.", "Oslo is my home.").await;
    let mut then = recall("ada", "Where do I live?", &[]);
    then.query.filter.as_of.happened_by = Some(instant(15));
    let mut unsettled = recall("ada", "Where do I live?", &[]);
    // The conflict was settled at second 30.
    unsettled.query.filter.as_of.known_at = Some(instant(29));
    for request in [then, unsettled] {
        let hits = node.gateway.recall(&acme(), request).await.unwrap().hits;
        assert!(hits.iter().all(|hit| hit.outdated.is_none()));
    }
}

#[tokio::test]
async fn a_block_marks_a_turn_that_says_no_more_than_what_ended() {
    let block = async |older: &str| {
        let (node, _) = ended(older, "I live in Rome.", "Oslo is my home.").await;
        let request = assemble("ada", "Where do I live?", 200);
        node.gateway.assemble(&acme(), request).await.unwrap().block
    };
    let marked = block("I live in Rome.").await;
    assert!(marked.contains("(no longer so since "), "{marked}");
    assert!(marked.contains(": Oslo is my home."), "{marked}");
    let unmarked = block(SEVERAL).await;
    assert!(unmarked.contains(SEVERAL), "{unmarked}");
    assert!(!unmarked.contains("no longer so"), "{unmarked}");
}

#[tokio::test]
async fn a_question_about_the_past_finds_what_was() {
    let (node, rome) = ended("I live in Rome.", "I live in Rome.", "Oslo is my home.").await;
    let (texts, is_marked) = found(&node, &rome, "Where did I live before?").await;
    assert_eq!(texts, ["I live in Rome.", "Oslo is my home."]);
    assert!(!is_marked);
}

#[tokio::test]
async fn a_question_about_the_past_puts_what_was_before_what_is() {
    let newer = "I live in Oslo, where before long winter comes.";
    let (node, rome) = ended("I live in Rome.", "I live in Rome.", newer).await;
    let (texts, is_marked) = found(&node, &rome, "Where did I live before Oslo?").await;
    assert_eq!(texts[0], "I live in Rome.");
    assert!(!is_marked);
}

#[tokio::test]
async fn a_statement_that_may_have_ended_stands_behind_the_newer_one_without_a_mark() {
    let newer = "I live in Oslo with my dog and two cats now.";
    let (node, [rome, _]) = possibly_ended("I live in Rome.", newer).await;
    let (texts, is_marked) = found(&node, &rome, "Where do I live?").await;
    assert_eq!(texts, [newer, "I live in Rome."]);
    assert!(!is_marked);
    let (texts, _) = found(&node, &rome, "in I").await;
    assert_eq!(texts, ["I live in Rome.", newer], "it asks about neither");
}

#[tokio::test]
async fn a_question_about_the_past_puts_what_may_have_ended_before_the_newer_one() {
    let older = "I live in Rome with my dog.";
    let (node, [rome, _]) = possibly_ended(older, "I live in Oslo.").await;
    let (texts, is_marked) = found(&node, &rome, "Where did I live before?").await;
    assert_eq!(texts[0], older);
    assert!(!is_marked);
}

#[tokio::test]
async fn what_the_query_does_not_ask_for_is_not_put_first() {
    let newer = "My dog is called Pixel.";
    let (node, [rome, _]) = possibly_ended("I live in Rome.", newer).await;
    let (texts, is_marked) = found(&node, &rome, "Where do I live?").await;
    assert_eq!(texts, ["I live in Rome.", newer]);
    assert!(!is_marked);
}

#[tokio::test]
async fn statements_that_may_have_ended_each_other_come_to_an_order() {
    let (older, newer) = (
        "I live in Rome. I live by the sea.",
        "Oslo is my home, I live there.",
    );
    let (node, [rome, oslo]) = stated(older, "I live in Rome.", newer).await;
    let question = Question {
        turns: rome.turns.clone(),
        ..Question::default()
    };
    let scope = acme().scope(&space("ada"));
    let of_turn = node.store.all_derivations(&scope, &question).await.unwrap();
    let sea = of_turn.iter().find(|fact| fact.id != rome.id).unwrap();
    let possible = |older: &Derivation, newer: &Derivation| Conflict {
        status: Status::Possible,
        probability: Some(0.75),
        judge: SentenceReader::NAME.to_owned(),
        ..conflict(older, newer)
    };
    let work = Work {
        found: vec![possible(&rome, &oslo), possible(&oslo, sea)],
        ..Work::default()
    };
    apply(&node, work).await;
    let (texts, is_marked) = found(&node, &rome, "Where do I live?").await;
    assert_eq!((texts.len(), is_marked), (2, false));
}

const SEVERAL: &str = "I live in Rome. My cat is called Pixel.";

#[tokio::test]
async fn of_a_turn_with_several_statements_the_one_asked_for_counts() {
    let (node, rome) = ended(SEVERAL, "I live in Rome.", "Oslo is my home.").await;
    let (texts, is_marked) = found(&node, &rome, "How is my cat called?").await;
    assert_eq!((&*texts[0], is_marked), (SEVERAL, false));
    let (texts, is_marked) = found(&node, &rome, "Where do I live these days?").await;
    assert_eq!((&*texts[0], is_marked), ("Oslo is my home.", true));
    assert_eq!(node.reader.asked(), 2);
}

#[tokio::test]
async fn without_a_reader_a_turn_with_several_statements_stays_in_its_place() {
    let (node, rome) = ended(SEVERAL, "I live in Rome.", "Oslo is my home.").await;
    node.reader.set_missing(true);
    let call = acme();
    let query = recall("ada", "Where do I live these days?", &[]);
    let found = node.gateway.recall(&call, query).await.unwrap();
    assert_eq!(found.hits[0].turn.accepted.content.text, SEVERAL);
    assert!(found.hits.iter().all(|hit| hit.outdated != Some(rome.id)));
    let told = found
        .degraded
        .iter()
        .any(|it| it.starts_with("statements: "));
    assert!(told, "{:?}", found.degraded);
}

#[tokio::test]
async fn a_question_about_something_else_moves_nothing() {
    let (node, rome) = ended("I live in Rome.", "I live in Rome.", "Oslo is my home.").await;
    let (texts, is_marked) = found(&node, &rome, "in I").await;
    assert_eq!((&*texts[0], is_marked), ("I live in Rome.", false));
}

/// Statements that a query finds.
async fn statements(node: &Node, query: &str) -> Found {
    let request = RecallRequest {
        granularity: HitGranularity::Statement,
        ..recall("ada", query, &[])
    };
    node.gateway.recall(&acme(), request).await.unwrap()
}

fn words(found: &Found) -> Vec<&str> {
    let words = found.hits.iter().map(|hit| {
        let (start, end) = hit.passage;
        assert_eq!(hit.facts.len(), 1, "{hit:?}");
        &hit.turn.accepted.content.text[start as usize..end as usize]
    });
    words.collect()
}

#[tokio::test]
async fn statements_are_hits_by_what_the_query_needs() {
    let (node, rome) = ended(SEVERAL, "I live in Rome.", "Oslo is my home.").await;
    let found = statements(&node, "What is my Pixel called?").await;
    let first = &found.hits[0];
    assert_eq!(words(&found)[0], "My cat is called Pixel.");
    assert!(first.relevance > found.hits[1].relevance, "{found:?}");
    assert!(
        found.scorer.starts_with(SentenceReader::NAME),
        "{}",
        found.scorer
    );
    assert!(first.outdated.is_none() && first.facts[0].valid.end.is_none());
    assert_eq!(found.hits.len(), 3);

    let found = statements(&node, "Where do I live these days?").await;
    assert_eq!(words(&found)[..2], ["Oslo is my home.", "I live in Rome."]);
    assert_eq!(found.hits[1].outdated, Some(rome.id));
    assert!(found.hits[1].facts[0].valid.end.is_some());
}

#[tokio::test]
async fn statement_hits_are_k_at_most_and_of_the_relevance_that_is_asked_for() {
    let (node, _) = ended(SEVERAL, "I live in Rome.", "Oslo is my home.").await;
    let request = RecallRequest {
        granularity: HitGranularity::Statement,
        min_relevance: Some(0.5),
        ..recall("ada", "Pixel called?", &[])
    };
    let found = node.gateway.recall(&acme(), request).await.unwrap();
    assert_eq!(words(&found), ["My cat is called Pixel."]);
    let request = RecallRequest {
        granularity: HitGranularity::Statement,
        ..RecallRequest::from(Query {
            k: 1,
            ..recall("ada", "cat", &[]).query
        })
    };
    let found = node.gateway.recall(&acme(), request).await.unwrap();
    assert_eq!(found.hits.len(), 1);
}

#[tokio::test]
async fn without_a_reader_statements_stand_in_the_order_of_their_turns() {
    let (node, _) = ended(SEVERAL, "I live in Rome.", "Oslo is my home.").await;
    node.reader.set_missing(true);
    let found = statements(&node, "My cat").await;
    assert_eq!(
        words(&found)[..2],
        ["I live in Rome.", "My cat is called Pixel."]
    );
    let told = found
        .degraded
        .iter()
        .filter(|it| it.starts_with("statements: "));
    assert!(told.count() >= 1, "{:?}", found.degraded);
}

#[tokio::test]
async fn turns_that_state_nothing_are_no_statement_hits() {
    let node = Node::new().await;
    node.told("ada", vec![said("Hello there!")]).await;
    let found = statements(&node, "Hello").await;
    assert!(found.hits.is_empty() && found.searched == 1, "{found:?}");
}

#[tokio::test]
async fn a_value_that_ended_enters_no_block_without_the_one_that_holds() {
    let newer = "Oslo is my home since the spring of this year, near the old harbour.";
    let (node, _) = ended("I live in Rome.", "I live in Rome.", newer).await;
    let mut held_alone = 0;
    for budget in 0..160 {
        let request = assemble("ada", "Where do I live?", budget);
        let block = node.gateway.assemble(&acme(), request).await.unwrap().block;
        let [is_ended, holds] = ["Rome", "Oslo"].map(|city| block.contains(city));
        assert!(!is_ended || holds, "{budget}: {block}");
        held_alone += usize::from(holds && !is_ended);
    }
    assert!(held_alone > 0);
}
