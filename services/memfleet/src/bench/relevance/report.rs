//! The report of `memfleet bench relevance`: whether probabilities come true, and what a threshold on them keeps.

use std::collections::BTreeMap;

use memfleet_evaluation::relevance::{Asked, Judged, Kept, Means, Reliability};
use memfleet_retrieval::Relevance;
use serde::Serialize;

use super::asking::{File, View};

/// Thresholds that are shown.
const THRESHOLDS: [f64; 17] = [
    0.0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.02, 0.05, 0.1, 0.2,
    0.3, 0.5, 0.9,
];
/// Budgets, in tokens of turns.
const BUDGETS: [usize; 4] = [300, 500, 1000, 4000];

/// All files.
#[derive(Serialize)]
pub struct Report {
    intercept: f32,
    clues: BTreeMap<&'static str, f32>,
    views: Vec<ViewReport>,
}

/// A file, a conversation or a session a space.
#[derive(Serialize)]
pub struct ViewReport {
    file: String,
    space: &'static str,
    /// Whether the coefficients were fitted without the file; else without the conversation.
    unseen: bool,
    answerable: usize,
    adversarial: usize,
    foreign: usize,
    brier: f64,
    calibration_error: f64,
    thresholds: Vec<Row>,
}

/// What a threshold keeps; shares in percent.
#[derive(Serialize)]
struct Row {
    threshold: f64,
    precision: f64,
    recall: f64,
    /// By budget.
    coverage: BTreeMap<usize, f64>,
    answerable: Shown,
    adversarial: Shown,
    foreign: Shown,
}

/// Means a question.
#[derive(Serialize)]
struct Shown {
    turns: f64,
    tokens: f64,
    /// Questions for which nothing is kept, in percent.
    nothing: f64,
}

/// What both views of a file show; `judge` is told the conversation.
pub fn of<'a>(
    file: &'a File,
    unseen: bool,
    judge: impl Fn(usize, &'a Asked) -> Judged<'a>,
) -> Vec<ViewReport> {
    let judged = |view: &'a View| -> Vec<Judged<'a>> {
        let conversations = view.conversations.iter().enumerate();
        conversations
            .flat_map(|(number, asked)| asked.iter().map(move |asked| (number, asked)))
            .map(|(number, asked)| judge(number, asked))
            .collect()
    };
    let views = file.views.iter();
    views
        .map(|view| ViewReport::new(&file.name, view.name, unseen, &judged(view)))
        .collect()
}

impl ViewReport {
    fn new(file: &str, space: &'static str, unseen: bool, judged: &[Judged<'_>]) -> Self {
        let kept = THRESHOLDS.map(|threshold| Kept::of(judged, threshold, &BUDGETS));
        let reliability = Reliability::of(judged);
        Self {
            file: file.to_owned(),
            space,
            unseen,
            answerable: kept[0].answerable.questions,
            adversarial: kept[0].adversarial.questions,
            foreign: kept[0].foreign.questions,
            brier: reliability.brier,
            calibration_error: reliability.calibration_error,
            thresholds: kept.iter().map(Row::new).collect(),
        }
    }

    fn lines(&self) -> Vec<String> {
        let told = if self.unseen {
            "the file was not fitted on"
        } else {
            "told by other conversations"
        };
        let mut lines = vec![
            format!("{}, a {} a space; {told}", self.file, self.space),
            format!(
                "{} answerable, {} adversarial, {} foreign questions; Brier {:.4}, calibration error {:.3}",
                self.answerable, self.adversarial, self.foreign, self.brier, self.calibration_error
            ),
        ];
        let budgets = BUDGETS.map(|budget| format!("{:>8}", format!("in {budget}")));
        lines.push(format!(
            "{:>9}{:>11}{:>8}{}{:>8}{:>8}{:>9}{:>13}{:>8}{:>9}{:>9}",
            "threshold",
            "precision",
            "recall",
            budgets.concat(),
            "turns",
            "tokens",
            "nothing",
            "adversarial",
            "tokens",
            "foreign",
            "nothing"
        ));
        lines.extend(self.thresholds.iter().map(Row::line));
        lines
    }
}

impl Row {
    fn new(kept: &Kept) -> Self {
        let coverage = BUDGETS.into_iter().zip(&kept.coverage);
        Self {
            threshold: kept.threshold,
            precision: 100.0 * kept.precision,
            recall: 100.0 * kept.recall,
            coverage: coverage
                .map(|(budget, share)| (budget, 100.0 * share))
                .collect(),
            answerable: Shown::new(kept.answerable),
            adversarial: Shown::new(kept.adversarial),
            foreign: Shown::new(kept.foreign),
        }
    }

    fn line(&self) -> String {
        let coverage = self.coverage.values().map(|share| format!("{share:>8.1}"));
        format!(
            "{:>9}{:>11.1}{:>8.1}{}{:>8.1}{:>8.0}{:>9.1}{:>13.1}{:>8.0}{:>9.1}{:>9.1}",
            self.threshold,
            self.precision,
            self.recall,
            coverage.collect::<String>(),
            self.answerable.turns,
            self.answerable.tokens,
            self.answerable.nothing,
            self.adversarial.turns,
            self.adversarial.tokens,
            self.foreign.turns,
            self.foreign.nothing
        )
    }
}

impl Shown {
    fn new(means: Means) -> Self {
        Self {
            turns: means.turns,
            tokens: means.tokens,
            nothing: 100.0 * means.nothing,
        }
    }
}

impl Report {
    /// The report on a fitted scorer.
    pub fn new(fitted: &Relevance, views: Vec<ViewReport>) -> Self {
        let clues = fitted.clues.iter();
        Self {
            intercept: fitted.intercept,
            clues: clues.map(|(clue, &x)| (clue.name(), x)).collect(),
            views,
        }
    }

    /// A block a view, then the coefficients.
    pub fn table(&self) -> String {
        let mut lines = Vec::new();
        for view in &self.views {
            lines.extend(view.lines());
            lines.push(String::new());
        }
        lines.push(format!("{:<24}{:>10.4}", "intercept", self.intercept));
        let clues = self.clues.iter();
        lines.extend(clues.map(|(name, x)| format!("{name:<24}{x:>10.4}")));
        lines.join("\n")
    }
}
