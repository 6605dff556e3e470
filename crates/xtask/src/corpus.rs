//! The understanding corpus: labels that meet their text, and writers that do not write alike.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use memfleet_evaluation::understanding::{MAX_REPEATED_OPENINGS, MAX_SHARED_RUNS, ScenarioCorpus};

/// Checks the corpus and prints its size.
pub fn check(root: &Path) -> Result<()> {
    let corpus = ScenarioCorpus::load(&root.join("crates/evaluation/data/understanding"))?;
    let problems = corpus.problems();
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    let shared = corpus.shared_runs();
    for (writer, share) in &shared {
        ensure!(
            *share < MAX_SHARED_RUNS,
            "{writer} shares {share:.4} of its runs of 30 characters"
        );
    }
    let repeated = corpus.repeated_openings();
    ensure!(
        repeated < MAX_REPEATED_OPENINGS,
        "{repeated:.3} of the openings are repeated"
    );
    let (mut scenarios, mut changing, mut statements, mut pairs, mut questions) = (0, 0, 0, 0, 0);
    let mut languages: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, scenario) in corpus.scenarios() {
        scenarios += 1;
        changing += usize::from(scenario.kind.changes());
        let turns = scenario.turns.iter();
        statements += turns.map(|turn| turn.statements.len()).sum::<usize>();
        pairs += scenario.pairs.len();
        questions += scenario.questions.len();
        *languages.entry(&scenario.language).or_default() += 1;
    }
    let writers = corpus.writers.len();
    println!(
        "{scenarios} scenarios by {writers} writers, {changing} with a change: {statements} statements, {pairs} pairs, {questions} questions"
    );
    println!("languages: {languages:?}");
    let most = shared.values().copied().fold(0.0, f64::max);
    println!("runs shared by writers: {most:.4} at most; openings repeated: {repeated:.4}");
    Ok(())
}
