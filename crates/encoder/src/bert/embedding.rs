//! From word pieces to the first layer's input.

use super::constants::Constants;
use super::rows::Norm;
use super::table::Table;
use crate::error::Error;
use crate::tokens::Tokens;

/// Vectors of words and positions, the first segment's among the latter.
pub(super) struct Embedding {
    words: Table,
    scales: Vec<f32>,
    positions: Vec<f32>,
    norm: Norm,
}

impl Embedding {
    pub(super) fn take(constants: &mut Constants) -> Result<Self, Error> {
        let norm = Norm::take(constants, "embeddings.LayerNorm")?;
        let words = constants.table("embeddings.words", norm.width())?;
        let scales = constants.floats("embeddings.words.scales")?;
        let positions = constants.floats("embeddings.positions")?;
        if words.rows() != scales.len() || !positions.len().is_multiple_of(norm.width()) {
            return Err(constants.unfit("tables of words and positions"));
        }
        Ok(Self {
            words,
            scales,
            positions,
            norm,
        })
    }

    /// Components of a row.
    pub(super) fn width(&self) -> usize {
        self.norm.width()
    }

    /// The sum of word and position of every piece, normalised, the texts behind each other.
    pub(super) fn rows(&self, texts: &[&Tokens]) -> Result<Vec<f32>, Error> {
        let width = self.norm.width();
        let count: usize = texts.iter().map(|tokens| tokens.len()).sum();
        let mut rows = Vec::with_capacity(count * width);
        let mut room = Vec::new();
        for tokens in texts {
            let positions = self.positions.chunks_exact(width);
            if tokens.len() > positions.len() {
                let (found, most) = (tokens.len(), positions.len());
                return Err(Error::Shape(format!("{found} pieces, at most {most}")));
            }
            for (&id, position) in tokens.ids().iter().zip(positions) {
                let word = self.words.row(id as usize, &mut room)?;
                let scale = self.scales[id as usize];
                let sum = word
                    .iter()
                    .zip(position)
                    .map(|(&byte, x)| f32::from(byte.cast_signed()) * scale + x);
                rows.extend(sum);
            }
        }
        self.norm.apply(&mut rows);
        Ok(rows)
    }
}
