//! Token vectors reduced to a few dimensions and stored as bytes.

mod file;
mod fit;

use crate::error::Error;
use crate::quantise::{TOKEN_SCALE, bytes};
use crate::vectors::TokenVectors;

pub use fit::fit;

/// A linear map from the model's token vectors to fewer dimensions. It belongs to one model; its hash is part
/// of the embedding space.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    from: usize,
    to: usize,
    /// Row-major, `to × from`.
    matrix: Vec<f32>,
}

/// Token vectors as they are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuantisedTokens {
    /// Components of a row.
    pub dimensions: u16,
    /// Vocabulary ids, in the order of the text.
    pub pieces: Vec<u32>,
    /// Row-major, `pieces.len() × dimensions`; rows of length 1, components × 200, clipped to ±127.
    pub values: Vec<i8>,
}

impl Projection {
    /// The projection of a model's token vectors to 64 dimensions that ships with this crate.
    pub fn shipped(model: &str) -> Option<Self> {
        let bytes: &[u8] = match model {
            "all-MiniLM-L6-v2" => include_bytes!("../data/all-minilm-l6-v2-64.bin"),
            "bge-small-en-v1.5" => include_bytes!("../data/bge-small-en-v1.5-64.bin"),
            "e5-small-v2" => include_bytes!("../data/e5-small-v2-64.bin"),
            "multilingual-e5-small" => include_bytes!("../data/multilingual-e5-small-64.bin"),
            _ => return None,
        };
        Some(
            Self::from_bytes(bytes)
                .expect("the shipped files were written by this crate and are tested"),
        )
    }

    /// Components of a vector that goes in.
    pub fn input_dimensions(&self) -> usize {
        self.from
    }

    /// Components of a vector that comes out.
    pub fn dimensions(&self) -> usize {
        self.to
    }

    /// Projects every row, scales it back to length 1 and stores it as bytes.
    pub fn project_quantise(&self, tokens: &TokenVectors) -> Result<QuantisedTokens, Error> {
        if !tokens.is_empty() && tokens.dimensions != self.from {
            return Err(Error::Projection(format!(
                "takes {} dimensions, given {}",
                self.from, tokens.dimensions
            )));
        }
        let mut row = vec![0.0; self.to];
        let mut values = Vec::with_capacity(tokens.len() * self.to);
        for vector in tokens.rows() {
            self.project(vector, &mut row);
            normalise(&mut row);
            values.extend(bytes(&row, TOKEN_SCALE));
        }
        let dimensions = u16::try_from(self.to).expect("checked when the projection was made");
        Ok(QuantisedTokens {
            dimensions,
            pieces: tokens.pieces.clone(),
            values,
        })
    }

    fn project(&self, vector: &[f32], row: &mut [f32]) {
        for (component, direction) in row.iter_mut().zip(self.matrix.chunks_exact(self.from)) {
            *component = dot(direction, vector);
        }
    }
}

/// Scales a row to length 1; a row of zeros stays.
fn normalise(row: &mut [f32]) {
    let length = dot(row, row).sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|x| *x /= length);
    }
}

/// Dot product in sixteen partial sums, a form that compilers turn into vector instructions.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_blocks, a_rest) = a.as_chunks::<16>();
    let (b_blocks, b_rest) = b.as_chunks::<16>();
    let mut sums = [0.0_f32; 16];
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..16 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swap() -> Projection {
        Projection {
            from: 3,
            to: 2,
            matrix: vec![0.0, 1.0, 0.0, 1.0, 0.0, 0.0],
        }
    }

    #[test]
    fn tokens_are_projected_to_length_one_and_scaled() {
        let tokens = TokenVectors {
            dimensions: 3,
            pieces: vec![5, 6],
            values: vec![0.4, 0.3, 0.0, 0.0, -1.0, 0.0],
        };
        let stored = swap().project_quantise(&tokens).unwrap();
        assert_eq!(
            stored,
            QuantisedTokens {
                dimensions: 2,
                pieces: vec![5, 6],
                values: vec![120, 127, -127, 0]
            }
        );
    }

    #[test]
    fn empty_text_stays_empty() {
        let stored = swap().project_quantise(&TokenVectors::default()).unwrap();
        assert!(stored.pieces.is_empty() && stored.values.is_empty());
    }

    #[test]
    fn vectors_of_another_model_are_refused() {
        let tokens = TokenVectors {
            dimensions: 2,
            pieces: vec![5],
            values: vec![0.5, 0.5],
        };
        assert!(matches!(
            swap().project_quantise(&tokens),
            Err(Error::Projection(_))
        ));
    }

    #[test]
    fn dot_adds_the_rest_after_the_blocks() {
        let ones = vec![1.0; 37];
        assert!((dot(&ones, &ones) - 37.0).abs() < f32::EPSILON);
    }
}
