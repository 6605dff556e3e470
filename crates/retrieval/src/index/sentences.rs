//! The sentence vectors of a space: one row of signed bytes a passage, and the signs of its components as bits.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

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
    /// By row: the bits of its novelty; NaN where that is not known. A vector that comes late or goes makes it unknown for
    /// those that look back on it, and who asks computes it.
    novelty: Vec<AtomicU32>,
}

/// Vectors before a row that its novelty looks back on: a bound on the work a write brings.
const MEMORY: usize = 512;
const UNKNOWN: f32 = f32::NAN;
/// Square of the factor of stored components.
const UNIT: f32 = 127.0 * 127.0;

impl Sentences {
    /// Gives a row its vector, or takes it away.
    pub(crate) fn set(&mut self, row: u32, vector: Option<&[i8]>) {
        if self.has(row) && self.get(row) == vector {
            return;
        }
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
        self.forget_novelty_from(row);
        self.novelty(row);
    }

    /// 1 − highest cosine to one of the vectors shortly before, at most 1; NaN without a vector.
    pub(crate) fn novelty(&self, row: u32) -> f32 {
        let Some(vector) = self.get(row) else {
            return f32::NAN;
        };
        let kept = &self.novelty[row as usize];
        let known = f32::from_bits(kept.load(Ordering::Relaxed));
        if !known.is_nan() {
            return known;
        }
        let novelty = self.novelty_at(row, vector);
        kept.store(novelty.to_bits(), Ordering::Relaxed);
        novelty
    }

    /// What the novelty of a vector would be in place of this row.
    pub(crate) fn novelty_at(&self, row: u32, vector: &[i8]) -> f32 {
        if vector.len() != self.dimensions {
            return 1.0;
        }
        let query = Query::new(vector);
        let earlier = self.present.before(row).take(MEMORY);
        let products = earlier.filter_map(|row| Some(query.dot(self.get(row)?)));
        1.0 - products.max().unwrap_or(0).max(0) as f32 / UNIT
    }

    /// What was known of a row, and of those that look back on it, is no longer so.
    fn forget_novelty_from(&mut self, row: u32) {
        let rows = self.values.len() / self.dimensions;
        self.novelty.resize_with(rows, || UNKNOWN.to_bits().into());
        for row in self.present.from(row).take(MEMORY + 1) {
            *self.novelty[row as usize].get_mut() = UNKNOWN.to_bits();
        }
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

    /// Keeps the rows that `keep` names, in its order.
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
        // What a row looks back on stays the same unless rows change places.
        let is_known = keep.is_sorted();
        let known = |&row: &u32| {
            let kept = self.novelty.get(row as usize).filter(|_| is_known);
            let unknown = UNKNOWN.to_bits();
            AtomicU32::new(kept.map_or(unknown, |it| it.load(Ordering::Relaxed)))
        };
        self.novelty = keep.iter().map(known).collect();
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
        self.forget_novelty_from(row);
    }
}
