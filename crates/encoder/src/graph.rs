//! Any ONNX file of a sentence encoder, run by rten.

use std::path::Path;
use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};

use crate::error::Error;
use crate::tokens::Tokens;

/// A loaded graph and the nodes that a run feeds and reads.
pub(crate) struct Graph {
    model: Model,
    ids: NodeId,
    mask: NodeId,
    segments: Option<NodeId>,
    hidden: NodeId,
}

impl Graph {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let model = ModelOptions::with_all_ops()
            .prepack_weights(true)
            .load_file(path)
            .map_err(|error| Error::Model {
                path: path.to_owned(),
                reason: error.to_string(),
            })?;
        let required = |name: &str| {
            let node = model.find_node(name);
            node.ok_or_else(|| Error::Shape(format!("input {name} is missing")))
        };
        let hidden = model.find_node("last_hidden_state");
        let hidden = hidden.or_else(|| model.output_ids().first().copied());
        Ok(Self {
            ids: required("input_ids")?,
            mask: required("attention_mask")?,
            segments: model.find_node("token_type_ids"),
            hidden: hidden.ok_or_else(|| Error::Shape("output is missing".to_owned()))?,
            model,
        })
    }

    /// The hidden states of all texts, one row of `dimensions` a word piece, the texts behind each other.
    pub(crate) fn run(&self, texts: &[&Tokens], dimensions: usize) -> Result<Vec<f32>, Error> {
        // A pool of its own costs little beside a run, and has the priority of the calling thread.
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        let options = RunOptions::default().with_thread_pool(Some(pool));
        let [hidden] = self
            .model
            .run_n(self.feed(texts), [self.hidden], Some(options))
            .map_err(|error| Error::Inference(error.to_string()))?;
        let hidden: NdTensor<f32, 3> = hidden
            .try_into()
            .map_err(|_| Error::Shape("output is not a batch of float matrices".to_owned()))?;
        let [batch, width, found] = hidden.shape();
        if batch != texts.len() || found != dimensions {
            return Err(Error::dimensions(found, dimensions));
        }
        let padded = hidden.into_data();
        let rows = padded.chunks_exact((width * dimensions).max(1)).zip(texts);
        Ok(rows
            .flat_map(|(rows, tokens)| &rows[..tokens.len() * dimensions])
            .copied()
            .collect())
    }

    /// Further float outputs of the graph for one text, by name, flattened.
    pub(crate) fn outputs(&self, tokens: &Tokens, names: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let node = |name: &&str| {
            let node = self.model.find_node(name);
            node.ok_or_else(|| Error::Shape(format!("output {name} is missing")))
        };
        let nodes = names.iter().map(node).collect::<Result<Vec<_>, _>>()?;
        let values = self.model.run(self.feed(&[tokens]), &nodes, None);
        let values = values.map_err(|error| Error::Inference(error.to_string()))?;
        let floats = values.into_iter().map(|value| {
            let tensor: Tensor<f32> = value
                .try_into()
                .map_err(|_| Error::Shape("output is not of floats".to_owned()))?;
            Ok(tensor.into_data())
        });
        floats.collect()
    }

    /// Inputs of a run: word pieces, a mask that leaves padding out, and the first segment for all.
    fn feed(&self, texts: &[&Tokens]) -> Vec<(NodeId, ValueOrView<'static>)> {
        let width = texts.iter().map(|tokens| tokens.len()).max().unwrap_or(0);
        let shape = [texts.len(), width];
        let mut ids = NdTensor::<i32, 2>::zeros(shape);
        let mut mask = NdTensor::<i32, 2>::zeros(shape);
        for (row, tokens) in texts.iter().enumerate() {
            for (column, &id) in tokens.ids().iter().enumerate() {
                ids[[row, column]] = id.cast_signed();
                mask[[row, column]] = 1;
            }
        }
        let mut inputs = vec![(self.ids, ids.into()), (self.mask, mask.into())];
        if let Some(segments) = self.segments {
            inputs.push((segments, NdTensor::<i32, 2>::zeros(shape).into()));
        }
        inputs
    }
}
