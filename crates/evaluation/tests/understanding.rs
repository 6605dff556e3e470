//! The understanding corpus is whole: labels meet their text, no writer wrote for two parts, half
//! of it changes nothing, and writers do not write alike.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use memfleet_evaluation::understanding::{
    MAX_REPEATED_OPENINGS, MAX_SHARED_RUNS, QuestionTense, UnderstandingCorpus,
};

fn corpus() -> UnderstandingCorpus {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    UnderstandingCorpus::load(&folder.join("data/understanding")).unwrap()
}

#[test]
fn labels_meet_their_text() {
    let problems = corpus().problems();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_part_of_each_writers_scenarios_changes_nothing() {
    for writer in corpus().scenarios {
        let changing = writer.items.iter().filter(|it| it.kind.changes());
        let share = changing.count() as f64 / writer.items.len() as f64;
        assert!(
            (0.4..=0.75).contains(&share),
            "{}: {share:.2}",
            writer.writer
        );
    }
}

#[test]
fn half_of_each_writers_prompts_need_no_memory() {
    for writer in corpus().needs {
        let prompts: Vec<_> = writer.items.iter().flat_map(|it| &it.prompts).collect();
        let needing = prompts.iter().filter(|it| it.kind.needs_memory());
        let share = needing.count() as f64 / prompts.len() as f64;
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
    let scenarios = corpus.scenarios.iter().flat_map(|writer| &writer.items);
    let questions = scenarios.flat_map(|scenario| &scenario.questions);
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
