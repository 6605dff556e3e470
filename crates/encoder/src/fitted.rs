//! Encoder whose upper layers were fitted to another task than embedding.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::bert::Bert;
use crate::encoder::{Encoder, Network};
use crate::error::Error;
use crate::tokenizer::ModelTokenizer;
use crate::tokens::Tokens;

/// Encoder with upper layers of its own over the lower layers and the word vectors of another one,
/// which it shares. Calls from several threads are safe.
pub struct FittedEncoder {
    bert: Bert,
    tokenizer: Arc<ModelTokenizer>,
}

impl FittedEncoder {
    /// Reads upper layers from the bytes of an ONNX file, and the other constants of floats in it,
    /// by name. `name` stands in errors. Fails for encoders that do not run as layers.
    pub fn open(
        base: &Encoder,
        name: &str,
        bytes: &[u8],
    ) -> Result<(Self, HashMap<String, Vec<f32>>), Error> {
        let Network::Bert(bert) = base.network() else {
            return Err(Error::Model {
                path: name.into(),
                reason: "its base does not run as layers".to_owned(),
            });
        };
        let (bert, constants) = bert.fitted(name, bytes)?;
        let fitted = Self {
            bert,
            tokenizer: base.tokenizer().clone(),
        };
        Ok((fitted, constants))
    }

    /// Tokenizer of the base.
    pub fn tokenizer(&self) -> &ModelTokenizer {
        &self.tokenizer
    }

    /// Components of a state.
    pub fn dimensions(&self) -> usize {
        self.bert.dimensions()
    }

    /// The last states of every piece of every sequence, row-major, one matrix a sequence.
    /// `between` is called after each layer with the time that it took, and may wait.
    pub fn states(
        &self,
        sequences: Vec<Vec<u32>>,
        between: &(dyn Fn(Duration) + Sync),
    ) -> Result<Vec<Vec<f32>>, Error> {
        let sequences: Vec<Tokens> = sequences.into_iter().map(Tokens::of_ids).collect();
        let texts: Vec<&Tokens> = sequences.iter().collect();
        let all = self.bert.run(&texts, between)?;
        let mut rest = &*all;
        let states = texts.iter().map(|tokens| {
            let (rows, others) = rest.split_at(tokens.len() * self.dimensions());
            rest = others;
            rows.to_vec()
        });
        Ok(states.collect())
    }
}
