//! Needs: which remembered lines a good reply to a prompt needs.

use std::collections::HashMap;

use crate::heads::{LinearHead, mean_row};
use crate::reader::BetweenLayers;
use crate::sequences::{SequenceBuilder, last_pieces};
use crate::{ReaderError, ReaderModel};

/// Pieces of a remembered line that are read.
const LINE_PIECES: usize = 96;

/// Pieces of a prompt that are read.
const PROMPT_PIECES: usize = 64;

/// Pieces of the turns before a prompt that are read.
const CONTEXT_PIECES: usize = 40;

/// Vector of a line or of a prompt, of length 1. The log odds that a prompt needs a line are their
/// scaled product and the offset of the prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct NeedVector {
    /// Components.
    pub values: Vec<f32>,
    /// Offset of a prompt; that of a line has no meaning.
    pub offset: f32,
}

/// Heads on means of states.
pub(crate) struct NeedHeads {
    scale: f32,
    offset: LinearHead,
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
        })
    }
}

impl ReaderModel {
    /// Vectors of remembered lines: the text, and whether an assistant said it.
    pub fn line_vectors(
        &self,
        lines: &[(&str, bool)],
        between: BetweenLayers<'_>,
    ) -> Result<Vec<NeedVector>, ReaderError> {
        let tokenizer = self.encoder.tokenizer();
        let sequences = lines.iter().map(|(text, is_assistant)| {
            let role = if *is_assistant { "assistant: " } else { "" };
            let mut sequence = SequenceBuilder::new(tokenizer)?;
            let pieces = tokenizer.pieces(text, LINE_PIECES)?;
            sequence.add(&format!("passage: {role}"), &pieces)?;
            Ok(sequence.build())
        });
        let sequences = sequences.collect::<Result<_, ReaderError>>()?;
        self.need_vectors(sequences, between)
    }

    /// Vector of a prompt behind the turns before it, which may be empty.
    pub fn prompt_vector(
        &self,
        prompt: &str,
        before: &str,
        between: BetweenLayers<'_>,
    ) -> Result<NeedVector, ReaderError> {
        let tokenizer = self.encoder.tokenizer();
        let mut sequence = SequenceBuilder::new(tokenizer)?;
        sequence.add("query:", &tokenizer.pieces(prompt, PROMPT_PIECES)?)?;
        if !before.is_empty() {
            sequence.add("", &last_pieces(tokenizer, before, CONTEXT_PIECES)?)?;
        }
        let vectors = self.need_vectors(vec![sequence.build()], between)?;
        Ok(vectors.into_iter().next().expect("one sequence was read"))
    }

    /// Log odds that a good reply to a prompt needs a line.
    pub fn need(&self, prompt: &NeedVector, line: &NeedVector) -> f32 {
        let products = prompt.values.iter().zip(&line.values);
        let cosine: f32 = products.map(|(a, b)| a * b).sum();
        self.needs.scale * cosine + prompt.offset
    }

    fn need_vectors(
        &self,
        sequences: Vec<Vec<u32>>,
        between: BetweenLayers<'_>,
    ) -> Result<Vec<NeedVector>, ReaderError> {
        let width = self.encoder.dimensions();
        let mut vectors = Vec::with_capacity(sequences.len());
        self.for_each_states(sequences, between, |_, states| {
            let mut values = mean_row(states, width, 0..states.len() / width);
            let offset = self.needs.offset.scores(&[&values])[0];
            let length = values.iter().map(|x| x * x).sum::<f32>().sqrt();
            values
                .iter_mut()
                .for_each(|x| *x /= length.max(f32::EPSILON));
            vectors.push(NeedVector { values, offset });
        })?;
        Ok(vectors)
    }
}
