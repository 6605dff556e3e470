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

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::tokens::Tokens;
use constants::Constants;
use embedding::Embedding;
use layer::{Layer, Workspace};
pub use layout::BertLayout;
pub use product::{instructions, product_rate};

/// Takes layers out of a file.
fn layers(
    constants: &mut Constants,
    numbers: Range<usize>,
    hidden: usize,
) -> Result<Vec<Arc<Layer>>, Error> {
    let layout = constants.layout;
    numbers
        .map(|index| {
            let layer = Layer::take(constants, index, hidden)?;
            match layout.suits(hidden, layer.inner()) {
                true => Ok(Arc::new(layer)),
                false => Err(constants.unfit("the width of rows or heads")),
            }
        })
        .collect()
}

/// A loaded model.
pub(crate) struct Bert {
    embedding: Arc<Embedding>,
    layers: Vec<Arc<Layer>>,
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
        let layers = layers(&mut constants, 0..layout.layers, hidden)?;
        Ok(Some(Self {
            embedding: Arc::new(embedding),
            layers,
            heads: layout.heads,
            rooms: Mutex::default(),
        }))
    }

    /// This model with upper layers of its own, from the bytes of an ONNX file that has them under
    /// their numbers here. Lower layers and word vectors are shared. The other constants of floats
    /// are given back by name.
    pub(crate) fn fitted(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Result<(Self, HashMap<String, Vec<f32>>), Error> {
        let constants = Constants::of_bytes(name, bytes)?;
        let mut constants = constants.ok_or_else(|| Error::Model {
            path: name.into(),
            reason: "the file does not describe its layers".to_owned(),
        })?;
        let layout = constants.layout;
        let kept = self.layers.len().checked_sub(layout.layers);
        let kept = kept.filter(|_| layout.heads == self.heads);
        let kept = kept.ok_or_else(|| constants.unfit("the number of layers or heads"))?;
        let upper = layers(&mut constants, kept..self.layers.len(), self.dimensions())?;
        let fitted = Self {
            embedding: self.embedding.clone(),
            layers: self.layers[..kept].iter().cloned().chain(upper).collect(),
            heads: self.heads,
            rooms: Mutex::default(),
        };
        Ok((fitted, constants.remaining_floats()))
    }

    /// Components of a hidden state.
    pub(crate) fn dimensions(&self) -> usize {
        self.embedding.width()
    }

    /// Multiplications with weights that a word piece takes.
    pub(crate) fn multiplications(&self) -> usize {
        self.layers
            .iter()
            .map(|layer| layer.multiplications())
            .sum()
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
        let inner = self
            .layers
            .iter()
            .map(|layer| layer.inner())
            .max()
            .unwrap_or(0);
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
