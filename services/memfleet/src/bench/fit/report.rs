//! The report of `memfleet bench fit`: recall with the shipped weights, without each signal, and with fitted weights.

use std::collections::BTreeMap;

use memfleet_evaluation::fit::{Example, recall};
use memfleet_retrieval::Signal;
use serde::Serialize;

use super::{File, Without, fit};

/// Depth of the recall that is reported.
const DEPTH: usize = 10;

/// One file, each conversation its own space or all in one; recall@10 in percent.
pub struct Trial {
    file: String,
    questions: usize,
    shipped: f64,
    /// By signal, without it.
    ablated: Vec<f64>,
    fitted: f64,
    held_out_conversation: f64,
    held_out_file: Option<f64>,
}

impl Trial {
    /// All trials, and the weights fitted on everything.
    pub fn of_all(files: &[File], start: &[f32]) -> (Vec<Self>, Vec<f32>) {
        let fitted = fit(files, start, Without::Nothing);
        let mut trials = Vec::new();
        for (at, file) in files.iter().enumerate() {
            let unseen = Unseen::by(files, at, start);
            let own = (file.name.clone(), &file.conversations);
            let pooled = file.pooled.as_ref();
            let pooled = pooled.map(|pooled| (format!("{} pooled", file.name), pooled));
            let views = std::iter::once(own).chain(pooled);
            trials.extend(views.map(|(name, view)| Self::of(name, view, start, &fitted, &unseen)));
        }
        (trials, fitted)
    }

    fn of(
        file: String,
        view: &[Vec<Example>],
        start: &[f32],
        fitted: &[f32],
        unseen: &Unseen,
    ) -> Self {
        let examples = || view.iter().flatten();
        let percent = |weights: &[f32]| 100.0 * recall(examples(), weights, DEPTH);
        let without = |signal: usize| {
            let mut weights = start.to_vec();
            weights[signal] = 0.0;
            percent(&weights)
        };
        let held_out: f64 = view
            .iter()
            .zip(&unseen.conversations)
            .map(|(examples, weights)| recall(examples, weights, DEPTH) * examples.len() as f64)
            .sum();
        let questions = examples().count();
        Self {
            file,
            questions,
            shipped: percent(start),
            ablated: (0..start.len()).map(without).collect(),
            fitted: percent(fitted),
            held_out_conversation: 100.0 * held_out / questions.max(1) as f64,
            held_out_file: unseen.file.as_deref().map(percent),
        }
    }
}

/// Weights that never saw what they rank.
struct Unseen {
    /// By conversation of the file: fitted on everything else.
    conversations: Vec<Vec<f32>>,
    /// Fitted on the other files, where there are any.
    file: Option<Vec<f32>>,
}

impl Unseen {
    fn by(files: &[File], at: usize, start: &[f32]) -> Self {
        let numbers = 0..files[at].conversations.len();
        let conversation = |number| fit(files, start, Without::Conversation(at, number));
        Self {
            conversations: numbers.map(conversation).collect(),
            file: (files.len() > 1).then(|| fit(files, start, Without::File(at))),
        }
    }
}

/// All files.
#[derive(Serialize)]
pub struct Report {
    files: Vec<FileReport>,
    /// Fitted on all questions.
    weights: BTreeMap<&'static str, f32>,
}

/// One file, recall@10 in percent.
#[derive(Serialize)]
struct FileReport {
    file: String,
    questions: usize,
    shipped: f64,
    fitted: f64,
    held_out_conversation: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_file: Option<f64>,
    without: BTreeMap<&'static str, f64>,
}

impl Report {
    /// The report of trials over `signals`.
    pub fn new(trials: Vec<Trial>, signals: &[Signal], fitted: &[f32]) -> Self {
        let names = || signals.iter().map(|signal| signal.name());
        let file = |trial: Trial| FileReport {
            file: trial.file,
            questions: trial.questions,
            shipped: trial.shipped,
            fitted: trial.fitted,
            held_out_conversation: trial.held_out_conversation,
            held_out_file: trial.held_out_file,
            without: names().zip(trial.ablated).collect(),
        };
        Self {
            files: trials.into_iter().map(file).collect(),
            weights: names().zip(fitted.iter().copied()).collect(),
        }
    }

    /// A column a file: recall, then what is lost without each signal.
    pub fn table(&self) -> String {
        let mut lines: Vec<String> = (1..)
            .zip(&self.files)
            .map(|(number, file)| format!("[{number}] {}: {} questions", file.file, file.questions))
            .collect();
        lines.push("recall@10".to_owned());
        lines.push(self.line("shipped weights", |file| Some(file.shipped)));
        lines.push(self.line("fitted on all", |file| Some(file.fitted)));
        lines.push(self.line("fitted on other conversations", |file| {
            Some(file.held_out_conversation)
        }));
        lines.push(self.line("fitted on other files", |file| file.held_out_file));
        lines.push("lost without the signal; its weight fitted on all".to_owned());
        lines.extend(self.weights.iter().map(|(name, weight)| {
            let lost = self.line(name, |file| Some(file.shipped - file.without.get(name)?));
            format!("{lost}{weight:>10.3}")
        }));
        lines.join("\n")
    }

    fn line(&self, name: &str, value: impl Fn(&FileReport) -> Option<f64>) -> String {
        let cell = |file| value(file).map_or_else(String::new, |value| format!("{value:.1}"));
        let cells = self.files.iter().map(|file| format!("{:>10}", cell(file)));
        format!("{name:<32}{}", cells.collect::<String>())
    }
}
