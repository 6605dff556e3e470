//! The model and its tokenizer, ready to run on several threads.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::batch;
use crate::bert::Bert;
use crate::error::Error;
use crate::graph::Graph;
use crate::pooling::Pooling;
use crate::tokenizer::ModelTokenizer;
use crate::tokens::Tokens;
use crate::vectors::Encoding;

/// Where a model lies.
#[derive(Debug, Clone)]
pub struct ModelFiles {
    /// ONNX graph with weights inside or in files beside it; inputs `input_ids` and
    /// `attention_mask`, optionally `token_type_ids`; output `last_hidden_state`, or else the first
    /// one, batch × tokens × dimensions.
    pub model: PathBuf,
    /// Tokenizer in the Hugging Face JSON format, or its form by [`crate::compact_tokenizer`].
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
    network: Network,
    tokenizer: Arc<ModelTokenizer>,
    spec: Spec,
    threads: NonZeroUsize,
}

/// What computes hidden states.
pub(crate) enum Network {
    /// A file that our exporter wrote in bytes.
    Bert(Box<Bert>),
    /// Any other file.
    Graph(Box<Graph>),
}

impl Encoder {
    /// Loads the model. One call of [`Encoder::encode`] uses up to `threads` threads.
    pub fn open(files: &ModelFiles, spec: Spec, threads: NonZeroUsize) -> Result<Self, Error> {
        let network = Network::open(&files.model, spec.dimensions)?;
        let tokenizer = ModelTokenizer::open(&files.tokenizer, spec.max_tokens)?;
        Ok(Self {
            network,
            tokenizer: Arc::new(tokenizer),
            spec,
            threads,
        })
    }

    /// The description the model was opened with.
    pub fn spec(&self) -> Spec {
        self.spec
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Tokenizer of the model.
    pub fn tokenizer(&self) -> &Arc<ModelTokenizer> {
        &self.tokenizer
    }

    /// Cuts texts into word pieces; the order is kept.
    pub fn tokenize(&self, texts: &[&str]) -> Result<Vec<Tokens>, Error> {
        texts
            .iter()
            .map(|text| self.tokenizer.tokenize(text))
            .collect()
    }

    /// [`Self::tokenize`] with what a model wants before each text; it is computed on, and no piece
    /// of it is one of the text.
    pub fn tokenize_behind(&self, prefix: &str, texts: &[&str]) -> Result<Vec<Tokens>, Error> {
        if prefix.is_empty() {
            return self.tokenize(texts);
        }
        let count = self.tokenizer.tokenize(prefix.trim_end())?.pieces().len();
        let with_prefix = |text: &&str| {
            let tokens = self.tokenizer.tokenize(&format!("{prefix}{text}"))?;
            Ok(tokens.behind(count))
        };
        texts.iter().map(with_prefix).collect()
    }

    /// Computes the vectors of a batch; the order is kept. A text's vectors do not depend on the
    /// others'. Groups of texts run side by side on threads with the priority of the calling one,
    /// which works, too.
    pub fn encode(&self, batch: &[Tokens]) -> Result<Vec<Encoding>, Error> {
        self.encode_in_steps(batch, &|_| {})
    }

    /// Computes as [`Encoder::encode`] does, layer by layer where the model runs as layers (some
    /// milliseconds each). `between` is called after each with the time that it took, and may wait.
    pub fn encode_in_steps(
        &self,
        batch: &[Tokens],
        between: &(dyn Fn(Duration) + Sync),
    ) -> Result<Vec<Encoding>, Error> {
        let lengths: Vec<usize> = batch.iter().map(Tokens::len).collect();
        let groups = batch::groups(&lengths, self.threads.get());
        let results: Mutex<Vec<Option<Encoding>>> = Mutex::new(vec![None; batch.len()]);
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), Error> {
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                let members: Vec<&Tokens> = group.iter().map(|&index| &batch[index]).collect();
                let encodings = self.run(&members, between)?;
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                for (&index, encoding) in group.iter().zip(encodings) {
                    results[index] = Some(encoding);
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let others = 1..self.threads.get().min(groups.len());
            let others: Vec<_> = others.map(|_| scope.spawn(work)).collect();
            others.into_iter().fold(work(), |result, other| {
                let outcome = other.join();
                result.and(outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        })?;
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(results
            .into_iter()
            .map(|encoding| encoding.expect("every index is in one group"))
            .collect())
    }

    /// Multiplications with weights that a word piece takes; only of models in bytes.
    pub fn multiplications(&self) -> Option<usize> {
        match &self.network {
            Network::Bert(bert) => Some(bert.multiplications()),
            Network::Graph(_) => None,
        }
    }

    /// Further float outputs of the graph for one text, by name, flattened; only of models that run as graphs.
    pub fn outputs(&self, tokens: &Tokens, names: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        match &self.network {
            Network::Graph(graph) => graph.outputs(tokens, names),
            Network::Bert(_) => Err(Error::Shape("the model has one output".to_owned())),
        }
    }

    /// One run of the network, and what is made of its hidden states.
    fn run(
        &self,
        members: &[&Tokens],
        between: &(dyn Fn(Duration) + Sync),
    ) -> Result<Vec<Encoding>, Error> {
        let dimensions = self.spec.dimensions;
        let hidden = match &self.network {
            Network::Bert(bert) => bert.run(members, between)?,
            Network::Graph(graph) => graph.run(members, dimensions)?,
        };
        let mut rest = &*hidden;
        let encodings = members.iter().map(|tokens| {
            let (rows, others) = rest.split_at(tokens.len() * dimensions);
            rest = others;
            self.spec.pooling.encoding(rows, dimensions, tokens)
        });
        Ok(encodings.collect())
    }
}

impl Network {
    fn open(path: &Path, dimensions: usize) -> Result<Self, Error> {
        let Some(bert) = Bert::open(path)? else {
            let graph = Graph::open(path)?;
            return Ok(Self::Graph(Box::new(graph)));
        };
        let found = bert.dimensions();
        if found != dimensions {
            return Err(Error::dimensions(found, dimensions));
        }
        Ok(Self::Bert(Box::new(bert)))
    }
}
