//! The understanding corpus: labels that meet their text, and writers that do not write alike.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use anyhow::{Result, ensure};
use memfleet_evaluation::understanding::{
    LabelledScenario, LineJudgement, MAX_REPEATED_OPENINGS, MAX_SHARED_RUNS, UnderstandingCorpus,
    WriterFolder,
};

/// Checks the corpus and prints the sizes of its sets.
pub fn check(root: &Path) -> Result<()> {
    let corpus = UnderstandingCorpus::load(&root.join("crates/evaluation/data/understanding"))?;
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
    print_scenarios("scenarios", &corpus.scenarios);
    print_scenarios("contrast", &corpus.contrast);
    print_pairs(&corpus);
    print_names(&corpus);
    print_lines(&corpus);
    print_talks(&corpus);
    print_histories(&corpus);
    print_needs(&corpus);
    print_meetings(&corpus);
    let most = shared.values().copied().fold(0.0, f64::max);
    println!("runs shared by writers: {most:.4} at most; openings repeated: {repeated:.4}");
    Ok(())
}

fn print_scenarios(set: &str, writers: &[WriterFolder<LabelledScenario>]) {
    let scenarios: Vec<_> = writers.iter().flat_map(|it| &it.items).collect();
    let changing = scenarios.iter().filter(|it| it.kind.changes()).count();
    let turns = scenarios.iter().flat_map(|it| &it.turns);
    let statements: usize = turns.map(|turn| turn.statements.len()).sum();
    let pairs = scenarios.iter().flat_map(|it| &it.pairs);
    let questions = scenarios.iter().flat_map(|it| &it.questions);
    let triples = scenarios.iter().filter(|it| it.is_edit()).count() / 2;
    println!(
        "{set}: {} {changing} with a change, {statements} statements; triples: {triples}",
        sizes(writers)
    );
    println!("  pairs: {}", counts(pairs.map(|it| it.relation.name())));
    println!("  questions: {}", counts(questions.map(|it| it.tense)));
    println!(
        "  languages: {}",
        counts(scenarios.iter().map(|it| &it.language))
    );
}

fn print_pairs(corpus: &UnderstandingCorpus) {
    let groups = corpus.pairs.iter().flat_map(|it| &it.items);
    let later = groups.clone().flat_map(|it| &it.later);
    println!("pairs: {}", sizes(&corpus.pairs));
    println!(
        "  later turns: {}",
        counts(later.map(|it| it.relation.name()))
    );
    println!("  languages: {}", counts(groups.map(|it| &it.language)));
}

fn print_names(corpus: &UnderstandingCorpus) {
    let turns = corpus.names.iter().flat_map(|it| &it.items);
    let names = turns.clone().flat_map(|it| &it.names);
    println!("names: {}", sizes(&corpus.names));
    println!("  names: {}", counts(names.map(|it| it.kind.name())));
    println!("  languages: {}", counts(turns.map(|it| &it.language)));
}

fn print_lines(corpus: &UnderstandingCorpus) {
    let lines = corpus.lines.iter().flat_map(|it| &it.items);
    println!(
        "lines: {} {}",
        sizes(&corpus.lines),
        judgements(lines.map(|it| it.judgement))
    );
}

fn print_talks(corpus: &UnderstandingCorpus) {
    let talks = corpus.talks.iter().flat_map(|it| &it.items);
    let turns = talks.clone().flat_map(|it| &it.turns);
    let sentences = turns.clone().flat_map(|it| &it.sentences);
    println!(
        "talks: {} {} turns, {} sentences: {}",
        sizes(&corpus.talks),
        turns.count(),
        sentences.clone().count(),
        judgements(sentences.map(|it| it.judgement))
    );
    println!("  languages: {}", counts(talks.map(|it| &it.language)));
}

fn print_histories(corpus: &UnderstandingCorpus) {
    let histories = corpus.histories.iter().flat_map(|it| &it.items);
    let turns: usize = histories.clone().map(|it| it.turns.len()).sum();
    let changes = histories.clone().flat_map(|it| &it.changes);
    let questions = histories.clone().flat_map(|it| &it.questions);
    let changed = questions.clone().filter(|it| !it.wrong_evidence.is_empty());
    println!(
        "histories: {} {turns} turns, {} changes, {} questions, {} of them about what changed",
        sizes(&corpus.histories),
        changes.count(),
        questions.count(),
        changed.count()
    );
    println!("  languages: {}", counts(histories.map(|it| &it.language)));
}

fn judgements(list: impl Iterator<Item = LineJudgement>) -> String {
    let list: Vec<_> = list.collect();
    let count =
        |is_meant: fn(&LineJudgement) -> bool| list.iter().filter(|it| is_meant(it)).count();
    format!(
        "said {}, complete {}, worth {}, all three {}",
        count(|it| it.is_said),
        count(|it| it.is_complete),
        count(|it| it.is_worth),
        count(|it| it.is_line()),
    )
}

fn print_needs(corpus: &UnderstandingCorpus) {
    let spaces = corpus.needs.iter().flat_map(|it| &it.items);
    let prompts = spaces.clone().flat_map(|it| &it.prompts);
    let needed: usize = prompts.clone().map(|it| it.needed.len()).sum();
    let helpful: usize = prompts.clone().map(|it| it.helpful.len()).sum();
    let leaning = prompts.clone().filter(|it| !it.before.is_empty()).count();
    let lines: usize = spaces.clone().map(|it| it.lines.len()).sum();
    println!("needs: {} {lines} lines of memory", sizes(&corpus.needs));
    println!("  prompts: {}", counts(prompts.map(|it| it.kind)));
    println!(
        "  prompts with turns before them: {leaning}; lines needed: {needed}, helpful: {helpful}"
    );
    println!(
        "  languages of spaces: {}",
        counts(spaces.map(|it| &it.language))
    );
}

fn print_meetings(corpus: &UnderstandingCorpus) {
    let pieces = corpus.meetings.iter().flat_map(|it| &it.items);
    let turns = pieces.clone().flat_map(|it| &it.turns);
    let clauses = turns.clone().flat_map(|it| &it.clauses);
    let pairs = pieces.flat_map(|it| &it.pairs);
    println!(
        "meetings: {} {} turns",
        sizes(&corpus.meetings),
        turns.count()
    );
    println!("  statements: {}", counts(clauses.map(|it| it.kind.name())));
    println!("  pairs: {}", counts(pairs.map(|it| it.relation.name())));
}

/// Items of each part, and writers.
fn sizes<T>(writers: &[WriterFolder<T>]) -> String {
    let items = writers.iter().flat_map(|it| {
        let part = it.part.as_str();
        it.items.iter().map(move |_| part)
    });
    format!("{} by {} writers;", counts(items), writers.len())
}

/// All of a list, and those of each name.
fn counts<T: Display>(list: impl Iterator<Item = T>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in list {
        *counts.entry(item.to_string()).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    let each = counts.iter().map(|(name, count)| format!("{name} {count}"));
    let each: Vec<_> = each.collect();
    format!("{total} ({})", each.join(", "))
}
