//! Weights as signed bytes, one scale a column or row.

use super::weights::Matrix;

/// Largest weight byte. Seven bits, because x86 without VNNI adds two products of an unsigned and a signed byte
/// in sixteen bits: 2 · 255 · 63 fits, 2 · 255 · 127 would saturate. So every machine computes the same integers.
const WEIGHT_LIMIT: f32 = 63.0;
/// Largest byte of a table that is only looked up.
const TABLE_LIMIT: f32 = 127.0;

/// Bytes and the scales that turn them back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantised {
    pub(super) values: Vec<i8>,
    pub(super) scales: Vec<f32>,
}

/// A product's weight, one scale a column (output channel).
pub(super) fn columns(matrix: &Matrix) -> Quantised {
    let mut scales = vec![0.0_f32; matrix.outputs];
    for row in matrix.values.chunks_exact(matrix.outputs) {
        scales
            .iter_mut()
            .zip(row)
            .for_each(|(scale, x)| *scale = scale.max(x.abs()));
    }
    for scale in &mut scales {
        *scale = step(*scale, WEIGHT_LIMIT);
    }
    let rows = matrix.values.chunks_exact(matrix.outputs);
    let values = rows
        .flat_map(|row| row.iter().zip(&scales).map(|(x, scale)| byte(x / scale)))
        .collect();
    Quantised { values, scales }
}

/// A table that is looked up by row, one scale a row.
pub(super) fn rows(values: &[f32], width: usize) -> Quantised {
    let scale = |row: &[f32]| {
        step(
            row.iter().fold(0.0_f32, |most, x| most.max(x.abs())),
            TABLE_LIMIT,
        )
    };
    let scales: Vec<f32> = values.chunks_exact(width).map(scale).collect();
    let rows = values.chunks_exact(width).zip(&scales);
    let values = rows
        .flat_map(|(row, &scale)| row.iter().map(move |x| byte(x / scale)))
        .collect();
    Quantised { values, scales }
}

/// The scale at which `most` takes the largest byte; 1 for a channel of zeros.
fn step(most: f32, limit: f32) -> f32 {
    if most > 0.0 { most / limit } else { 1.0 }
}

fn byte(x: f32) -> i8 {
    x.round_ties_even() as i8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_have_their_own_scales() {
        let matrix = Matrix {
            inputs: 2,
            outputs: 2,
            values: vec![63.0, 0.25, -31.0, 1.0],
        };
        let quantised = columns(&matrix);
        assert_eq!(quantised.values, [63, 16, -31, 63]);
    }

    proptest! {
        #[test]
        fn error_is_at_most_half_a_step(values in prop::collection::vec(-9.0_f32..9.0, 24)) {
            let quantised = rows(&values, 4);
            for (at, (x, byte)) in values.iter().zip(&quantised.values).enumerate() {
                let scale = quantised.scales[at / 4];
                prop_assert!((f32::from(*byte) * scale - x).abs() <= scale * 0.501);
            }
        }
    }
}
