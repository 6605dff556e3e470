//! Fits the projection of a model that ships with this crate: `fit_projection MODEL_DIRECTORY OUT
//! [DIMENSIONS [TEXTS [PREFIX]]]`. The texts are our own: pieces of the model's vocabulary in
//! carrier sentences where TEXTS is left out or empty, else the lines of that file, behind what the
//! model wants before a passage.

mod corpus;

use std::num::NonZeroUsize;
use std::path::Path;
use std::{env, fs, thread};

use anyhow::{Context, Result};
use memfleet_encoder::{Encoder, ModelFiles, Pooling, Spec, projection};
use tokenizers::Tokenizer;

/// Texts that are encoded at once.
const BATCH: usize = 64;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let directory = arguments
        .next()
        .context("usage: fit_projection MODEL_DIRECTORY OUT [DIMENSIONS]")?;
    let out = arguments
        .next()
        .context("usage: fit_projection MODEL_DIRECTORY OUT [DIMENSIONS]")?;
    let dimensions = arguments.next().map_or(Ok(64), |number| number.parse())?;
    let lines = arguments.next().filter(|path| !path.is_empty());
    let lines = lines.map(fs::read_to_string).transpose()?;
    let prefix = arguments.next().unwrap_or_default();
    let directory = Path::new(&directory);
    let files = ModelFiles {
        model: directory.join("model.onnx"),
        tokenizer: directory.join("tokenizer.json"),
    };
    let spec = Spec {
        max_tokens: 256,
        dimensions: 384,
        pooling: Pooling::Mean,
    };
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let encoder = Encoder::open(&files, spec, threads)?;
    let tokenizer = Tokenizer::from_file(&files.tokenizer).map_err(anyhow::Error::msg)?;

    let texts = match lines {
        Some(lines) => lines.lines().map(str::to_owned).collect(),
        None => corpus::texts(&tokenizer),
    };
    let mut vectors = Vec::new();
    for batch in texts.chunks(BATCH) {
        let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
        for encoding in encoder.encode(&encoder.tokenize_behind(&prefix, &batch)?)? {
            vectors.extend(encoding.tokens.values);
        }
    }
    let projection = projection::fit(vectors.chunks_exact(spec.dimensions), dimensions)?;
    fs::write(&out, projection.to_bytes())?;
    let tokens = vectors.len() / spec.dimensions;
    println!(
        "{tokens} token vectors of {} texts, fingerprint {}",
        texts.len(),
        projection.fingerprint()
    );
    Ok(())
}
