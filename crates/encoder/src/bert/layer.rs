//! One layer, on a matrix with one row a word piece.

use rten_simd::SimdOp;

use super::attention::Attention;
use super::constants::Constants;
use super::linear::Linear;
use super::rows::{Bytes, Dequantise, Gelu, Norm, Quantise, Residual};
use crate::error::Error;

/// Rows that pass through the products together: their sums stay in the second cache.
const BLOCK: usize = 48;

/// Attention, then two products with an activation between them; each half is added to its input and normalised.
pub(super) struct Layer {
    attention: Linear,
    mixing: Linear,
    mixing_norm: Norm,
    widening: Linear,
    narrowing: Linear,
    narrowing_norm: Norm,
}

/// Buffers that every layer uses anew, for at least as many rows as a run has.
#[derive(Default)]
pub(super) struct Workspace {
    narrow: Bytes,
    wide: Bytes,
    sums: Vec<i32>,
    parts: Vec<f32>,
    context: Vec<f32>,
    row: Vec<f32>,
}

impl Layer {
    pub(super) fn take(
        constants: &mut Constants,
        index: usize,
        hidden: usize,
    ) -> Result<Self, Error> {
        let prefix = format!("encoder.layer.{index}");
        let mut linear = |name: &str| Linear::take(constants, &format!("{prefix}.{name}"));
        let attention = linear("attention.self")?;
        let mixing = linear("attention.output.dense")?;
        let widening = linear("intermediate.dense")?;
        let narrowing = linear("output.dense")?;
        let mut norm = |name: &str| Norm::take(constants, &format!("{prefix}.{name}.LayerNorm"));
        let (mixing_norm, narrowing_norm) = (norm("attention.output")?, norm("output")?);
        let inner = widening.outputs();
        let fits = attention.is(hidden, 3 * hidden)
            && mixing.is(hidden, hidden)
            && widening.is(hidden, inner)
            && narrowing.is(inner, hidden)
            && [&mixing_norm, &narrowing_norm]
                .iter()
                .all(|norm| norm.width() == hidden);
        if !fits {
            return Err(constants.unfit(&format!("sizes of layer {index}")));
        }
        Ok(Self {
            attention,
            mixing,
            mixing_norm,
            widening,
            narrowing,
            narrowing_norm,
        })
    }

    /// Components between the two products that follow attention.
    pub(super) fn inner(&self) -> usize {
        self.widening.outputs()
    }

    /// Multiplications with weights that a row takes.
    pub(super) fn multiplications(&self) -> usize {
        let weights = [
            &self.attention,
            &self.mixing,
            &self.widening,
            &self.narrowing,
        ];
        weights.iter().map(|linear| linear.multiplications()).sum()
    }

    /// Turns the states of texts of these lengths into those after the layer.
    pub(super) fn run(
        &self,
        heads: usize,
        lengths: &[usize],
        states: &mut [f32],
        work: &mut Workspace,
    ) {
        let Workspace {
            narrow,
            wide,
            sums,
            parts,
            context,
            row,
        } = work;
        let hidden = self.mixing.outputs();
        let context = &mut context[..states.len()];
        for (states, parts) in states
            .chunks(BLOCK * hidden)
            .zip(parts.chunks_mut(BLOCK * 3 * hidden))
        {
            let rows = states.len() / hidden;
            Quantise(states, &self.attention, row, narrow).dispatch();
            let products = self.attention.product(rows, narrow, sums);
            Dequantise(products, &self.attention, narrow, parts).dispatch();
        }
        Attention::new(parts, heads, lengths, context).dispatch();
        for (states, context) in states
            .chunks_mut(BLOCK * hidden)
            .zip(context.chunks(BLOCK * hidden))
        {
            let rows = states.len() / hidden;
            Quantise(context, &self.mixing, row, narrow).dispatch();
            let products = self.mixing.product(rows, narrow, sums);
            Residual(products, &self.mixing, narrow, &self.mixing_norm, states).dispatch();

            Quantise(states, &self.widening, row, narrow).dispatch();
            let products = self.widening.product(rows, narrow, sums);
            Gelu(products, &self.widening, narrow, &self.narrowing, row, wide).dispatch();
            let products = self.narrowing.product(rows, wide, sums);
            Residual(
                products,
                &self.narrowing,
                wide,
                &self.narrowing_norm,
                states,
            )
            .dispatch();
        }
    }
}

impl Workspace {
    /// Grows what is too small for this many rows.
    pub(super) fn fit(&mut self, rows: usize, hidden: usize, inner: usize) {
        fn grow<T: Clone + Default>(buffer: &mut Vec<T>, size: usize) {
            if buffer.len() < size {
                buffer.resize(size, T::default());
            }
        }
        let block = rows.min(BLOCK);
        for (bytes, width) in [(&mut self.narrow, hidden), (&mut self.wide, inner)] {
            grow(&mut bytes.values, block * width);
            grow(&mut bytes.scales, block);
        }
        grow(&mut self.sums, block * inner.max(3 * hidden));
        grow(&mut self.parts, rows * 3 * hidden);
        grow(&mut self.context, rows * hidden);
    }
}
