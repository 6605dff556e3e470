//! Statements in their own words as facts: read again, cut otherwise, and in the place of facts by
//! rules.

use std::sync::Arc;

use memfleet_constructor::{NoExtractor, StatementExtractor};
use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::statement::Statement;
use memfleet_ports::conformance::knowledge::{deriving, fact};
use memfleet_ports::conformance::samples::{home, instant, turn};
use memfleet_ports::knowledge::{Knowledge, Question, Work};
use memfleet_ports::testing::SentenceReader;

use crate::bench::Bench;
use crate::editing_reader::EditingReader;

fn by_sentences() -> StatementExtractor {
    let reader = Arc::new(SentenceReader::default());
    StatementExtractor { reader }
}

async fn told(bench: &Bench) -> Vec<(String, String)> {
    let facts = bench.facts(&Question::default()).await;
    let told = facts.iter().map(|fact| {
        let by = match &fact.origin {
            Origin::Extracted(by) => by.clone(),
            Origin::Corrected => String::new(),
        };
        (fact.body.found_by(), by)
    });
    told.collect()
}

#[tokio::test]
async fn a_rebuild_replaces_facts_by_rules_with_statements() {
    let bench = Bench::new().await;
    let said = turn("1", "I live in Rome.");
    bench.store(vec![said.clone()]).await;
    let by_rules = Derivation {
        origin: Origin::Extracted("rules-2".to_owned()),
        ..fact(&said, "Ada", "Rome", instant(1))
    };
    let work = Work {
        rewrites: vec![deriving(&[&by_rules])],
        ..Work::default()
    };
    bench.store.apply(&home(), work).await.unwrap();
    let before = told(&bench).await;
    assert_eq!(before[0].0, "Ada lives in Rome.");
    bench.rebuild_by(Arc::new(NoExtractor)).await;
    assert_eq!(told(&bench).await, before);
    bench.rebuild_by(Arc::new(by_sentences())).await;
    let statement = (
        "I live in Rome.".to_owned(),
        SentenceReader::NAME.to_owned(),
    );
    assert_eq!(told(&bench).await, [statement]);
}

/// Takes the sentences of a turn as one statement.
fn as_one(statements: &mut Vec<Statement>) {
    let end = statements.last().map_or(0, |last| last.bytes.end);
    statements.truncate(1);
    for first in statements {
        first.bytes.end = end;
    }
}

#[tokio::test]
async fn a_turn_that_is_read_again_and_cut_otherwise_keeps_its_statements() {
    let mut bench = Bench::new().await;
    bench.deriver.extractor = Arc::new(by_sentences());
    bench
        .store(vec![turn("1", "I live in Rome. My cat is called Pixel.")])
        .await;
    let statements = bench.derive().await;
    assert_eq!(statements, ["I live in Rome.", "My cat is called Pixel."]);
    let reader = Arc::new(EditingReader::new(as_one));
    bench.deriver.extractor = Arc::new(StatementExtractor { reader });
    bench.begin_again().await;
    assert_eq!(bench.derive().await, statements);
}

#[tokio::test]
async fn a_reader_that_is_missing_leaves_turns_to_be_read_later() {
    let mut bench = Bench::new().await;
    let reader = Arc::new(SentenceReader::default());
    reader.set_missing(true);
    bench.deriver.extractor = Arc::new(StatementExtractor {
        reader: reader.clone(),
    });
    bench.store(vec![turn("1", "I live in Rome.")]).await;
    assert!(bench.derive().await.is_empty());
    reader.set_missing(false);
    assert_eq!(bench.derive().await, ["I live in Rome."]);
}
