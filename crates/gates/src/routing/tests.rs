use memfleet_domain::assembly::{GateOutcome, Reason};
use memfleet_domain::embedding::EmbeddingSpace;

use super::{Error, Exemplars, Query, Router, Routing};

const TWO: &str = r#"
version = "t1"
memory = ["what did I say"]
none = ["what is the capital of Peru"]
[decision]
neighbours = 1
margin = 0.2
likeness = 0.5
fewest_words = 3
most_foreign = 0.1
fewest_memories = 200
personal = ["my"]
"#;

fn space(model: &str) -> EmbeddingSpace {
    EmbeddingSpace {
        model: model.to_owned(),
        revision: "1".to_owned(),
        recipe: "int8-1".to_owned(),
        projection: "pca64-1".to_owned(),
    }
}

fn router() -> Router {
    let exemplars = Exemplars::parse(TWO).unwrap();
    Router::new(&exemplars, vec![vec![127, 0], vec![0, 127]], space("a")).unwrap()
}

fn route_text(text: &str, vector: &[i8], model: &str, memories: u64) -> Routing {
    router().route(Query {
        text,
        vector,
        space: &space(model),
        memories,
    })
}

fn route(vector: &[i8], model: &str, memories: u64) -> (GateOutcome, Reason) {
    let routing = route_text("who wrote that book", vector, model, memories);
    (routing.outcome, routing.reason)
}

#[test]
fn amp_054_the_margin_decides_and_is_told() {
    assert_eq!(
        route(&[127, 10], "a", 900),
        (GateOutcome::Pass, Reason::NeedsMemory)
    );
    assert_eq!(
        route(&[10, 127], "a", 900),
        (GateOutcome::Skip, Reason::NeedsNoMemory)
    );
    assert_eq!(
        route(&[85, 94], "a", 900),
        (GateOutcome::Abstain, Reason::Unsure)
    );
    let routing = route_text("who wrote that book", &[10, 127], "a", 900);
    let similarity = routing.similarity.unwrap();
    assert!((similarity.margin - (similarity.none - similarity.memory)).abs() < 1e-6);
    assert!((similarity.threshold - 0.2).abs() < 1e-6);
    assert_eq!(
        routing,
        route_text("who wrote that book", &[10, 127], "a", 900)
    );
}

#[test]
fn amp_054_what_the_model_cannot_read_is_not_skipped() {
    for text in [
        "RRF",
        "Berlin plan",
        "who wrote my book",
        "кто написал эту книгу",
        "что это за книга, please",
    ] {
        let routing = route_text(text, &[10, 127], "a", 900);
        assert_eq!(routing.reason, Reason::Unsure, "{text}");
    }
}

#[test]
fn amp_055_without_vectors_or_with_those_of_another_space_it_abstains() {
    assert_eq!(
        route(&[], "a", 900),
        (GateOutcome::Abstain, Reason::NoVectors)
    );
    assert_eq!(
        route(&[0, 0], "a", 900),
        (GateOutcome::Abstain, Reason::NoVectors)
    );
    assert_eq!(
        route(&[10, 127], "b", 900),
        (GateOutcome::Abstain, Reason::OtherEmbeddingSpace)
    );
    assert_eq!(
        route(&[10, 127, 1], "a", 900),
        (GateOutcome::Abstain, Reason::OtherEmbeddingSpace)
    );
}

#[test]
fn amp_056_vectors_that_do_not_fit_refuse_to_start() {
    let exemplars = Exemplars::parse(TWO).unwrap();
    let start = |vectors| Router::new(&exemplars, vectors, space("a")).unwrap_err();
    assert_eq!(
        start(vec![vec![1, 2]]),
        Error::Count {
            given: 1,
            wanted: 2
        }
    );
    assert_eq!(
        start(vec![vec![1, 2], vec![1]]),
        Error::Dimensions {
            given: 1,
            wanted: 2
        }
    );
    assert_eq!(
        start(vec![vec![], vec![]]),
        Error::Dimensions {
            given: 0,
            wanted: 0
        }
    );
    assert_eq!(start(vec![vec![1], vec![0]]), Error::Zero(2));
}

#[test]
fn amp_056_examples_are_data_that_is_checked() {
    let change = |from: &str, to: &str| Exemplars::parse(&TWO.replace(from, to));
    assert!(change("t1", "t2").is_ok());
    for (from, to) in [
        ("neighbours = 1", "neighbours = 0"),
        ("neighbours = 1", "neighbours = 2"),
        ("margin = 0.2", "margin = nan"),
        ("margin = 0.2", "margin = -0.1"),
        ("what did I say", " "),
        ("likeness", "liking"),
        ("most_foreign = 0.1", "most_foreign = 2.0"),
    ] {
        assert!(change(from, to).is_err(), "{to}");
    }
    let shipped = Exemplars::shipped();
    assert_eq!(
        shipped.texts().count(),
        shipped.memory.len() + shipped.none.len()
    );
}

#[test]
fn amp_057_a_cold_space_abstains_and_an_empty_one_is_skipped() {
    assert_eq!(
        route(&[10, 127], "a", 0),
        (GateOutcome::Skip, Reason::NoMemory)
    );
    assert_eq!(
        route(&[10, 127], "a", 199),
        (GateOutcome::Abstain, Reason::ColdSpace)
    );
    assert_eq!(
        route(&[10, 127], "a", 200),
        (GateOutcome::Skip, Reason::NeedsNoMemory)
    );
}
