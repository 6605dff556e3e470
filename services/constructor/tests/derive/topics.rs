//! Facts follow the topics of policies, whoever finds them.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_constructor::{ExtractedFacts, Extractor, StatementExtractor, Utterances};
use memfleet_domain::derivation::Derivation;
use memfleet_domain::space::Locale;
use memfleet_domain::statement::Statement;
use memfleet_domain::topic::{Topic, TopicAction};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::conformance::samples::{home, turn};
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_ports::ledger::Ledger;

use crate::bench::{Bench, Literal};
use crate::editing_reader::EditingReader;

fn topic(name: &str, action: TopicAction, example: &str) -> Topic {
    Topic {
        name: name.to_owned(),
        action,
        description: format!("All about {example}."),
        examples: vec![example.to_owned()],
    }
}

fn no_health() -> Topic {
    topic("health", TopicAction::LeaveOut, "asthma")
}

fn money() -> Topic {
    topic("money", TopicAction::Tag, "salary")
}

async fn tags(bench: &Bench) -> Vec<(String, Vec<String>)> {
    let facts = bench.facts(&Question::default()).await;
    let facts = facts.iter().filter_map(Derivation::fact);
    let told = facts.map(|fact| (fact.text.clone(), fact.topics.clone()));
    told.collect()
}

fn tagged(text: &str, topics: &[&str]) -> (String, Vec<String>) {
    let topics = topics.iter().map(|it| (*it).to_owned());
    (text.to_owned(), topics.collect())
}

#[tokio::test]
async fn what_a_topic_leaves_out_is_no_fact_and_its_turn_stays() {
    let bench = Bench::new().await;
    bench.set_topics(None, vec![no_health()]).await;
    let turns = [
        turn("1", "Ben is ill. the door is red."),
        turn("2", "insulin is dear."),
    ];
    bench.store(turns.to_vec()).await;
    assert_eq!(bench.derive().await, ["the door is red"]);
    let every = Question {
        withdrawn: true,
        ..Question::default()
    };
    assert_eq!(bench.facts(&every).await.len(), 1);
    let ids = turns.each_ref().map(|turn| turn.id);
    assert_eq!(bench.store.turns(&home(), &ids).await.unwrap().len(), 2);
    // Another extractor behind the first one, such as a language model, is held to it too.
    bench.refine(Literal("is")).await;
    assert_eq!(bench.derive().await, ["the door is red"]);
}

#[tokio::test]
async fn topics_of_space_and_tenant_add_up_and_that_of_the_space_stands_over_its_name() {
    let bench = Bench::new().await;
    bench.set_topics(None, vec![no_health(), money()]).await;
    let of_space = topic("health", TopicAction::Tag, "asthma");
    bench.set_topics(Some(home().space), vec![of_space]).await;
    bench
        .store(vec![turn(
            "1",
            "Ben is ill. the loan is big. the sky is blue.",
        )])
        .await;
    bench.derive().await;
    let expected = [
        tagged("Ben is ill", &["health"]),
        tagged("the loan is big", &["money"]),
        tagged("the sky is blue", &[]),
    ];
    assert_eq!(tags(&bench).await, expected);
}

#[tokio::test]
async fn facts_wait_while_topics_cannot_be_matched_or_read() {
    let bench = Bench::new().await;
    bench.set_topics(None, vec![no_health()]).await;
    bench.subjects.set_down(true);
    bench
        .store(vec![turn("1", "Ben is ill. the door is red.")])
        .await;
    assert_eq!(bench.derive().await, [""; 0]);
    let pending = bench.knowledge().pending(Stage::Derive, 9).await.unwrap();
    assert_eq!(pending.len(), 1);
    bench.subjects.set_down(false);
    bench
        .set_policy(None, r#"{"topics": [{"action": "of a later version"}]}"#)
        .await;
    assert_eq!(bench.derive().await, [""; 0]);
    // Sections of a later version are not for this service.
    bench
        .set_policy(None, r#"{"later": {}, "budget": {"max_tokens": 1}}"#)
        .await;
    assert_eq!(bench.derive().await, ["Ben is ill", "the door is red"]);
}

#[tokio::test]
async fn texts_of_topics_are_embedded_once() {
    let bench = Bench::new().await;
    bench.store(vec![turn("1", "the door is red.")]).await;
    bench.derive().await;
    assert_eq!(
        bench.subjects.texts(),
        0,
        "without topics nothing is matched"
    );
    bench.set_topics(None, vec![no_health(), money()]).await;
    bench.store(vec![turn("2", "the sky is blue.")]).await;
    bench.derive().await;
    let first = bench.subjects.texts();
    bench.store(vec![turn("3", "the wall is grey.")]).await;
    bench.derive().await;
    assert_eq!(bench.subjects.texts(), first + 1);
    let changed = topic("health", TopicAction::LeaveOut, "insulin");
    bench.set_topics(None, vec![changed, money()]).await;
    bench.store(vec![turn("4", "the roof is flat.")]).await;
    bench.derive().await;
    assert_eq!(bench.subjects.texts(), first + 4);
}

#[tokio::test]
async fn a_rebuild_applies_the_topics_of_now_to_what_was_derived_before() {
    let bench = Bench::new().await;
    let said = "Ben is ill. the loan is big. the sky is blue.";
    bench.store(vec![turn("1", said)]).await;
    let all = ["Ben is ill", "the loan is big", "the sky is blue"];
    assert_eq!(bench.derive().await, all);
    bench.set_topics(None, vec![no_health(), money()]).await;
    assert_eq!(bench.derive().await, all, "it stays until a rebuild");
    bench.rebuild("is").await;
    let expected = [
        tagged("the loan is big", &["money"]),
        tagged("the sky is blue", &[]),
    ];
    assert_eq!(tags(&bench).await, expected);
    let facts = bench.facts(&Question::default()).await;
    assert_eq!((facts[0].version, facts[1].version), (2, 1));
    bench.rebuild("is").await;
    assert_eq!(bench.facts(&Question::default()).await, facts);
    bench.set_topics(None, Vec::new()).await;
    bench.rebuild("is").await;
    assert_eq!(tags(&bench).await, all.map(|text| tagged(text, &[])));
}

#[tokio::test]
async fn a_rebuild_withdraws_what_another_extractor_found_of_a_topic() {
    let bench = Bench::new().await;
    bench
        .store(vec![turn("1", "Ben was ill. the door was red.")])
        .await;
    bench.derive().await;
    bench.refine(Literal("was")).await;
    assert_eq!(bench.derive().await, ["Ben was ill", "the door was red"]);
    bench.set_topics(None, vec![no_health()]).await;
    bench.rebuild_by(Arc::new(Mute)).await;
    assert_eq!(bench.derive().await, ["the door was red"]);
}

/// Extractor that finds nothing, and replaces no facts of others.
struct Mute;

#[async_trait]
impl Extractor for Mute {
    fn replaces(&self) -> Vec<&str> {
        vec!["mute"]
    }

    async fn extract(
        &self,
        _: &Scope,
        turns: Vec<Utterances>,
        _: &Locale,
    ) -> Result<ExtractedFacts, Fault> {
        Ok(ExtractedFacts {
            by: "mute-1".to_owned(),
            drafts: vec![Vec::new(); turns.len()],
        })
    }
}

/// Holds no statement worth keeping.
fn faint(statements: &mut Vec<Statement>) {
    for statement in statements {
        statement.keep = 0.2;
        statement.line = None;
    }
}

/// Facts that profiles list.
async fn listed(bench: &Bench) -> Vec<String> {
    let facts = bench.facts(&Question::default()).await;
    let facts = facts.iter().filter_map(|fact| fact.fact());
    let listed = facts.filter(|draft| draft.is_listed());
    listed.map(|draft| draft.text.clone()).collect()
}

#[tokio::test]
async fn a_topic_to_keep_stands_over_the_worth_of_a_statement() {
    let mut bench = Bench::new().await;
    let reader = Arc::new(EditingReader::new(faint));
    let extractor: Arc<dyn Extractor> = Arc::new(StatementExtractor { reader });
    bench.deriver.extractor = extractor.clone();
    bench
        .store(vec![turn("1", "My hamster hides. My door is red.")])
        .await;
    assert_eq!(
        bench.derive().await,
        ["My hamster hides.", "My door is red."]
    );
    assert_eq!(listed(&bench).await, [""; 0]);
    let pets = topic("pets", TopicAction::Keep, "hamster");
    bench.set_topics(None, vec![pets.clone()]).await;
    bench.rebuild_by(extractor.clone()).await;
    assert_eq!(listed(&bench).await, ["My hamster hides."]);
    let no_pets = topic("no pets", TopicAction::LeaveOut, "parrot");
    bench.set_topics(None, vec![pets, no_pets]).await;
    bench.store(vec![turn("2", "My parrot sings.")]).await;
    bench.derive().await;
    assert_eq!(listed(&bench).await, ["My hamster hides."]);
    bench.set_topics(None, Vec::new()).await;
    bench.rebuild_by(extractor.clone()).await;
    assert_eq!(listed(&bench).await, [""; 0]);
}
