//! The sentence vectors of a space: one row of signed bytes a passage, and the signs of its components as bits.

use std::ops::Range;

use super::bits::Bits;
use crate::dot::{Query, signs};

/// Rows without a vector are zero. All vectors have the length of the first; others are not taken.
#[derive(Debug, Default)]
pub(crate) struct Sentences {
    dimensions: usize,
    values: Vec<i8>,
    /// By row: [`signs`] of its vector, an eighth of the bytes.
    signs: Vec<u64>,
    present: Bits,
    count: usize,
    /// Sum of all vectors.
    sum: Vec<i64>,
    /// By row: 1 − highest cosine to one of the rows shortly before; NaN without a vector.
    novelty: Vec<f32>,
}

/// Rows before a row that its novelty looks back on: a bound on the work a write brings.
const MEMORY: usize = 512;
/// Square of the factor of stored components.
const UNIT: f32 = 127.0 * 127.0;

impl Sentences {
    /// Gives a row its vector, or takes it away.
    pub(crate) fn set(&mut self, row: u32, vector: Option<&[i8]>) {
        self.clear(row);
        let Some(vector) = vector.filter(|vector| !vector.is_empty()) else {
            return;
        };
        if self.dimensions == 0 {
            self.dimensions = vector.len();
            self.sum = vec![0; vector.len()];
        }
        if vector.len() != self.dimensions {
            return;
        }
        let end = (row as usize + 1) * self.dimensions;
        if self.values.len() < end {
            self.values.resize(end, 0);
        }
        self.values[end - self.dimensions..end].copy_from_slice(vector);
        let words = self.words();
        self.signs
            .resize(self.values.len() / self.dimensions * words, 0);
        let own = &mut self.signs[row as usize * words..][..words];
        own.iter_mut()
            .zip(signs(vector))
            .for_each(|(word, signs)| *word = signs);
        self.sum
            .iter_mut()
            .zip(vector)
            .for_each(|(sum, &x)| *sum += i64::from(x));
        self.present.set(row, true);
        self.count += 1;
        self.remember_novelty(row, vector);
    }

    /// 1 − highest cosine to one of the rows shortly before, 1 for the first; NaN without a vector.
    pub(crate) fn novelty(&self, row: u32) -> f32 {
        if self.has(row) {
            self.novelty[row as usize]
        } else {
            f32::NAN
        }
    }

    fn remember_novelty(&mut self, row: u32, vector: &[i8]) {
        let novelty = self.novelty_at(row, vector);
        let row = row as usize;
        if self.novelty.len() <= row {
            self.novelty.resize(row + 1, f32::NAN);
        }
        self.novelty[row] = novelty;
    }

    /// What the novelty of a vector would be in place of this row.
    pub(crate) fn novelty_at(&self, row: u32, vector: &[i8]) -> f32 {
        if vector.len() != self.dimensions {
            return 1.0;
        }
        let end = (row as usize * self.dimensions).min(self.values.len());
        let start = end.saturating_sub(MEMORY * self.dimensions);
        let query = Query::new(vector);
        // Rows without a vector are zero and give 0, as if they were unlike anything.
        let highest = self.values[start..end]
            .chunks_exact(self.dimensions)
            .map(|other| query.dot(other))
            .max()
            .unwrap_or(0)
            .max(0);
        1.0 - highest as f32 / UNIT
    }

    /// Which rows have a vector.
    pub(crate) fn present(&self) -> &Bits {
        &self.present
    }

    /// Whether the row has a vector.
    pub(crate) fn has(&self, row: u32) -> bool {
        self.present.contains(row)
    }

    /// The row's vector.
    pub(crate) fn get(&self, row: u32) -> Option<&[i8]> {
        let start = row as usize * self.dimensions;
        self.has(row)
            .then(|| &self.values[start..start + self.dimensions])
    }

    /// The signs of these rows' vectors, [`Self::words`] each, as far as rows are known; anything for a row without a vector.
    pub(crate) fn signs(&self, rows: Range<u32>) -> &[u64] {
        let word = |row: u32| (row as usize * self.words()).min(self.signs.len());
        &self.signs[word(rows.start)..word(rows.end)]
    }

    /// Words of signs a row.
    pub(crate) fn words(&self) -> usize {
        self.dimensions.div_ceil(64)
    }

    /// Components a vector; 0 before the first.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Rows with a vector.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Sum of all vectors; empty without any.
    pub(crate) fn sum(&self) -> &[i64] {
        if self.count == 0 { &[] } else { &self.sum }
    }

    /// Keeps the rows that `keep` names, in order.
    pub(crate) fn retain(&mut self, keep: &[u32]) {
        let mut values = Vec::with_capacity(keep.len() * self.dimensions);
        let mut signs = Vec::with_capacity(keep.len() * self.words());
        for &row in keep {
            match self.get(row) {
                Some(vector) => values.extend_from_slice(vector),
                None => values.resize(values.len() + self.dimensions, 0),
            }
            signs.extend_from_slice(self.signs(row..row + 1));
            signs.resize(values.len() / self.dimensions.max(1) * self.words(), 0);
        }
        self.novelty = keep.iter().map(|&row| self.novelty(row)).collect();
        self.present = (0..)
            .zip(keep)
            .filter_map(|(new, &old)| self.has(old).then_some(new))
            .collect();
        self.values = values;
        self.signs = signs;
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.values.capacity()
            + self.signs.capacity() * 8
            + self.present.bytes()
            + self.sum.capacity() * 8
            + self.novelty.capacity() * 4
    }

    fn clear(&mut self, row: u32) {
        if !self.has(row) {
            return;
        }
        let start = row as usize * self.dimensions;
        let vector = &mut self.values[start..start + self.dimensions];
        self.sum
            .iter_mut()
            .zip(&*vector)
            .for_each(|(sum, &x)| *sum -= i64::from(x));
        vector.fill(0);
        self.present.set(row, false);
        self.count -= 1;
    }
}
