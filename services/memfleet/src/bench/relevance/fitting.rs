//! Coefficients from what was found, and probabilities from coefficients.

use memfleet_evaluation::logistic::{Example, Logistic};
use memfleet_evaluation::relevance::{Asked, Judged, Kind};
use memfleet_retrieval::{Clue, Relevance};

use super::asking::{File, View};

/// Coefficients for the files, without one conversation of one file where asked. Every file counts the same, in conversations as in
/// sessions. Adversarial questions are left out: what they find bears on them, though it does not answer them.
pub fn fit(files: &[File], without: Option<(usize, usize)>) -> Logistic {
    let mut examples = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let left_out = without.filter(|(file, _)| *file == at);
        for view in &file.views {
            examples.extend(of_view(
                view,
                left_out.map(|(_, conversation)| conversation),
            ));
        }
    }
    Logistic::fit(&examples)
}

fn of_view(view: &View, without: Option<usize>) -> Vec<Example<'_>> {
    let conversations = view.conversations.iter().enumerate();
    let kept = conversations.filter(|(number, _)| Some(*number) != without);
    let asked = kept.flat_map(|(_, asked)| asked);
    let turns = asked
        .filter(|asked| asked.kind != Kind::Adversarial)
        .flat_map(|asked| &asked.found)
        .filter(|turn| !turn.clues.is_empty());
    let mut examples: Vec<Example<'_>> = turns
        .map(|turn| Example {
            values: &turn.clues,
            outcome: turn.is_evidence,
            weight: 1.0,
        })
        .collect();
    let share = 1.0 / examples.len().max(1) as f64;
    examples
        .iter_mut()
        .for_each(|example| example.weight = share);
    examples
}

/// How likely each turn that was found bears on the question.
pub fn judge<'a>(model: &Logistic, asked: &'a Asked) -> Judged<'a> {
    let probability = |clues: &[f32]| (!clues.is_empty()).then(|| model.probability(clues));
    let turns = asked.found.iter();
    Judged {
        relevance: turns.map(|turn| probability(&turn.clues)).collect(),
        asked,
    }
}

/// The coefficients as a scorer that can be shipped, under the name of the one before.
pub fn scorer(model: &Logistic, base: &Relevance) -> Relevance {
    let coefficients = model.coefficients.iter().map(|&x| rounded(x));
    Relevance {
        intercept: rounded(model.intercept),
        clues: Clue::ALL.into_iter().zip(coefficients).collect(),
        ..base.clone()
    }
}

/// To four digits after the point, which is more than the sample tells.
fn rounded(value: f64) -> f32 {
    ((value * 1e4).round() / 1e4) as f32
}
