//! Checkpoints of the BERT family turned into ONNX files that rten runs fast: attention, bias and
//! normalisation fused, weights as bytes with one scale a channel, activations quantised token by token, so
//! that a text's vectors do not depend on what it shares a batch with.

mod bert;
mod graph;
mod quantise;
mod weights;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bert::Architecture;
use weights::Weights;
pub(crate) use weights::half;

/// Largest magnitude of every component that enters a product, by the name of the product.
pub type Ranges = BTreeMap<String, Vec<f32>>;

/// How weights are stored and products computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Precision<'a> {
    /// 32-bit floats: the reference. For every product the graph has an output of its name with the components'
    /// largest magnitudes, which are computed only where they are asked for.
    Float,
    /// Bytes: a quarter of the size, twice the speed. The ranges come from a run of the float graph.
    Integer(&'a Ranges),
}

/// Why a checkpoint could not be turned into an ONNX file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A source file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The result cannot be written.
    #[error("{path} cannot be written: {reason}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The configuration is damaged or names something this exporter does not do.
    #[error("model configuration is not supported: {0}")]
    Configuration(String),
    /// A tensor or a product's range is missing or of another shape or type.
    #[error("checkpoint does not fit its configuration: {0}")]
    Checkpoint(String),
}

/// A checkpoint (safetensors) and its configuration (`config.json`), ready to be turned into ONNX files.
pub struct Exporter {
    architecture: Architecture,
    checkpoint: Vec<u8>,
}

impl Exporter {
    /// Reads both files.
    pub fn open(checkpoint: &Path, configuration: &Path) -> Result<Self, Error> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| Error::Read {
                path: path.to_owned(),
                source,
            })
        };
        let architecture = Architecture::parse(&read(configuration)?)?;
        Ok(Self {
            architecture,
            checkpoint: read(checkpoint)?,
        })
    }

    /// Names of the float graph's range outputs.
    pub fn products(&self) -> Vec<String> {
        self.architecture.products()
    }

    /// Writes an ONNX file. In bytes, the table of word vectors goes into a file of its own, named
    /// `target` with `.data` behind it, so that who runs the model need not hold it in memory.
    pub fn write(&self, target: &Path, precision: Precision<'_>) -> Result<(), Error> {
        let weights = Weights::new(&self.checkpoint)?;
        bert::build(&self.architecture, &weights, precision)?.write(target)
    }
}
