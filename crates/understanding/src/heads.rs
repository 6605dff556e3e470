//! Linear maps and what turns their scores into probabilities.

use std::collections::HashMap;

use rten_simd::SimdUnaryOp;
use rten_vecmath::Gelu;

use crate::ReaderError;

/// Linear map: one row of weights and one bias for each output.
#[derive(Debug)]
pub(crate) struct LinearHead {
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl LinearHead {
    /// Takes a map out of the constants of a file.
    pub(crate) fn take(
        constants: &mut HashMap<String, Vec<f32>>,
        name: &str,
        [outputs, inputs]: [usize; 2],
    ) -> Result<Self, ReaderError> {
        let mut constant = |part: &str, size: usize| {
            let name = format!("{name}.{part}");
            let values = constants.remove(&name).filter(|it| it.len() == size);
            values.ok_or(ReaderError::Constant { name, size })
        };
        Ok(Self {
            weights: constant("weight", outputs * inputs)?,
            biases: constant("bias", outputs)?,
        })
    }

    /// Scores of an input that consists of parts behind each other.
    pub(crate) fn scores(&self, parts: &[&[f32]]) -> Vec<f32> {
        let inputs = self.weights.len() / self.biases.len();
        let rows = self.weights.chunks_exact(inputs).zip(&self.biases);
        rows.map(|(row, bias)| {
            let (mut rest, mut sum) = (row, *bias);
            for part in parts {
                let (weights, others) = rest.split_at(part.len());
                rest = others;
                sum += weights.iter().zip(*part).map(|(w, x)| w * x).sum::<f32>();
            }
            sum
        })
        .collect()
    }
}

/// Gaussian error linear unit of every value.
pub(crate) fn gelu(values: &mut [f32]) {
    Gelu {}.map_mut(values);
}

/// Probability of a score that is a log odds.
pub(crate) fn sigmoid(score: f32) -> f32 {
    1.0 / (1.0 + (-score).exp())
}

/// Probabilities of scores of which one is true.
pub(crate) fn softmax<const N: usize>(scores: &[f32]) -> [f32; N] {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut odds = [0.0; N];
    for (odds, score) in odds.iter_mut().zip(scores) {
        *odds = (score - highest).exp();
    }
    let sum: f32 = odds.iter().sum();
    odds.map(|it| it / sum)
}

/// Place and probability of the likeliest.
pub(crate) fn likeliest(probabilities: &[f32]) -> (usize, f32) {
    let mut best = (0, f32::NEG_INFINITY);
    for (place, &probability) in probabilities.iter().enumerate() {
        if probability > best.1 {
            best = (place, probability);
        }
    }
    best
}

/// Mean of the rows `first..last` of a matrix.
pub(crate) fn mean_row(states: &[f32], width: usize, rows: std::ops::Range<usize>) -> Vec<f32> {
    let count = rows.len().max(1) as f32;
    let mut mean = vec![0.0; width];
    for row in states[rows.start * width..rows.end * width].chunks_exact(width) {
        mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    mean.iter_mut().for_each(|sum| *sum /= count);
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_of_all_parts_behind_each_other() {
        let head = LinearHead {
            weights: vec![1.0, 2.0, 3.0, 0.0, 0.0, -1.0],
            biases: vec![0.5, 0.0],
        };
        assert_eq!(head.scores(&[&[1.0], &[1.0, 2.0]]), [9.5, -2.0]);
    }

    #[test]
    fn probabilities_sum_to_one_whatever_the_scores() {
        let odds: [f32; 3] = softmax(&[1000.0, 1000.0, -1000.0]);
        assert_eq!(odds.map(f32::to_bits), [0.5, 0.5, 0.0].map(f32::to_bits));
        assert_eq!(likeliest(&odds).0, 0);
        assert_eq!(sigmoid(0.0).to_bits(), 0.5_f32.to_bits());
    }

    #[test]
    fn a_mean_is_of_its_rows_alone() {
        let states = [9.0, 9.0, 1.0, 2.0, 3.0, 4.0];
        assert_eq!(mean_row(&states, 2, 1..3), [2.0, 3.0]);
    }

    #[test]
    fn a_missing_constant_is_named_with_its_size() {
        let mut constants = HashMap::from([("kind.weight".to_owned(), vec![0.0; 3])]);
        let error = LinearHead::take(&mut constants, "kind", [2, 2]).unwrap_err();
        assert!(error.to_string().contains("kind.weight"), "{error}");
    }
}
