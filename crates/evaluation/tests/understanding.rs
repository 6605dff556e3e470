//! The understanding corpus is whole: labels meet their text, no writer wrote for two parts, half
//! of it changes nothing, and writers do not write alike.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use memfleet_evaluation::understanding::{
    MAX_REPEATED_OPENINGS, MAX_SHARED_RUNS, QuestionTense, ScenarioCorpus,
};

fn corpus() -> ScenarioCorpus {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    ScenarioCorpus::load(&folder.join("data/understanding")).unwrap()
}

#[test]
fn labels_meet_their_text() {
    let problems = corpus().problems();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn half_of_each_writers_scenarios_change_nothing() {
    for writer in corpus().writers {
        let changing = writer.scenarios.iter().filter(|it| it.kind.changes());
        let share = changing.count() as f64 / writer.scenarios.len() as f64;
        assert!(
            (0.4..=0.6).contains(&share),
            "{}: {share:.2}",
            writer.writer
        );
    }
}

#[test]
fn a_fifth_of_the_questions_is_not_about_now() {
    let corpus = corpus();
    let questions = corpus.scenarios().flat_map(|(_, it)| &it.questions);
    let (now, others): (Vec<_>, Vec<_>) = questions.partition(|it| it.tense == QuestionTense::Now);
    assert!(
        others.len() * 4 >= now.len(),
        "{} {}",
        others.len(),
        now.len()
    );
}

#[test]
fn writers_do_not_share_their_wording() {
    let corpus = corpus();
    for (writer, share) in corpus.shared_runs() {
        assert!(share < MAX_SHARED_RUNS, "{writer}: {share:.4}");
    }
    let repeated = corpus.repeated_openings();
    assert!(repeated < MAX_REPEATED_OPENINGS, "{repeated:.3}");
}
