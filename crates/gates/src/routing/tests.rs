use memfleet_domain::assembly::{GateOutcome, Reason};
use memfleet_domain::embedding::EmbeddingSpace;

use super::{Decision, Error, Exemplars, Query, Router, Routing};

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

fn route_text(text: &str, vector: &[i8], model: &str) -> Routing {
    router().route(Query {
        text,
        vector,
        space: &space(model),
    })
}

fn route(vector: &[i8], model: &str) -> (GateOutcome, Reason) {
    let routing = route_text("who wrote that book", vector, model);
    (routing.outcome, routing.reason)
}

#[test]
fn amp_054_the_margin_decides_and_is_told() {
    assert_eq!(
        route(&[127, 10], "a"),
        (GateOutcome::Pass, Reason::NeedsMemory)
    );
    assert_eq!(
        route(&[10, 127], "a"),
        (GateOutcome::Skip, Reason::NeedsNoMemory)
    );
    assert_eq!(
        route(&[85, 94], "a"),
        (GateOutcome::Abstain, Reason::Unsure)
    );
    let routing = route_text("who wrote that book", &[10, 127], "a");
    let similarity = routing.similarity.unwrap();
    assert!((similarity.margin - (similarity.none - similarity.memory)).abs() < 1e-6);
    assert!((similarity.threshold - 0.2).abs() < 1e-6);
    assert_eq!(routing, route_text("who wrote that book", &[10, 127], "a"));
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
        let routing = route_text(text, &[10, 127], "a");
        assert_eq!(routing.reason, Reason::Unsure, "{text}");
    }
}

#[test]
fn an_unsure_verdict_names_each_bound_that_kept_it_from_a_skip() {
    let unmet = |text: &str, vector: &[i8]| {
        let bounds = route_text(text, vector, "a").bounds.into_iter();
        let unmet = bounds.filter(|bound| !bound.met);
        unmet.map(|bound| bound.name).collect::<Vec<_>>()
    };
    assert_eq!(unmet("who wrote that book", &[10, 127]), [""; 0]);
    assert_eq!(unmet("who wrote my book", &[10, 127]), ["personal_words"]);
    assert_eq!(unmet("RRF", &[10, 127]), ["words"]);
    assert_eq!(unmet("who wrote that book", &[85, 94]), ["margin"]);
    let foreign = unmet("кто написал эту книгу", &[10, 127]);
    assert_eq!(foreign, ["foreign_letters"]);
}

#[test]
fn amp_055_without_vectors_or_with_those_of_another_space_it_abstains() {
    assert_eq!(route(&[], "a"), (GateOutcome::Abstain, Reason::NoVectors));
    assert_eq!(
        route(&[0, 0], "a"),
        (GateOutcome::Abstain, Reason::NoVectors)
    );
    assert_eq!(
        route(&[10, 127], "b"),
        (GateOutcome::Abstain, Reason::OtherEmbeddingSpace)
    );
    assert_eq!(
        route(&[10, 127, 1], "a"),
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
fn amp_056_what_is_wrong_is_told_with_its_line_its_class_and_what_to_do() {
    let told = |text: &str| Exemplars::parse(text).unwrap_err().to_string();
    let change = |from: &str, to: &str| told(&TWO.replace(from, to));
    let blank = change("what did I say", "\u{200b} ");
    assert!(blank.starts_with("line 3, `memory`: the example has no word"));
    let long = change("what is the capital of Peru", &"x".repeat(501));
    assert!(
        long.starts_with("line 4, `none`: the example has 501 bytes, 500 are allowed"),
        "{long}"
    );
    let both = change("what is the capital of Peru", "What DID I say");
    assert!(
        both.contains("line 4, `none`: the example stands on line 3 already"),
        "{both}"
    );
    let few = change("neighbours = 1", "neighbours = 2");
    assert!(few.starts_with("line 3, `memory`: 1 examples, `decision.neighbours` asks for 2"));
    let many: Vec<_> = (0..=1000)
        .map(|number| format!("\"example {number}\""))
        .collect();
    let many = change("\"what did I say\"", &many.join(",\n"));
    assert!(many.starts_with("line 3, `memory`: 1001 examples, 1000 are allowed"));
    let unknown = change("likeness", "liking");
    assert!(
        unknown.starts_with("line 8 cannot be read: unknown field `liking`"),
        "{unknown}"
    );
    let range = change("most_foreign = 0.1", "most_foreign = 2.0");
    assert_eq!(range, "`decision.most_foreign` must be in 0 to 1");
}

#[test]
fn what_a_decision_does_not_say_is_as_shipped() {
    let shipped = &Exemplars::shipped().decision;
    let read = |keys: &str| Exemplars::parse(&format!("shipped = true\n[decision]\n{keys}"));
    assert_eq!(read("").unwrap().decision, *shipped);
    let decision = read("margin = 0.3").unwrap().decision;
    let expected = Decision {
        margin: 0.3,
        ..shipped.clone()
    };
    assert_eq!(decision, expected);
    // Of two mistakes the one that is there is told, not what else may be said.
    let range = read("margin = 7").unwrap_err().to_string();
    assert_eq!(range, "`decision.margin` must be in 0 to 2");
    let neighbours = shipped.neighbours;
    let few = Exemplars::parse("memory = [\"a\"]\nnone = [\"b\"]\n[decision]\nmargin = 0.3");
    let few = few.unwrap_err().to_string();
    assert!(
        few.contains(&format!("`decision.neighbours` asks for {neighbours}")),
        "{few}"
    );
}

#[test]
fn shipped_examples_stay_beside_those_of_a_document_that_says_so() {
    let shipped = Exemplars::shipped();
    let own = format!(
        "shipped = true\nmemory = [\"Wo ist mein Kessel?\", \"{}\"]",
        shipped.none[0]
    );
    let read = Exemplars::parse(&own).unwrap();
    assert_eq!(read.decision, shipped.decision);
    assert_eq!(read.memory.len(), shipped.memory.len() + 2);
    // What the document says otherwise is as it says.
    assert_eq!(read.none, shipped.none[1..]);
    let nothing = Exemplars::parse("shipped = true").unwrap();
    assert_eq!(
        (nothing.memory, nothing.none),
        (shipped.memory.clone(), shipped.none.clone())
    );
    let mut decision = TWO.replace("version", "shipped = true\nversion");
    decision = decision.replace("[\"my\"]", "[\"mein\"]");
    let personal = Exemplars::parse(&decision).unwrap().decision.personal;
    assert!(personal.contains("mein") && personal.contains("my"));
}
