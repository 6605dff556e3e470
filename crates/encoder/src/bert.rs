//! A BERT encoder in bytes, for the ONNX files that `memfleet-models` writes: the file's own
//! weights, run by a loop that keeps a batch in the processor's cache instead of by a graph of
//! operators that writes every intermediate to memory. Texts lie behind each other without padding.
//! It computes what the graph computes; other ONNX files are run as graphs. `product` multiplies by
//! weights of bytes, `rows` has the steps between the products.

#![allow(
    clippy::inline_always,
    reason = "vector instructions that are not inlined into the function that was chosen for the processor become calls"
)]

mod attention;
mod constants;
mod embedding;
mod layer;
mod layout;
mod linear;
mod product;
mod rows;
mod table;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::tokens::Tokens;
use constants::Constants;
use embedding::Embedding;
use layer::{Layer, Workspace};
pub use layout::BertLayout;
pub use product::{instructions, product_rate};

/// A loaded model.
pub(crate) struct Bert {
    embedding: Embedding,
    layers: Vec<Layer>,
    heads: usize,
    /// Workspaces that no run uses; fresh memory costs more than the steps between the products.
    rooms: Mutex<Vec<Workspace>>,
}

impl Bert {
    /// Reads an ONNX file; nothing if it is not one that this module runs.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Error> {
        let Some(mut constants) = Constants::read(path)? else {
            return Ok(None);
        };
        let layout = constants.layout;
        let embedding = Embedding::take(&mut constants)?;
        let hidden = embedding.width();
        let layers: Vec<Layer> = (0..layout.layers)
            .map(|index| Layer::take(&mut constants, index, hidden))
            .collect::<Result<_, _>>()?;
        if !layers
            .iter()
            .all(|layer| layout.suits(hidden, layer.inner()))
        {
            return Err(constants.unfit("the width of rows or heads"));
        }
        Ok(Some(Self {
            embedding,
            layers,
            heads: layout.heads,
            rooms: Mutex::default(),
        }))
    }

    /// Components of a hidden state.
    pub(crate) fn dimensions(&self) -> usize {
        self.embedding.width()
    }

    /// Multiplications with weights that a word piece takes.
    pub(crate) fn multiplications(&self) -> usize {
        self.layers.iter().map(Layer::multiplications).sum()
    }

    /// The last hidden states of all texts, one row a word piece, the texts behind each other.
    /// `between` is called after each layer with the time that it took.
    pub(crate) fn run(
        &self,
        texts: &[&Tokens],
        between: &(dyn Fn(Duration) + Sync),
    ) -> Result<Vec<f32>, Error> {
        let mut states = self.embedding.rows(texts)?;
        let lengths: Vec<usize> = texts.iter().map(|tokens| tokens.len()).collect();
        let mut work = self.rooms().pop().unwrap_or_default();
        let inner = self.layers.iter().map(Layer::inner).max().unwrap_or(0);
        work.fit(lengths.iter().sum(), self.dimensions(), inner);
        for layer in &self.layers {
            let begun = Instant::now();
            layer.run(self.heads, &lengths, &mut states, &mut work);
            between(begun.elapsed());
        }
        self.rooms().push(work);
        Ok(states)
    }

    fn rooms(&self) -> MutexGuard<'_, Vec<Workspace>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
