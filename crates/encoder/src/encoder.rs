//! The model and its tokenizer, ready to run on several threads.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use tokenizers::{Tokenizer, TruncationParams};

use crate::batch;
use crate::error::Error;
use crate::lanes::Lanes;
use crate::pooling::Pooling;
use crate::tokens::Tokens;
use crate::vectors::Encoding;

/// Where a model lies.
#[derive(Debug, Clone)]
pub struct ModelFiles {
    /// ONNX graph with weights inside; inputs `input_ids` and `attention_mask`, optionally `token_type_ids`;
    /// output `last_hidden_state`, or else the first one, batch × tokens × dimensions.
    pub model: PathBuf,
    /// Tokenizer in the Hugging Face JSON format.
    pub tokenizer: PathBuf,
}

/// What the model is, as its manifest says.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Pieces of a text that are read, special ones included; the rest is cut off.
    pub max_tokens: usize,
    /// Components of a vector.
    pub dimensions: usize,
    /// How the sentence vector is made.
    pub pooling: Pooling,
}

/// A loaded model. Shared by reference: calls from several threads are safe.
pub struct Encoder {
    model: Model,
    nodes: Nodes,
    tokenizer: Tokenizer,
    spec: Spec,
    lanes: Lanes,
}

/// Graph nodes that a run feeds and reads.
struct Nodes {
    ids: NodeId,
    mask: NodeId,
    segments: Option<NodeId>,
    hidden: NodeId,
}

impl Encoder {
    /// Loads the model. One call of [`Encoder::encode`] uses up to `threads` threads.
    pub fn open(files: &ModelFiles, spec: Spec, threads: NonZeroUsize) -> Result<Self, Error> {
        let model = ModelOptions::with_all_ops()
            .prepack_weights(true)
            .load_file(&files.model)
            .map_err(|error| Error::Model {
                path: files.model.clone(),
                reason: error.to_string(),
            })?;
        let nodes = Nodes::of(&model)?;
        let tokenizer = open_tokenizer(&files.tokenizer, spec.max_tokens)?;
        Ok(Self {
            model,
            nodes,
            tokenizer,
            spec,
            lanes: Lanes::new(threads),
        })
    }

    /// The description the model was opened with.
    pub fn spec(&self) -> Spec {
        self.spec
    }

    /// Cuts texts into word pieces; the order is kept.
    pub fn tokenize(&self, texts: &[&str]) -> Result<Vec<Tokens>, Error> {
        texts.iter().map(|text| self.tokenize_one(text)).collect()
    }

    fn tokenize_one(&self, text: &str) -> Result<Tokens, Error> {
        let encoding = self
            .tokenizer
            .encode_fast(text, true)
            .map_err(|error| Error::Tokenise(error.to_string()))?;
        Ok(Tokens::new(
            encoding.get_ids().to_vec(),
            encoding.get_special_tokens_mask(),
        ))
    }

    /// Computes the vectors of a batch; the order is kept. A text's vectors do not depend on the others'.
    pub fn encode(&self, batch: &[Tokens]) -> Result<Vec<Encoding>, Error> {
        let lengths: Vec<usize> = batch.iter().map(Tokens::len).collect();
        let groups = batch::groups(&lengths, self.lanes.width());
        let results: Mutex<Vec<Option<Encoding>>> = Mutex::new(vec![None; batch.len()]);
        let next = AtomicUsize::new(0);
        let work = |lane: &Arc<ThreadPool>| -> Result<(), Error> {
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                let members: Vec<&Tokens> = group.iter().map(|&index| &batch[index]).collect();
                let encodings = self.run(&members, lane)?;
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                for (&index, encoding) in group.iter().zip(encodings) {
                    results[index] = Some(encoding);
                }
            }
            Ok(())
        };
        self.lanes.run(groups.len(), work)?;
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(results
            .into_iter()
            .map(|encoding| encoding.expect("every index is in one group"))
            .collect())
    }

    /// Further float outputs of the graph for one text, by name, flattened.
    pub fn outputs(&self, tokens: &Tokens, names: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
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

    /// One run of the model over texts padded to the longest of them.
    fn run(&self, members: &[&Tokens], lane: &Arc<ThreadPool>) -> Result<Vec<Encoding>, Error> {
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(lane)));
        let [hidden] = self
            .model
            .run_n(self.feed(members), [self.nodes.hidden], Some(options))
            .map_err(|error| Error::Inference(error.to_string()))?;
        let hidden: NdTensor<f32, 3> = hidden
            .try_into()
            .map_err(|_| Error::Shape("output is not a batch of float matrices".to_owned()))?;
        self.pool(&hidden, members)
    }

    /// Inputs of a run: word pieces, a mask that leaves padding out, and the first segment for all.
    fn feed(&self, members: &[&Tokens]) -> Vec<(NodeId, ValueOrView<'static>)> {
        let width = members.iter().map(|tokens| tokens.len()).max().unwrap_or(0);
        let shape = [members.len(), width];
        let mut ids = NdTensor::<i32, 2>::zeros(shape);
        let mut mask = NdTensor::<i32, 2>::zeros(shape);
        for (row, tokens) in members.iter().enumerate() {
            for (column, &id) in tokens.ids().iter().enumerate() {
                ids[[row, column]] = id.cast_signed();
                mask[[row, column]] = 1;
            }
        }
        let mut inputs = vec![(self.nodes.ids, ids.into()), (self.nodes.mask, mask.into())];
        if let Some(segments) = self.nodes.segments {
            inputs.push((segments, NdTensor::<i32, 2>::zeros(shape).into()));
        }
        inputs
    }

    fn pool(&self, hidden: &NdTensor<f32, 3>, members: &[&Tokens]) -> Result<Vec<Encoding>, Error> {
        let [batch, width, dimensions] = hidden.shape();
        if batch != members.len() || dimensions != self.spec.dimensions {
            let expected = self.spec.dimensions;
            return Err(Error::Shape(format!(
                "hidden state has {dimensions} dimensions, expected {expected}"
            )));
        }
        let values = hidden
            .data()
            .ok_or_else(|| Error::Shape("output is not contiguous".to_owned()))?;
        let texts = values.chunks_exact((width * dimensions).max(1));
        let encodings = texts.zip(members).map(|(rows, tokens)| {
            self.spec
                .pooling
                .encoding(&rows[..tokens.len() * dimensions], dimensions, tokens)
        });
        Ok(encodings.collect())
    }
}

impl Nodes {
    fn of(model: &Model) -> Result<Self, Error> {
        let required = |name: &str| {
            model
                .find_node(name)
                .ok_or_else(|| Error::Shape(format!("input {name} is missing")))
        };
        let hidden = model.find_node("last_hidden_state");
        let hidden = hidden.or_else(|| model.output_ids().first().copied());
        Ok(Self {
            ids: required("input_ids")?,
            mask: required("attention_mask")?,
            segments: model.find_node("token_type_ids"),
            hidden: hidden.ok_or_else(|| Error::Shape("output is missing".to_owned()))?,
        })
    }
}

fn open_tokenizer(path: &Path, max_tokens: usize) -> Result<Tokenizer, Error> {
    let failed = |error: tokenizers::Error| Error::Tokenizer {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let mut tokenizer = Tokenizer::from_file(path).map_err(failed)?;
    let truncation = TruncationParams {
        max_length: max_tokens,
        ..TruncationParams::default()
    };
    tokenizer
        .with_padding(None)
        .with_truncation(Some(truncation))
        .map_err(failed)?;
    Ok(tokenizer)
}
