//! One layer, on a matrix with one row a word piece.

use rten_gemm::GemmExecutor;
use rten_simd::SimdOp;

use super::attention::Attention;
use super::constants::Constants;
use super::linear::Linear;
use super::rows::{Bytes, Dequantise, Gelu, Norm, Quantise, Residual};
use crate::error::Error;

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
        gemm: &GemmExecutor<u8, i8, i32>,
        index: usize,
        hidden: usize,
    ) -> Result<Self, Error> {
        let prefix = format!("encoder.layer.{index}");
        let mut linear = |name: &str| Linear::take(constants, gemm, &format!("{prefix}.{name}"));
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

    /// Turns the states of texts of these lengths into those after the layer.
    pub(super) fn run(
        &self,
        gemm: &GemmExecutor<u8, i8, i32>,
        heads: usize,
        lengths: &[usize],
        states: &mut [f32],
        work: &mut Workspace,
    ) -> Result<(), Error> {
        let Workspace {
            narrow,
            wide,
            sums,
            parts,
            context,
            row,
        } = work;
        let rows: usize = lengths.iter().sum();
        let context = &mut context[..states.len()];
        Quantise(states, &self.attention, row, narrow).dispatch();
        let products = self.attention.product(gemm, rows, narrow, sums)?;
        Dequantise(products, &self.attention, narrow, parts).dispatch();
        Attention::new(parts, heads, lengths, context).dispatch();

        Quantise(context, &self.mixing, row, narrow).dispatch();
        let products = self.mixing.product(gemm, rows, narrow, sums)?;
        Residual(products, &self.mixing, narrow, &self.mixing_norm, states).dispatch();

        Quantise(states, &self.widening, row, narrow).dispatch();
        let products = self.widening.product(gemm, rows, narrow, sums)?;
        Gelu(products, &self.widening, narrow, &self.narrowing, row, wide).dispatch();
        let products = self.narrowing.product(gemm, rows, wide, sums)?;
        Residual(
            products,
            &self.narrowing,
            wide,
            &self.narrowing_norm,
            states,
        )
        .dispatch();
        Ok(())
    }
}

impl Workspace {
    /// Grows what is too small.
    pub(super) fn fit(&mut self, rows: usize, hidden: usize, inner: usize) {
        fn grow<T: Clone + Default>(buffer: &mut Vec<T>, size: usize) {
            if buffer.len() < size {
                buffer.resize(size, T::default());
            }
        }
        for (bytes, width) in [(&mut self.narrow, hidden), (&mut self.wide, inner)] {
            grow(&mut bytes.values, rows * width);
            grow(&mut bytes.scales, rows);
        }
        grow(&mut self.sums, rows * inner.max(3 * hidden));
        grow(&mut self.parts, rows * 3 * hidden);
        grow(&mut self.context, rows * hidden);
    }
}
