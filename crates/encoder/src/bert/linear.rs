//! A product with a weight in bytes.

use super::constants::Constants;
use super::product::{COLUMNS, PackedWeight};
use super::rows::Bytes;
use crate::error::Error;

/// A weight of `inputs × outputs`, its columns' scales, and the factors of its inputs before they
/// are quantised.
pub(super) struct Linear {
    weight: PackedWeight,
    pub(super) scales: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) smoothing: Vec<f32>,
}

impl Linear {
    /// Takes the constants whose names begin with the product's.
    pub(super) fn take(constants: &mut Constants, name: &str) -> Result<Self, Error> {
        let (values, shape) = constants.matrix(&format!("{name}.weight"))?;
        let scales = constants.floats(&format!("{name}.scales"))?;
        let bias = constants.floats(&format!("{name}.bias"))?;
        let smoothing = constants.floats(&format!("{name}.smoothing"))?;
        let fits = [smoothing.len(), scales.len()] == shape
            && bias.len() == scales.len()
            && shape.iter().all(|side| side.is_multiple_of(COLUMNS))
            && !values.contains(&i8::MIN);
        if !fits {
            return Err(constants.unfit(&format!("the weight of {name}")));
        }
        Ok(Self {
            weight: PackedWeight::pack(&values, shape),
            scales,
            bias,
            smoothing,
        })
    }

    /// True for a weight of this shape.
    pub(super) fn is(&self, inputs: usize, outputs: usize) -> bool {
        self.weight.inputs() == inputs && self.outputs() == outputs
    }

    /// Columns of the weight.
    pub(super) fn outputs(&self) -> usize {
        self.weight.outputs()
    }

    /// Multiplications that a row takes.
    pub(super) fn multiplications(&self) -> usize {
        self.weight.inputs() * self.outputs()
    }

    /// `input · weight` in integers, in the front of `sums`.
    pub(super) fn product<'s>(&self, rows: usize, input: &Bytes, sums: &'s mut [i32]) -> &'s [i32] {
        let sums = &mut sums[..rows * self.outputs()];
        let input = &input.values[..rows * self.weight.inputs()];
        self.weight.multiply(input, sums);
        sums
    }
}
