//! The figures of a run, as tables.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memfleet_evaluation::{Means, Tally};
use memfleet_retrieval::Weights;

use crate::space::Space;

/// Turns asked for.
const LIMIT: usize = 100;

/// Recall and coverage of one way of searching.
#[derive(Default)]
pub struct Report {
    all: Tally,
    by_category: BTreeMap<String, Tally>,
    by_space: Vec<Tally>,
    candidates: usize,
    passages: usize,
    took: Duration,
    /// Memory of the indexes.
    pub bytes_a_turn: usize,
}

impl Report {
    /// Asks every question.
    pub fn of(spaces: &[Space], weights: &Weights) -> Self {
        let mut report = Self::default();
        for space in spaces {
            let mut tally = Tally::default();
            for (question, vectors) in &space.questions {
                let started = Instant::now();
                let answer = space.ask(question, vectors, weights, LIMIT);
                report.took += started.elapsed();
                report.candidates += answer.candidates;
                report.passages += answer.passages;
                tally.add(question, &answer.found);
                report
                    .by_category
                    .entry(question.category.clone())
                    .or_default()
                    .add(question, &answer.found);
            }
            report.all.merge(&tally);
            report.by_space.push(tally);
        }
        let turns: usize = spaces.iter().map(|space| space.index.turns()).sum();
        report.bytes_a_turn = spaces
            .iter()
            .map(|space| space.index.bytes())
            .sum::<usize>()
            / turns.max(1);
        report
    }

    /// Prints the figures.
    pub fn print(&self, categories: bool) {
        let questions = self.all.recall.questions().max(1);
        println!(
            "  {} candidates and {} passages a question, {:.2} ms",
            self.candidates / questions,
            self.passages / questions,
            self.took.as_secs_f64() * 1e3 / questions as f64
        );
        line("all", &self.all);
        if categories {
            for (category, tally) in &self.by_category {
                line(category, tally);
            }
            for (place, tally) in self.by_space.iter().enumerate() {
                line(&format!("space {place}"), tally);
            }
        }
    }

    /// Prints what changed against `full`.
    pub fn print_loss(&self, without: &str, full: &Self) {
        let change = |of: fn(&Tally) -> Means, depth| of(&self.all)[&depth] - of(&full.all)[&depth];
        println!(
            "  without {without:22} recall@10 {:+5.1}  @100 {:+5.1}  coverage@10 {:+5.1}",
            change(|tally| tally.recall.means(), 10),
            change(|tally| tally.recall.means(), 100),
            change(|tally| tally.coverage.means(), 10)
        );
    }
}

fn line(name: &str, tally: &Tally) {
    let row = |means: Means| {
        Tally::DEPTHS
            .map(|depth| format!("{:5.1}", means[&depth]))
            .join(" ")
    };
    println!(
        "  {name:28} {:5} questions  recall {}  coverage {}",
        tally.recall.questions(),
        row(tally.recall.means()),
        row(tally.coverage.means())
    );
}
