//! What lies between the products, row by row: a row fits the first cache, so every step after a product is one
//! pass over memory. Written once in portable SIMD, compiled for every instruction set, chosen at run time.

use rten_simd::ops::{BitOps, FloatOps, NarrowSaturate, NumOps, ToFloat};
use rten_simd::{Isa, SimdOp, SimdUnaryOp};

use super::constants::Constants;
use super::layout::LANES;
use super::linear::Linear;
use super::product::ZERO_POINT;
use crate::error::Error;

/// Largest distance of an activation's byte from the zero point.
const LIMIT: f32 = 127.0;
/// Least magnitude that is told from zero, so that a row of zeros divides by something.
const LEAST: f32 = 1e-6;

/// Rows of activations as bytes, with a scale each.
#[derive(Default)]
pub(super) struct Bytes {
    pub(super) values: Vec<u8>,
    pub(super) scales: Vec<f32>,
}

/// Layer normalisation.
pub(super) struct Norm {
    gamma: Vec<f32>,
    beta: Vec<f32>,
    epsilon: f32,
}

impl Bytes {
    /// The rows of an input of this width.
    fn rows_mut(&mut self, width: usize) -> impl Iterator<Item = (&mut [u8], &mut f32)> {
        self.values.chunks_exact_mut(width).zip(&mut self.scales)
    }
}

/// Writes a row whose largest magnitude is known as bytes; gives the scale that turns them back.
#[inline(always)]
fn quantise<I: Isa>(isa: I, row: &[f32], largest: f32, bytes: &mut [u8]) -> f32 {
    let (floats, integers, shorts) = (isa.f32(), isa.i32(), isa.i16());
    let largest = largest.max(LEAST);
    let factor = floats.splat(LIMIT / largest);
    let zero = integers.splat(i32::from(ZERO_POINT));
    let step = isa.u8().len();
    for (bytes, row) in bytes.chunks_exact_mut(step).zip(row.chunks_exact(step)) {
        let mut quarters = [integers.zero(); 4];
        for (quarter, row) in quarters.iter_mut().zip(row.chunks_exact(floats.len())) {
            let x = floats.to_int_round(floats.mul(floats.load(row), factor));
            *quarter = integers.add(x, zero);
        }
        let [a, b, c, d] = quarters;
        let low = integers.narrow_saturate(a, b);
        let high = integers.narrow_saturate(c, d);
        isa.u8().store(shorts.narrow_saturate(low, high), bytes);
    }
    largest / LIMIT
}

impl Norm {
    pub(super) fn take(constants: &mut Constants, name: &str) -> Result<Self, Error> {
        let gamma = constants.floats(&format!("{name}.weight"))?;
        let beta = constants.floats(&format!("{name}.bias"))?;
        if gamma.len() != beta.len() {
            return Err(constants.unfit(&format!("sizes of {name}")));
        }
        Ok(Self {
            gamma,
            beta,
            epsilon: constants.layout.epsilon,
        })
    }

    pub(super) fn width(&self) -> usize {
        self.gamma.len()
    }

    /// Normalises every row.
    pub(super) fn apply(&self, rows: &mut [f32]) {
        NormaliseRows(self, rows).dispatch();
    }

    #[inline(always)]
    fn row<I: Isa>(&self, isa: I, row: &mut [f32]) {
        let ops = isa.f32();
        let count = row.len() as f32;
        let mut sum = ops.zero();
        for x in row.chunks_exact(ops.len()) {
            sum = ops.add(sum, ops.load(x));
        }
        let mean = ops.splat(ops.sum(sum) / count);
        let mut squares = ops.zero();
        for x in row.chunks_exact(ops.len()) {
            let x = ops.sub(ops.load(x), mean);
            squares = ops.mul_add(x, x, squares);
        }
        let variance = ops.sum(squares) / count;
        let factor = ops.splat((variance + self.epsilon).sqrt().recip());
        let parameters = self
            .gamma
            .chunks_exact(ops.len())
            .zip(self.beta.chunks_exact(ops.len()));
        for (x, (gamma, beta)) in row.chunks_exact_mut(ops.len()).zip(parameters) {
            let gamma = ops.mul(ops.load(gamma), factor);
            let y = ops.mul_add(ops.sub(ops.load(x), mean), gamma, ops.load(beta));
            ops.store(y, x);
        }
    }
}

struct NormaliseRows<'a>(&'a Norm, &'a mut [f32]);

impl SimdOp for NormaliseRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Self(norm, rows) = self;
        for row in rows.chunks_exact_mut(norm.width()) {
            norm.row(isa, row);
        }
    }
}

/// One vector of a product's row as floats: `sums · scales · scale + bias`.
#[inline(always)]
fn dequantised<I: Isa>(isa: I, at: usize, sums: &[i32], linear: &Linear, scale: I::F32) -> I::F32 {
    let ops = isa.f32();
    let sum = isa.i32().to_float(isa.i32().load(&sums[at..]));
    let scale = ops.mul(ops.load(&linear.scales[at..]), scale);
    ops.mul_add(sum, scale, ops.load(&linear.bias[at..]))
}

/// The larger of each lane's magnitude.
#[inline(always)]
fn magnitude<I: Isa>(isa: I, most: I::F32, x: I::F32) -> I::F32 {
    isa.f32().max(most, isa.f32().abs(x))
}

/// The largest lane.
#[inline(always)]
fn largest<I: Isa>(isa: I, lanes: I::F32) -> f32 {
    let mut most = [0.0; LANES];
    isa.f32().store(lanes, &mut most);
    most.into_iter().fold(0.0, f32::max)
}

/// Rows → smoothed for a product → bytes. The third is room for a row.
pub(super) struct Quantise<'a>(
    pub(super) &'a [f32],
    pub(super) &'a Linear,
    pub(super) &'a mut Vec<f32>,
    pub(super) &'a mut Bytes,
);

impl SimdOp for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Self(rows, linear, smoothed, bytes) = self;
        let (ops, width) = (isa.f32(), linear.smoothing.len());
        smoothed.resize(width, 0.0);
        let each = rows.chunks_exact(width).zip(bytes.rows_mut(width));
        for (row, (bytes, scale)) in each {
            let mut most = ops.zero();
            for at in (0..width).step_by(ops.len()) {
                let x = ops.mul(ops.load(&row[at..]), ops.load(&linear.smoothing[at..]));
                most = magnitude(isa, most, x);
                ops.store(x, &mut smoothed[at..]);
            }
            *scale = quantise(isa, smoothed, largest(isa, most), bytes);
        }
    }
}

/// A product of bytes → rows of floats.
pub(super) struct Dequantise<'a>(
    pub(super) &'a [i32],
    pub(super) &'a Linear,
    pub(super) &'a Bytes,
    pub(super) &'a mut [f32],
);

impl SimdOp for Dequantise<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Self(sums, linear, bytes, rows) = self;
        let (ops, width) = (isa.f32(), linear.outputs());
        let each = sums.chunks_exact(width).zip(rows.chunks_exact_mut(width));
        for ((sums, row), &scale) in each.zip(&bytes.scales) {
            let scale = ops.splat(scale);
            for at in (0..width).step_by(ops.len()) {
                ops.store(dequantised(isa, at, sums, linear, scale), &mut row[at..]);
            }
        }
    }
}

/// A product of bytes → added to the states → normalised.
pub(super) struct Residual<'a>(
    pub(super) &'a [i32],
    pub(super) &'a Linear,
    pub(super) &'a Bytes,
    pub(super) &'a Norm,
    pub(super) &'a mut [f32],
);

impl SimdOp for Residual<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Self(sums, linear, bytes, norm, states) = self;
        let (ops, width) = (isa.f32(), linear.outputs());
        let each = sums.chunks_exact(width).zip(states.chunks_exact_mut(width));
        for ((sums, state), &scale) in each.zip(&bytes.scales) {
            let scale = ops.splat(scale);
            for at in (0..width).step_by(ops.len()) {
                let x = dequantised(isa, at, sums, linear, scale);
                ops.store(ops.add(x, ops.load(&state[at..])), &mut state[at..]);
            }
            norm.row(isa, state);
        }
    }
}

/// A product of bytes → activated → smoothed for the next product → bytes. The fifth is room for a row.
pub(super) struct Gelu<'a>(
    pub(super) &'a [i32],
    pub(super) &'a Linear,
    pub(super) &'a Bytes,
    pub(super) &'a Linear,
    pub(super) &'a mut Vec<f32>,
    pub(super) &'a mut Bytes,
);

impl SimdOp for Gelu<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Self(sums, linear, input, next, activated, output) = self;
        let (ops, width) = (isa.f32(), linear.outputs());
        activated.resize(width, 0.0);
        let each = sums.chunks_exact(width).zip(&input.scales);
        for ((sums, &scale), (bytes, byte_scale)) in each.zip(output.rows_mut(width)) {
            let scale = ops.splat(scale);
            let mut most = ops.zero();
            for at in (0..width).step_by(ops.len()) {
                let x = dequantised(isa, at, sums, linear, scale);
                let x = rten_vecmath::Gelu {}.eval(isa, x);
                let x = ops.mul(x, ops.load(&next.smoothing[at..]));
                most = magnitude(isa, most, x);
                ops.store(x, &mut activated[at..]);
            }
            *byte_scale = quantise(isa, activated, largest(isa, most), bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Bytewise<'a>(&'a [f32], f32, &'a mut [u8]);

    impl SimdOp for Bytewise<'_> {
        type Output = f32;

        #[inline(always)]
        fn eval<I: Isa>(self, isa: I) -> f32 {
            quantise(isa, self.0, self.1, self.2)
        }
    }

    proptest! {
        #[test]
        fn bytes_are_at_most_half_a_step_away(row in prop::collection::vec(-20_f32..20.0, 128)) {
            let most = row.iter().fold(0_f32, |most, x| most.max(x.abs()));
            let mut bytes = vec![0; row.len()];
            let scale = Bytewise(&row, most, &mut bytes).dispatch();
            for (x, byte) in row.iter().zip(bytes) {
                let back = (f32::from(byte) - f32::from(ZERO_POINT)) * scale;
                prop_assert!((back - x).abs() <= scale * 0.501, "{x} {back}");
            }
        }

        #[test]
        fn a_normalised_row_has_mean_0_and_variance_1(row in prop::collection::vec(-20_f32..20.0, 64)) {
            prop_assume!(row.iter().any(|x| (x - row[0]).abs() > 0.1));
            let norm = Norm { gamma: vec![1.0; 64], beta: vec![0.0; 64], epsilon: 0.0 };
            let mut row = row;
            norm.apply(&mut row);
            let mean = row.iter().sum::<f32>() / 64.0;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 64.0;
            prop_assert!(mean.abs() < 1e-4 && (variance - 1.0).abs() < 1e-3, "{mean} {variance}");
        }
    }

    #[test]
    fn a_row_of_zeros_is_the_zero_point() {
        let mut bytes = vec![0; 64];
        let scale = Bytewise(&[0.0; 64], 0.0, &mut bytes).dispatch();
        assert!(scale.is_normal() && bytes.iter().all(|&byte| byte == ZERO_POINT));
    }
}
