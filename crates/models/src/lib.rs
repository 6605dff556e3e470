//! Models on disk: which ones are known, where they come from, how their files are checked, and
//! how a checkpoint becomes the ONNX file that the encoder runs. A model is a directory of
//! `model.onnx` with `model.onnx.data`, `tokenizer.json`, perhaps its compact form,
//! `reference.json` and `manifest.toml`. No Python at run time; pip is one way to fetch, where it
//! is installed.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod build;
mod calibration;
mod coverage;
mod directory;
mod error;
pub mod export;
mod hash;
mod jar;
mod manifest;
mod packed;
mod pull;
mod reference;
mod registry;
mod root;
pub mod testing;
mod verify;

pub use coverage::{LanguageCoverage, coverage};
pub use directory::{ModelDirectory, list};
pub use error::Error;
pub use manifest::{Manifest, Normalisation, Pooling};
pub use pull::{Event, Progress, Sources, pull};
pub use registry::{
    DEFAULT_MODEL, HubSource, KnownModel, MULTILINGUAL_MODEL, MavenSource, ModelSource,
    PackageSource, SourceFile, known, known_models,
};
pub use root::default_root;
pub use verify::{LEAST_COSINE, Verification, verify};
