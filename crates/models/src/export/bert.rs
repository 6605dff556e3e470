//! The graph of a BERT encoder, optionally with the classification head of a cross-encoder.

mod layer;
mod product;

use memfleet_encoder::BertLayout;
use serde::Deserialize;

use super::graph::{Attribute, Graph};
use super::weights::{Matrix, Weights};
use super::{Error, Precision, quantise};
use layer::Layers;
use rten_onnx::onnx::DataType;

/// Sizes of a model, from its `config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Architecture {
    model_type: String,
    hidden_act: String,
    #[serde(default = "absolute")]
    position_embedding_type: String,
    /// Components of a vector.
    pub hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    layer_norm_eps: f32,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    vocab_size: usize,
}

fn absolute() -> String {
    "absolute".to_owned()
}

impl Architecture {
    /// Reads a `config.json` and refuses what the exporter would get wrong.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let architecture: Self = serde_json::from_slice(json)
            .map_err(|error| Error::Configuration(error.to_string()))?;
        let refuse = |what: String| Err(Error::Configuration(what));
        if architecture.model_type != "bert" {
            return refuse(format!("model type {}", architecture.model_type));
        }
        if architecture.hidden_act != "gelu" {
            return refuse(format!("activation {}", architecture.hidden_act));
        }
        if architecture.position_embedding_type != "absolute" {
            return refuse(format!(
                "position embedding {}",
                architecture.position_embedding_type
            ));
        }
        let heads = architecture.num_attention_heads;
        if heads == 0 || !architecture.hidden_size.is_multiple_of(heads) {
            return refuse(format!(
                "{heads} heads of {} dimensions",
                architecture.hidden_size
            ));
        }
        Ok(architecture)
    }

    fn layout(&self) -> BertLayout {
        BertLayout {
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            epsilon: self.layer_norm_eps,
        }
    }

    /// Names of all products, which are those of the float graph's range outputs.
    pub fn products(&self) -> Vec<String> {
        let parts = [
            "attention.self",
            "attention.output.dense",
            "intermediate.dense",
            "output.dense",
        ];
        let layers = 0..self.num_hidden_layers;
        layers
            .flat_map(|layer| parts.map(|part| format!("encoder.layer.{layer}.{part}")))
            .collect()
    }
}

/// Builds the whole graph.
pub(super) fn build(
    architecture: &Architecture,
    weights: &Weights,
    precision: Precision<'_>,
) -> Result<Graph, Error> {
    let mut graph = Graph::default();
    let with_head = weights.has("classifier.weight");
    let ids = graph.input("input_ids", &["batch", "tokens"]);
    let mask = graph.input("attention_mask", &["batch", "tokens"]);
    let segments = with_head.then(|| graph.input("token_type_ids", &["batch", "tokens"]));
    let mask = graph.cast(&mask, DataType::INT32);
    let shape = graph.node("Shape", &[&ids], &[]);

    let mut embedding = Embedding {
        graph: &mut graph,
        architecture,
        weights,
        precision,
    };
    let embedded = embedding.build(&ids, segments.as_deref(), &shape)?;
    let mut layers = Layers::new(&mut graph, architecture, weights, precision, &mask, &shape);
    let rows = layers.build(&embedded)?;

    let hidden = architecture.hidden_size;
    let width = graph.integers(&[hidden as i64]);
    let shape = graph.node(
        "Concat",
        &[&shape, &width],
        &[Attribute::Integer("axis", 0)],
    );
    let states = graph.node("Reshape", &[&rows, &shape], &[]);
    graph.output(
        "last_hidden_state",
        &states,
        &["batch", "tokens", &hidden.to_string()],
    );
    let layout = architecture.layout();
    let suited = layout.suits(architecture.hidden_size, architecture.intermediate_size);
    if !with_head && precision != Precision::Float && suited {
        for (name, value) in layout.properties() {
            graph.describe(name, value);
        }
    }
    if with_head {
        classifier(&mut graph, architecture, weights, &states)?;
    }
    Ok(graph)
}

/// The sum of word, position and segment vectors, normalised.
struct Embedding<'a, 'w> {
    graph: &'a mut Graph,
    architecture: &'a Architecture,
    weights: &'a Weights<'w>,
    precision: Precision<'a>,
}

impl Embedding<'_, '_> {
    fn build(&mut self, ids: &str, segments: Option<&str>, shape: &str) -> Result<String, Error> {
        let hidden = self.architecture.hidden_size;
        let words = self.words(ids)?;
        let positions = self.positions(shape, segments.is_none())?;
        let mut sum = self.graph.node("Add", &[&words, &positions], &[]);
        if let Some(segments) = segments {
            let types = self.architecture.type_vocab_size;
            let table = self
                .weights
                .values("embeddings.token_type_embeddings.weight", &[types, hidden])?;
            let table = self.graph.floats(&[types, hidden], &table);
            let vectors = self.graph.node("Gather", &[&table, segments], &[]);
            sum = self.graph.node("Add", &[&sum, &vectors], &[]);
        }
        let gamma = self
            .weights
            .values("embeddings.LayerNorm.weight", &[hidden])?;
        let beta = self
            .weights
            .values("embeddings.LayerNorm.bias", &[hidden])?;
        let name = "embeddings.LayerNorm";
        let gamma = self
            .graph
            .named_floats(&format!("{name}.weight"), &[hidden], &gamma);
        let beta = self
            .graph
            .named_floats(&format!("{name}.bias"), &[hidden], &beta);
        let epsilon = Attribute::Float("epsilon", self.architecture.layer_norm_eps);
        let normal = self
            .graph
            .node("LayerNormalization", &[&sum, &gamma, &beta], &[epsilon]);
        let rows = self.graph.integers(&[-1, hidden as i64]);
        Ok(self.graph.node("Reshape", &[&normal, &rows], &[]))
    }

    fn words(&mut self, ids: &str) -> Result<String, Error> {
        let (words, hidden) = (self.architecture.vocab_size, self.architecture.hidden_size);
        let table = self
            .weights
            .values("embeddings.word_embeddings.weight", &[words, hidden])?;
        if self.precision == Precision::Float {
            let table = self.graph.floats(&[words, hidden], &table);
            return Ok(self.graph.node("Gather", &[&table, ids], &[]));
        }
        let quantised = quantise::rows(&table, hidden);
        let (name, shape) = ("embeddings.words", [words, hidden]);
        let table = self.graph.bytes_beside(name, &shape, &quantised.values);
        let scales = format!("{name}.scales");
        let scales = self
            .graph
            .named_floats(&scales, &[words, 1], &quantised.scales);
        let bytes = self.graph.node("Gather", &[&table, ids], &[]);
        let scales = self.graph.node("Gather", &[&scales, ids], &[]);
        let values = self.graph.cast(&bytes, DataType::FLOAT);
        Ok(self.graph.node("Mul", &[&values, &scales], &[]))
    }

    /// Rows of the position table for as many tokens as the batch is wide. Where all tokens are of the first
    /// segment its vector is added into the table once and for all.
    fn positions(&mut self, shape: &str, first_segment: bool) -> Result<String, Error> {
        let (positions, hidden) = (
            self.architecture.max_position_embeddings,
            self.architecture.hidden_size,
        );
        let mut table = self.weights.values(
            "embeddings.position_embeddings.weight",
            &[positions, hidden],
        )?;
        if first_segment {
            let types = self.architecture.type_vocab_size;
            let segments = self
                .weights
                .values("embeddings.token_type_embeddings.weight", &[types, hidden])?;
            for row in table.chunks_exact_mut(hidden) {
                row.iter_mut()
                    .zip(&segments)
                    .for_each(|(x, segment)| *x += segment);
            }
        }
        let sizes = [positions, hidden];
        let table = self
            .graph
            .named_floats("embeddings.positions", &sizes, &table);
        let [zero, one, two] = [0, 1, 2].map(|number| self.graph.integers(&[number]));
        let width = self.graph.node("Slice", &[shape, &one, &two, &zero], &[]);
        Ok(self
            .graph
            .node("Slice", &[&table, &zero, &width, &zero], &[]))
    }
}

/// Scores of a cross-encoder: the first token's state through the pooler and the classifier.
fn classifier(
    graph: &mut Graph,
    architecture: &Architecture,
    weights: &Weights,
    states: &str,
) -> Result<(), Error> {
    let hidden = architecture.hidden_size;
    let labels = weights.rows("classifier.weight")?;
    let first = graph.integers(&[0]);
    let first = graph.node(
        "Gather",
        &[states, &first],
        &[Attribute::Integer("axis", 1)],
    );
    let flat = graph.integers(&[-1, hidden as i64]);
    let first = graph.node("Reshape", &[&first, &flat], &[]);
    let weight = weights.matrix("pooler.dense.weight", hidden, hidden)?;
    let bias = weights.values("pooler.dense.bias", &[hidden])?;
    let pooled = dense(graph, &first, &weight, &bias);
    let squashed = graph.node("Tanh", &[&pooled], &[]);
    let head = Matrix::transposed(
        &weights.read("classifier.weight", &[labels, hidden])?,
        hidden,
        labels,
    );
    let scores = dense(
        graph,
        &squashed,
        &head,
        &weights.read("classifier.bias", &[labels])?,
    );
    graph.output("logits", &scores, &["batch", &labels.to_string()]);
    Ok(())
}

fn dense(graph: &mut Graph, input: &str, matrix: &Matrix, bias: &[f32]) -> String {
    let weight = graph.floats(&[matrix.inputs, matrix.outputs], &matrix.values);
    let bias = graph.floats(&[matrix.outputs], bias);
    let product = graph.node("MatMul", &[input, &weight], &[]);
    graph.node("Add", &[&product, &bias], &[])
}
