//! Reading tensors of a checkpoint in the safetensors format.

use safetensors::{Dtype, SafeTensors};

use super::Error;

/// The tensors of a checkpoint.
pub(super) struct Weights<'a> {
    tensors: SafeTensors<'a>,
    /// What stands before every name: empty, or the name of the encoder inside a model with a head.
    prefix: &'static str,
}

/// A weight matrix as a product's right side takes it: row-major, `inputs × outputs`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) values: Vec<f32>,
}

impl<'a> Weights<'a> {
    /// Reads the header of a checkpoint's bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|error| Error::Checkpoint(error.to_string()))?;
        let with_head = tensors.names().iter().any(|name| name.starts_with("bert."));
        Ok(Self {
            tensors,
            prefix: if with_head { "bert." } else { "" },
        })
    }

    /// True if the tensor, named without the encoder's prefix, is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.tensor(name).is_ok()
    }

    /// A tensor of the encoder, checked to have this shape.
    pub(super) fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        self.read(&format!("{}{name}", self.prefix), shape)
    }

    /// The weight of a linear layer of the encoder, turned from the `outputs × inputs` that checkpoints hold.
    pub(super) fn matrix(
        &self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Matrix, Error> {
        Ok(Matrix::transposed(
            &self.values(name, &[outputs, inputs])?,
            inputs,
            outputs,
        ))
    }

    /// The first axis of a tensor outside the encoder, as of a classifier's labels.
    pub(super) fn rows(&self, name: &str) -> Result<usize, Error> {
        let tensor = self
            .tensors
            .tensor(name)
            .map_err(|error| Error::Checkpoint(error.to_string()))?;
        tensor
            .shape()
            .first()
            .copied()
            .ok_or_else(|| Error::Checkpoint(format!("{name} is a scalar")))
    }

    /// A tensor by its whole name, checked to have this shape.
    pub(super) fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let tensor = self
            .tensors
            .tensor(name)
            .map_err(|error| Error::Checkpoint(error.to_string()))?;
        if tensor.shape() != shape {
            let found = tensor.shape();
            return Err(Error::Checkpoint(format!(
                "{name} has shape {found:?}, expected {shape:?}"
            )));
        }
        let values = floats(tensor.dtype(), tensor.data())
            .ok_or_else(|| Error::Checkpoint(format!("{name} is of type {:?}", tensor.dtype())))?;
        if values.iter().any(|x| !x.is_finite()) {
            return Err(Error::Checkpoint(format!(
                "{name} has values that are not finite"
            )));
        }
        Ok(values)
    }
}

impl Matrix {
    /// From `outputs × inputs`, row-major.
    pub(super) fn transposed(values: &[f32], inputs: usize, outputs: usize) -> Self {
        let turned = (0..inputs).flat_map(|i| (0..outputs).map(move |o| values[o * inputs + i]));
        Self {
            inputs,
            outputs,
            values: turned.collect(),
        }
    }

    /// The matrix whose column `c` is this one's column `order[c]`.
    pub(super) fn with_columns(&self, order: &[usize]) -> Self {
        let rows = self.values.chunks_exact(self.outputs);
        let values = rows
            .flat_map(|row| order.iter().map(|&column| row[column]))
            .collect();
        Self {
            inputs: self.inputs,
            outputs: order.len(),
            values,
        }
    }

    /// Columns of several matrices beside each other.
    pub(super) fn beside(matrices: &[Self]) -> Self {
        let inputs = matrices[0].inputs;
        let row = |i: usize| {
            matrices
                .iter()
                .flat_map(move |m| &m.values[i * m.outputs..][..m.outputs])
        };
        let values = (0..inputs).flat_map(row).copied().collect();
        Self {
            inputs,
            outputs: matrices.iter().map(|m| m.outputs).sum(),
            values,
        }
    }
}

/// Little-endian numbers of 32 or 16 bits as floats.
fn floats(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    let words = || {
        bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|&word| u16::from_le_bytes(word))
    };
    match dtype {
        Dtype::F32 => Some(
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&word| f32::from_le_bytes(word))
                .collect(),
        ),
        Dtype::BF16 => Some(
            words()
                .map(|word| f32::from_bits(u32::from(word) << 16))
                .collect(),
        ),
        Dtype::F16 => Some(words().map(half).collect()),
        _ => None,
    }
}

/// A 16-bit float of IEEE 754.
pub(crate) fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2.0_f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_turn_and_stand_side_by_side() {
        let matrix = Matrix::transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2);
        assert_eq!(matrix.values, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let pair = Matrix::beside(&[matrix.clone(), matrix]);
        assert_eq!(pair.values[..4], [1.0, 4.0, 1.0, 4.0]);
        assert_eq!(pair.with_columns(&[3, 0]).values[..2], [4.0, 1.0]);
    }

    #[test]
    fn half_floats_are_read() {
        let known = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
        ];
        for (bits, value) in known {
            assert!((half(bits) - value).abs() < f32::EPSILON * value.abs());
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}
