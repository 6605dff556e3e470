//! A product with a weight in bytes.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix, QuantParams};
use rten_tensor::NdTensorView;

use super::constants::Constants;
use super::rows::Bytes;
use crate::error::Error;

/// The byte of an activation that stands for zero.
pub(super) const ZERO_POINT: u8 = 128;

/// A weight of `inputs × outputs`, its columns' scales, and what its input is multiplied by before it is
/// quantised.
pub(super) struct Linear {
    weight: PackedBMatrix<i8>,
    pub(super) scales: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) smoothing: Vec<f32>,
}

impl Linear {
    /// Takes the constants whose names begin with the product's.
    pub(super) fn take(
        constants: &mut Constants,
        gemm: &GemmExecutor<u8, i8, i32>,
        name: &str,
    ) -> Result<Self, Error> {
        let (values, shape) = constants.matrix(&format!("{name}.weight"))?;
        let linear = Self {
            weight: gemm.prepack_b(NdTensorView::from_data(shape, values.as_slice())),
            scales: constants.floats(&format!("{name}.scales"))?,
            bias: constants.floats(&format!("{name}.bias"))?,
            smoothing: constants.floats(&format!("{name}.smoothing"))?,
        };
        let sizes = [linear.smoothing.len(), linear.scales.len()];
        if sizes != shape || linear.bias.len() != linear.scales.len() {
            return Err(constants.unfit(&format!("sizes of {name}")));
        }
        Ok(linear)
    }

    /// True for a weight of this shape.
    pub(super) fn is(&self, inputs: usize, outputs: usize) -> bool {
        self.smoothing.len() == inputs && self.outputs() == outputs
    }

    /// Columns of the weight.
    pub(super) fn outputs(&self) -> usize {
        self.scales.len()
    }

    /// `input · weight` in integers, in the front of `sums`.
    pub(super) fn product<'s>(
        &self,
        gemm: &GemmExecutor<u8, i8, i32>,
        rows: usize,
        input: &Bytes,
        sums: &'s mut [i32],
    ) -> Result<&'s [i32], Error> {
        let width = self.smoothing.len();
        let sums = &mut sums[..rows * self.outputs()];
        let left = NdTensorView::from_data([rows, width], &input.values[..rows * width]);
        let zero_point = vec![ZERO_POINT; rows];
        let options = GemmOptions {
            a_quant: Some(QuantParams {
                zero_point: &zero_point,
            }),
            ..GemmOptions::default()
        };
        let (left, right) = (GemmInputA::Unpacked(left), GemmInputB::Packed(&self.weight));
        gemm.gemm(sums, left, right, options)
            .map_err(|error| Error::Inference(error.to_string()))?;
        Ok(sums)
    }
}
