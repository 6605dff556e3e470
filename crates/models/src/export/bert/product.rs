//! Products with a weight, in floats or in bytes.
//!
//! In bytes every token's row has a scale of its own. Before that, components that run far beyond the others are
//! scaled down and their weights up by the same factor, half of the difference each (`SmoothQuant`, Xiao et al. 2023,
//! with α = 0.5), because one outlier would leave few steps for all others.

use rten_onnx::onnx::DataType;

use super::super::graph::{Attribute, Graph};
use super::super::weights::Matrix;
use super::super::{Error, Precision, quantise};

/// Zero point and largest distance from it of an activation byte.
const ZERO_POINT: u8 = 128;
const LIMIT: f32 = 127.0;
/// Least magnitude that is told from zero, so that rows and channels of zeros divide by something.
const LEAST: f32 = 1e-6;

/// A product whose bias is still to be added, by the operator that follows.
pub(super) struct Product {
    pub(super) rows: String,
    pub(super) bias: String,
}

/// Adds products to a graph.
pub(super) struct Products<'a> {
    precision: Precision<'a>,
    unit: String,
    least: String,
    limit: String,
    step: String,
    zero_point: String,
    weight_zero_point: String,
}

impl<'a> Products<'a> {
    pub(super) fn new(graph: &mut Graph, precision: Precision<'a>) -> Self {
        Self {
            precision,
            unit: graph.floats(&[], &[1.0]),
            least: graph.floats(&[], &[LEAST]),
            limit: graph.floats(&[], &[LIMIT]),
            step: graph.floats(&[], &[LIMIT.recip()]),
            zero_point: graph.unsigned_byte(ZERO_POINT),
            weight_zero_point: graph.signed_byte(0),
        }
    }

    /// Adds `input · matrix`; `name` is that of the product's range.
    pub(super) fn add(
        &self,
        graph: &mut Graph,
        name: &str,
        input: &str,
        matrix: Matrix,
        bias: &[f32],
    ) -> Result<Product, Error> {
        let bias = graph.named_floats(&format!("{name}.bias"), &[matrix.outputs], bias);
        let rows = match self.precision {
            Precision::Float => floats(graph, name, input, &matrix),
            Precision::Integer(ranges) => {
                let range = ranges
                    .get(name)
                    .filter(|range| range.len() == matrix.inputs);
                let range =
                    range.ok_or_else(|| Error::Checkpoint(format!("{name} has no range")))?;
                self.bytes(graph, name, input, matrix, range)
            }
        };
        Ok(Product { rows, bias })
    }

    fn bytes(
        &self,
        graph: &mut Graph,
        name: &str,
        input: &str,
        mut matrix: Matrix,
        range: &[f32],
    ) -> String {
        let factors = smoothing(range, &matrix);
        let inverse: Vec<f32> = factors.iter().map(|factor| factor.recip()).collect();
        for (row, factor) in matrix.values.chunks_exact_mut(matrix.outputs).zip(&factors) {
            for weight in row {
                *weight *= factor;
            }
        }
        let constant = |part: &str| format!("{name}.{part}");
        let inverse = graph.named_floats(&constant("smoothing"), &[inverse.len()], &inverse);
        let smooth = graph.node("Mul", &[input, &inverse], &[]);
        let (values, scales) = self.quantise_rows(graph, &smooth);

        let quantised = quantise::columns(&matrix);
        let shape = [matrix.inputs, matrix.outputs];
        let weight = graph.named_bytes(&constant("weight"), &shape, &quantised.values);
        let outputs = [matrix.outputs];
        let columns = graph.named_floats(&constant("scales"), &outputs, &quantised.scales);
        let operands = [&*values, &weight, &self.zero_point, &self.weight_zero_point];
        let sums = graph.node("MatMulInteger", &operands, &[]);
        let sums = graph.cast(&sums, DataType::FLOAT);
        let sums = graph.node("Mul", &[&sums, &columns], &[]);
        graph.node("Mul", &[&sums, &scales], &[])
    }

    /// Every row as unsigned bytes, and the rows' scales.
    fn quantise_rows(&self, graph: &mut Graph, rows: &str) -> (String, String) {
        let last = graph.integers(&[-1]);
        let keep = || [Attribute::Integer("keepdims", 1)];
        let upper = graph.node("ReduceMax", &[rows, &last], &keep());
        let lower = graph.node("ReduceMin", &[rows, &last], &keep());
        let below = graph.node("Neg", &[&lower], &[]);
        let magnitudes = graph.node("Max", &[&upper, &below, &self.least], &[]);
        let scales = graph.node("Mul", &[&magnitudes, &self.step], &[]);
        let factors = graph.node("Div", &[&self.limit, &magnitudes], &[]);
        let stretched = graph.node("Mul", &[rows, &factors], &[]);
        let operands = [&*stretched, &self.unit, &self.zero_point];
        (graph.node("QuantizeLinear", &operands, &[]), scales)
    }
}

/// The product in floats, and an output with the largest magnitude of every component of the input.
fn floats(graph: &mut Graph, name: &str, input: &str, matrix: &Matrix) -> String {
    let magnitudes = graph.node("Abs", &[input], &[]);
    let first = graph.integers(&[0]);
    let attributes = [Attribute::Integer("keepdims", 0)];
    let range = graph.node("ReduceMax", &[&magnitudes, &first], &attributes);
    graph.output(name, &range, &[&matrix.inputs.to_string()]);
    let weight = graph.floats(&[matrix.inputs, matrix.outputs], &matrix.values);
    graph.node("MatMul", &[input, &weight], &[])
}

/// By what each component is divided and its row of weights multiplied: √(range / largest weight), scaled so that
/// the geometric mean is 1, and rounded to half powers of two, so that the last bits of a measured range, in which
/// machines differ, do not reach the weights.
fn smoothing(range: &[f32], matrix: &Matrix) -> Vec<f32> {
    let rows = matrix.values.chunks_exact(matrix.outputs);
    let largest = rows.map(|row| row.iter().fold(LEAST, |most, x| most.max(x.abs())));
    let factors: Vec<f32> = range
        .iter()
        .zip(largest)
        .map(|(range, weight)| (range.max(LEAST) / weight).sqrt())
        .collect();
    let mean = (factors.iter().map(|factor| factor.ln()).sum::<f32>() / factors.len() as f32).exp();
    let rounded = |factor: &f32| ((factor / mean).log2() * 2.0).round() / 2.0;
    factors
        .iter()
        .map(|factor| rounded(factor).exp2())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_splits_an_outlier_between_activation_and_weight() {
        let matrix = Matrix {
            inputs: 2,
            outputs: 1,
            values: vec![1.0, -1.0],
        };
        let factors = smoothing(&[16.0, 1.0], &matrix);
        assert!((factors[0] - 2.0).abs() < 1e-6 && (factors[1] - 0.5).abs() < 1e-6);
    }

    #[test]
    fn channels_of_zeros_have_finite_factors() {
        let matrix = Matrix {
            inputs: 2,
            outputs: 1,
            values: vec![0.0, 1.0],
        };
        assert!(
            smoothing(&[0.0, 1.0], &matrix)
                .iter()
                .all(|factor| factor.is_normal())
        );
    }
}
