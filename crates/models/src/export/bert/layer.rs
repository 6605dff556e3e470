//! The layers of the encoder, on a matrix with one row a token.

use super::super::graph::{Attribute, Graph};
use super::super::weights::{Matrix, Weights};
use super::super::{Error, Precision};
use super::Architecture;
use super::product::{Product, Products};

/// Builds all layers into a graph.
pub(super) struct Layers<'a, 'w> {
    graph: &'a mut Graph,
    architecture: &'a Architecture,
    weights: &'a Weights<'w>,
    products: Products<'a>,
    /// Batch × tokens, 0 where padded.
    mask: &'a str,
    /// Shape to cut rows into batch × tokens × heads × (query, key, value) × components.
    heads: String,
    /// Shape to come back to rows.
    rows: String,
}

impl<'a, 'w> Layers<'a, 'w> {
    pub(super) fn new(
        graph: &'a mut Graph,
        architecture: &'a Architecture,
        weights: &'a Weights<'w>,
        precision: Precision<'a>,
        mask: &'a str,
        shape: &str,
    ) -> Self {
        let heads = architecture.num_attention_heads;
        let cut = [heads, 3, architecture.hidden_size / heads].map(|size| size as i64);
        let cut = graph.integers(&cut);
        Self {
            heads: graph.node("Concat", &[shape, &cut], &[Attribute::Integer("axis", 0)]),
            rows: graph.integers(&[-1, architecture.hidden_size as i64]),
            products: Products::new(graph, precision),
            graph,
            architecture,
            weights,
            mask,
        }
    }

    pub(super) fn build(&mut self, embedded: &str) -> Result<String, Error> {
        let mut rows = embedded.to_owned();
        for index in 0..self.architecture.num_hidden_layers {
            rows = self.layer(&format!("encoder.layer.{index}"), &rows)?;
        }
        Ok(rows)
    }

    fn layer(&mut self, prefix: &str, input: &str) -> Result<String, Error> {
        let hidden = self.architecture.hidden_size;
        let inner = self.architecture.intermediate_size;
        let context = self.attention(&format!("{prefix}.attention.self"), input)?;
        let name = format!("{prefix}.attention.output");
        let mixed = self.linear(&context, &format!("{name}.dense"), hidden, hidden)?;
        let middle = self.normalise(&mixed, input, &format!("{name}.LayerNorm"))?;
        let name = format!("{prefix}.intermediate.dense");
        let wide = self.linear(&middle, &name, hidden, inner)?;
        let wide = self
            .graph
            .extension("BiasGelu", &[&wide.rows, &wide.bias], &[]);
        let name = format!("{prefix}.output");
        let narrow = self.linear(&wide, &format!("{name}.dense"), inner, hidden)?;
        self.normalise(&narrow, &middle, &format!("{name}.LayerNorm"))
    }

    /// All heads' attention. The three products are one, its columns ordered by head as the fused operator
    /// reads them.
    fn attention(&mut self, name: &str, input: &str) -> Result<String, Error> {
        let hidden = self.architecture.hidden_size;
        let heads = self.architecture.num_attention_heads;
        let mut matrices = Vec::new();
        let mut bias = Vec::new();
        for part in ["query", "key", "value"] {
            let part = format!("{name}.{part}");
            matrices.push(
                self.weights
                    .matrix(&format!("{part}.weight"), hidden, hidden)?,
            );
            bias.extend(self.weights.values(&format!("{part}.bias"), &[hidden])?);
        }
        let order = head_order(heads, hidden / heads);
        let matrix = Matrix::beside(&matrices).with_columns(&order);
        let bias: Vec<f32> = order.iter().map(|&column| bias[column]).collect();
        let product = self.products.add(self.graph, name, input, matrix, &bias)?;
        let sum = self.graph.node("Add", &[&product.rows, &product.bias], &[]);
        let cut = self.graph.node("Reshape", &[&sum, &self.heads], &[]);
        let count = Attribute::Integer("num_heads", heads as i64);
        let inputs = [&cut, "", "", "", self.mask];
        let context = self
            .graph
            .extension("MultiHeadAttention", &inputs, &[count]);
        Ok(self.graph.node("Reshape", &[&context, &self.rows], &[]))
    }

    fn linear(
        &mut self,
        input: &str,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Product, Error> {
        let matrix = self
            .weights
            .matrix(&format!("{name}.weight"), inputs, outputs)?;
        let bias = self.weights.values(&format!("{name}.bias"), &[outputs])?;
        self.products.add(self.graph, name, input, matrix, &bias)
    }

    /// Layer normalisation of `product + bias + skipped`.
    fn normalise(&mut self, product: &Product, skipped: &str, name: &str) -> Result<String, Error> {
        let hidden = self.architecture.hidden_size;
        let gamma = self.weights.values(&format!("{name}.weight"), &[hidden])?;
        let beta = self.weights.values(&format!("{name}.bias"), &[hidden])?;
        let constant = |part: &str| format!("{name}.{part}");
        let gamma = self
            .graph
            .named_floats(&constant("weight"), &[hidden], &gamma);
        let beta = self.graph.named_floats(&constant("bias"), &[hidden], &beta);
        let epsilon = Attribute::Float("epsilon", self.architecture.layer_norm_eps);
        let inputs = [&product.rows, skipped, &gamma, &beta, &product.bias];
        Ok(self
            .graph
            .extension("SkipLayerNormalization", &inputs, &[epsilon]))
    }
}

/// Column `(head, part, component)` of the joint matrix, from columns that are ordered `(part, head, component)`.
fn head_order(heads: usize, size: usize) -> Vec<usize> {
    let hidden = heads * size;
    let column = |head, part, component| part * hidden + head * size + component;
    let parts = (0..heads).flat_map(|head| (0..3).map(move |part| (head, part)));
    parts
        .flat_map(|(head, part)| (0..size).map(move |component| column(head, part, component)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_ordered_by_head_then_part() {
        assert_eq!(head_order(2, 1), [0, 2, 4, 1, 3, 5]);
        assert_eq!(head_order(1, 2), [0, 1, 2, 3, 4, 5]);
    }
}
