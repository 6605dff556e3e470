//! Needs: which remembered lines a good reply to a prompt needs, and the tense of the prompt.

use std::collections::HashMap;

use memfleet_domain::tense::{PromptTense, TenseScores};

use crate::heads::{LinearHead, mean_row, softmax};
use crate::reader::BetweenLayers;
use crate::sequences::{SequenceBuilder, last_pieces};
use crate::{ReaderError, ReaderModel};

/// Pieces of a remembered line that are read.
const LINE_PIECES: usize = 96;

/// Pieces of a prompt that are read.
const PROMPT_PIECES: usize = 64;

/// Pieces of the turns before a prompt that are read.
const CONTEXT_PIECES: usize = 40;

/// Reading of a prompt. The log odds that it needs a line are the scaled product of their vectors,
/// of length 1, and the offset of the prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptVector {
    /// Components.
    pub values: Vec<f32>,
    /// Part of the log odds that all lines share.
    pub offset: f32,
    /// Tense of the prompt.
    pub tense: TenseScores,
}

/// Heads on means of states.
pub(crate) struct NeedHeads {
    scale: f32,
    offset: LinearHead,
    tense: LinearHead,
}

impl NeedHeads {
    pub(crate) fn take(
        constants: &mut HashMap<String, Vec<f32>>,
        width: usize,
    ) -> Result<Self, ReaderError> {
        let name = "needs.scale".to_owned();
        let scale = constants.remove(&name);
        let scale = scale.and_then(|it| it.first().copied());
        Ok(Self {
            scale: scale.ok_or(ReaderError::Constant { name, size: 1 })?,
            offset: LinearHead::take(constants, "needs.offset", [1, width])?,
            tense: LinearHead::take(constants, "tenses.tense", [PromptTense::ALL.len(), width])?,
        })
    }
}

impl ReaderModel {
    /// Vectors of remembered lines, of length 1: the text, and whether an assistant said it.
    pub fn line_vectors(
        &self,
        lines: &[(&str, bool)],
        between: BetweenLayers<'_>,
    ) -> Result<Vec<Vec<f32>>, ReaderError> {
        let tokenizer = self.encoder.tokenizer();
        let sequences = lines.iter().map(|(text, is_assistant)| {
            let role = if *is_assistant { "assistant: " } else { "" };
            let mut sequence = SequenceBuilder::new(tokenizer)?;
            let pieces = tokenizer.pieces(text, LINE_PIECES)?;
            sequence.add(&format!("passage: {role}"), &pieces)?;
            Ok(sequence.build())
        });
        let sequences = sequences.collect::<Result<_, ReaderError>>()?;
        let mut vectors = self.sequence_means(sequences, between)?;
        vectors.iter_mut().for_each(|vector| normalise(vector));
        Ok(vectors)
    }

    /// Reading of a prompt behind the turns before it, which may be empty.
    pub fn prompt_vector(
        &self,
        prompt: &str,
        before: &str,
        between: BetweenLayers<'_>,
    ) -> Result<PromptVector, ReaderError> {
        let tokenizer = self.encoder.tokenizer();
        let mut sequence = SequenceBuilder::new(tokenizer)?;
        sequence.add("query:", &tokenizer.pieces(prompt, PROMPT_PIECES)?)?;
        if !before.is_empty() {
            sequence.add("", &last_pieces(tokenizer, before, CONTEXT_PIECES)?)?;
        }
        let means = self.sequence_means(vec![sequence.build()], between)?;
        let mut values = means.into_iter().next().expect("one sequence was read");
        let offset = self.needs.offset.scores(&[&values])[0];
        let probabilities = softmax(&self.needs.tense.scores(&[&values]));
        normalise(&mut values);
        Ok(PromptVector {
            values,
            offset,
            tense: TenseScores { probabilities },
        })
    }

    /// Log odds that a good reply to a prompt needs a line.
    pub fn need(&self, prompt: &PromptVector, line: &[f32]) -> f32 {
        let products = prompt.values.iter().zip(line);
        let cosine: f32 = products.map(|(a, b)| a * b).sum();
        self.needs.scale * cosine + prompt.offset
    }

    /// Means of the states of sequences.
    fn sequence_means(
        &self,
        sequences: Vec<Vec<u32>>,
        between: BetweenLayers<'_>,
    ) -> Result<Vec<Vec<f32>>, ReaderError> {
        let width = self.encoder.dimensions();
        let mut means = Vec::with_capacity(sequences.len());
        self.for_each_states(sequences, between, |_, states| {
            means.push(mean_row(states, width, 0..states.len() / width));
        })?;
        Ok(means)
    }
}

/// Gives a vector the length 1.
fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let length = length.max(f32::EPSILON);
    vector.iter_mut().for_each(|x| *x /= length);
}
