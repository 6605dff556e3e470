//! Attention inside each text. Texts are short, so a head's scores lie in the first cache.

use std::array;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp, SimdUnaryOp};
use rten_vecmath::Exp;

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
    /// Components × pieces.
    keys: Vec<f32>,
    /// Pieces × components.
    values: Vec<f32>,
    /// Pieces × pieces.
    scores: Vec<f32>,
    /// By piece, the reciprocal of the sum of its scores.
    totals: Vec<f32>,
}

/// A row-major matrix whose rows lie `stride` apart.
#[derive(Clone, Copy)]
struct Rows<'a> {
    values: &'a [f32],
    stride: usize,
    count: usize,
    depth: usize,
}

/// Rows that a product is written to, `stride` apart.
struct Output<'a> {
    values: &'a mut [f32],
    stride: usize,
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
                let context = Output {
                    values: &mut out[first..],
                    stride: hidden,
                };
                room.attend(isa, head, context);
            }
            (parts, context) = (others, rest);
        }
    }
}

impl Head {
    /// `queries` are those of the head, each followed by its key and its value.
    #[inline(always)]
    fn attend<I: Isa>(&mut self, isa: I, queries: Rows<'_>, context: Output<'_>) {
        let (length, size) = (queries.count, queries.depth);
        let width = length.next_multiple_of(LANES);
        self.read(queries, width);
        self.scores
            .resize(length.next_multiple_of(ROWS) * width, 0.0);
        let scores = Output {
            values: &mut self.scores,
            stride: width,
        };
        let scale = (size as f32).sqrt().recip();
        product(isa, queries, &self.keys, width, |_| scale, scores);
        self.totals.clear();
        for block in self.scores.chunks_exact_mut(ROWS * width) {
            let sums = exponentials(isa, block, width, length);
            self.totals.extend(sums.map(f32::recip));
        }
        let scores = Rows {
            values: &self.scores,
            stride: width,
            count: length,
            depth: length,
        };
        let totals = &self.totals;
        product(isa, scores, &self.values, size, |row| totals[row], context);
    }

    /// Keys as columns, values as rows, each behind the other. Behind the pieces the last key
    /// stands again: the scores it gives are never read.
    #[inline(always)]
    fn read(&mut self, head: Rows<'_>, width: usize) {
        let size = head.depth;
        self.keys.resize(size * width, 0.0);
        for first in (0..width).step_by(ROWS) {
            let [a, b, c, d] = head.block(first).map(|row| &row[size..2 * size]);
            let quads = a.iter().zip(b).zip(c.iter().zip(d));
            for (column, ((&a, &b), (&c, &d))) in self.keys.chunks_exact_mut(width).zip(quads) {
                column[first..first + ROWS].copy_from_slice(&[a, b, c, d]);
            }
        }
        self.values.clear();
        for row in head.values.chunks(head.stride).take(head.count) {
            self.values.extend_from_slice(&row[2 * size..3 * size]);
        }
    }
}

impl<'a> Rows<'a> {
    /// Some adjacent rows from `first` on; the last row again for those that are missing.
    #[inline(always)]
    fn block(&self, first: usize) -> [&'a [f32]; ROWS] {
        array::from_fn(|row| &self.values[(first + row).min(self.count - 1) * self.stride..])
    }
}

/// The largest lane.
#[inline(always)]
fn highest<I: Isa>(isa: I, lanes: I::F32) -> f32 {
    let mut values = [f32::MIN; LANES];
    isa.f32().store(lanes, &mut values);
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        let (low, high) = values.split_at_mut(count);
        for (low, &mut high) in low.iter_mut().zip(high) {
            // Plain comparison: one instruction, which `f32::max` with its care for NaN is not.
            *low = if *low > high { *low } else { high };
        }
    }
    values[0]
}

/// Turns the first `length` scores of each row into exponentials of their distance from the row's
/// highest; gives their sums. The rest of a row, which fills its last vector, becomes zero.
#[inline(always)]
fn exponentials<I: Isa>(isa: I, block: &mut [f32], width: usize, length: usize) -> [f32; ROWS] {
    let ops = isa.f32();
    for row in block.chunks_exact_mut(width) {
        row[length..].fill(f32::MIN);
    }
    let mut most = [ops.splat(f32::MIN); ROWS];
    for (most, row) in most.iter_mut().zip(block.chunks_exact(width)) {
        for scores in row.chunks_exact(ops.len()) {
            *most = ops.max(*most, ops.load(scores));
        }
    }
    // Loops, since a closure given to a function of the library is not compiled for the chosen
    // instructions.
    for most in &mut most {
        *most = ops.splat(highest(isa, *most));
    }
    let mut sums = [ops.zero(); ROWS];
    for column in (0..width).step_by(ops.len()) {
        let rows = block.chunks_exact_mut(width).zip(&mut sums);
        for ((row, sum), &most) in rows.zip(&most) {
            let scores = &mut row[column..];
            let x = Exp {}.eval(isa, ops.sub(ops.load(scores), most));
            *sum = ops.add(*sum, x);
            ops.store(x, scores);
        }
    }
    let mut totals = [0.0; ROWS];
    for (total, sum) in totals.iter_mut().zip(sums) {
        *total = ops.sum(sum);
    }
    totals
}

/// `left · right` for a right side of `depth × width`, every row times its factor.
#[inline(always)]
fn product<I: Isa>(
    isa: I,
    left: Rows<'_>,
    right: &[f32],
    width: usize,
    factor: impl Fn(usize) -> f32,
    mut out: Output<'_>,
) {
    let lanes = isa.f32().len();
    let pairs = width - width % (2 * lanes);
    for first in (0..left.count).step_by(ROWS) {
        // The last row is computed again where fewer than a block are left.
        let numbers: [usize; ROWS] = array::from_fn(|row| (first + row).min(left.count - 1));
        let rows = left.block(first).map(|row| &row[..left.depth]);
        let factors = numbers.map(&factor);
        for column in (0..pairs).step_by(2 * lanes) {
            let sums = tile::<I, 2>(isa, rows, right, width, column);
            out.store(isa, numbers, column, factors, sums);
        }
        if pairs < width {
            let sums = tile::<I, 1>(isa, rows, right, width, pairs);
            out.store(isa, numbers, pairs, factors, sums);
        }
    }
}

/// Products of some rows with adjacent columns, in registers.
#[inline(always)]
fn tile<I: Isa, const VECTORS: usize>(
    isa: I,
    rows: [&[f32]; ROWS],
    right: &[f32],
    width: usize,
    column: usize,
) -> [[I::F32; VECTORS]; ROWS] {
    let ops = isa.f32();
    let mut sums = [[ops.zero(); VECTORS]; ROWS];
    let [first, second, third, fourth] = rows;
    let left = first.iter().zip(second).zip(third.iter().zip(fourth));
    for (right, ((&a, &b), (&c, &d))) in right.chunks_exact(width).zip(left) {
        let right = &right[column..];
        let right: [I::F32; VECTORS] = array::from_fn(|at| ops.load(&right[at * ops.len()..]));
        for (sums, x) in sums.iter_mut().zip([a, b, c, d]) {
            let x = ops.splat(x);
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = ops.mul_add(x, right, *sum);
            }
        }
    }
    sums
}

impl Output<'_> {
    #[inline(always)]
    fn store<I: Isa, const VECTORS: usize>(
        &mut self,
        isa: I,
        rows: [usize; ROWS],
        column: usize,
        factors: [f32; ROWS],
        sums: [[I::F32; VECTORS]; ROWS],
    ) {
        let ops = isa.f32();
        for ((row, sums), factor) in rows.into_iter().zip(sums).zip(factors) {
            let factor = ops.splat(factor);
            let out = &mut self.values[row * self.stride + column..];
            for (at, sum) in sums.into_iter().enumerate() {
                ops.store(ops.mul(sum, factor), &mut out[at * ops.len()..]);
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
