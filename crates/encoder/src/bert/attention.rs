//! Attention inside each text. Texts are short, so a head's scores lie in the first cache.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};
use rten_vecmath::Softmax;

use super::layout::LANES;

/// Rows that are computed at once, so that sums do not wait for each other.
const ROWS: usize = 4;

/// Every head of every text.
pub(super) struct Attention<'a> {
    /// A row a piece: heads × (query, key, value) × components.
    parts: &'a [f32],
    heads: usize,
    lengths: &'a [usize],
    /// A row a piece: heads × components.
    context: &'a mut [f32],
}

/// Room for one head.
#[derive(Default)]
struct Head {
    /// Components × pieces, already divided by the square root of the components. What stands behind the pieces
    /// is arbitrary: the scores it gives are never read.
    keys: Vec<f32>,
    /// Pieces × components.
    values: Vec<f32>,
    /// Pieces × pieces.
    scores: Vec<f32>,
}

/// A row-major matrix whose rows lie `stride` apart.
#[derive(Clone, Copy)]
struct Rows<'a> {
    values: &'a [f32],
    stride: usize,
    count: usize,
    depth: usize,
}

impl<'a> Attention<'a> {
    pub(super) fn new(
        parts: &'a [f32],
        heads: usize,
        lengths: &'a [usize],
        context: &'a mut [f32],
    ) -> Self {
        Self {
            parts,
            heads,
            lengths,
            context,
        }
    }
}

impl SimdOp for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let pieces: usize = self.lengths.iter().sum();
        let hidden = self.context.len() / pieces.max(1);
        let (mut parts, mut context) = (self.parts, self.context);
        let mut room = Head::default();
        for &length in self.lengths.iter().filter(|&&length| length > 0) {
            let (text, others) = parts.split_at(length * 3 * hidden);
            let (out, rest) = context.split_at_mut(length * hidden);
            let size = hidden / self.heads;
            for first in (0..hidden).step_by(size) {
                let head = Rows {
                    values: &text[3 * first..],
                    stride: 3 * hidden,
                    count: length,
                    depth: size,
                };
                room.attend(isa, head, &mut out[first..], hidden);
            }
            (parts, context) = (others, rest);
        }
    }
}

impl Head {
    /// `queries` are those of the head, each followed by its key and its value.
    #[inline(always)]
    fn attend<I: Isa>(&mut self, isa: I, queries: Rows<'_>, context: &mut [f32], stride: usize) {
        let (length, size) = (queries.count, queries.depth);
        let width = length.next_multiple_of(LANES);
        self.read(queries, width);
        self.scores.resize(length * width, 0.0);
        product(isa, queries, &self.keys, width, &mut self.scores, width);
        for row in self.scores.chunks_exact_mut(width) {
            Softmax::new_mut(&mut row[..length]).eval(isa);
        }
        let scores = Rows {
            values: &self.scores,
            stride: width,
            count: length,
            depth: length,
        };
        product(isa, scores, &self.values, size, context, stride);
    }

    /// Keys as columns, values as rows, each behind the other.
    #[inline(always)]
    fn read(&mut self, head: Rows<'_>, width: usize) {
        let size = head.depth;
        let scale = (size as f32).sqrt().recip();
        self.keys.resize(size * width, 0.0);
        for (component, keys) in self.keys.chunks_exact_mut(width).enumerate() {
            let of_pieces = head.values[size + component..].iter().step_by(head.stride);
            for (key, x) in keys[..head.count].iter_mut().zip(of_pieces) {
                *key = x * scale;
            }
        }
        self.values.clear();
        for row in head.values.chunks(head.stride).take(head.count) {
            self.values.extend_from_slice(&row[2 * size..3 * size]);
        }
    }
}

/// `left · right` for a right side of `depth × width`, into rows that lie `stride` apart.
#[inline(always)]
fn product<I: Isa>(
    isa: I,
    left: Rows<'_>,
    right: &[f32],
    width: usize,
    out: &mut [f32],
    stride: usize,
) {
    let (ops, left_rows) = (isa.f32(), left.count);
    for first in (0..left_rows).step_by(ROWS) {
        // The last rows are computed again where fewer than a block are left.
        let rows: [&[f32]; ROWS] = std::array::from_fn(|row| {
            let row = (first + row).min(left_rows - 1);
            &left.values[row * left.stride..][..left.depth]
        });
        for column in (0..width).step_by(ops.len()) {
            let mut sums = [ops.zero(); ROWS];
            let [a, b, c, d] = rows;
            let left = a.iter().zip(b).zip(c.iter().zip(d));
            for (right, ((&a, &b), (&c, &d))) in right.chunks_exact(width).zip(left) {
                let right = ops.load(&right[column..]);
                for (sum, x) in sums.iter_mut().zip([a, b, c, d]) {
                    *sum = ops.mul_add(ops.splat(x), right, *sum);
                }
            }
            for (row, sum) in sums.into_iter().enumerate().take(left_rows - first) {
                ops.store(sum, &mut out[(first + row) * stride + column..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: usize = LANES;

    /// The definition, number by number: softmax(q · k / √d) · v inside the text.
    fn expected(text: &[f32], heads: usize, head: usize, query: usize, component: usize) -> f32 {
        let hidden = heads * SIZE;
        let part = |piece: usize, part: usize| {
            &text[piece * 3 * hidden + (3 * head + part) * SIZE..][..SIZE]
        };
        let pieces = 0..text.len() / (3 * hidden);
        let score = |piece| {
            let pairs = part(query, 0).iter().zip(part(piece, 1));
            (pairs.map(|(q, k)| q * k).sum::<f32>() / (SIZE as f32).sqrt()).exp()
        };
        let total: f32 = pieces.clone().map(score).sum();
        pieces
            .map(|piece| score(piece) / total * part(piece, 2)[component])
            .sum()
    }

    proptest! {
        #[test]
        fn every_head_of_every_text_is_as_defined(
            lengths in prop::collection::vec(0_usize..37, 1..4),
            heads in 1_usize..3,
            seed in any::<u32>(),
        ) {
            let hidden = heads * SIZE;
            let pieces: usize = lengths.iter().sum();
            let value = |at: usize| ((at as u32).wrapping_mul(2_654_435_761) ^ seed) as f32 / u32::MAX as f32 - 0.5;
            let parts: Vec<f32> = (0..pieces * 3 * hidden).map(value).collect();
            let mut context = vec![f32::NAN; pieces * hidden];
            Attention::new(&parts, heads, &lengths, &mut context).dispatch();
            let mut first = 0;
            for &length in &lengths {
                let text = &parts[first * 3 * hidden..][..length * 3 * hidden];
                for (at, &found) in context[first * hidden..][..length * hidden].iter().enumerate() {
                    let (query, column) = (at / hidden, at % hidden);
                    let expected = expected(text, heads, column / SIZE, query, column % SIZE);
                    prop_assert!((found - expected).abs() < 1e-4, "{found} {expected}");
                }
                first += length;
            }
        }
    }
}
