//! Vectors of texts, computed once and kept in a file: repeated runs need no model.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use memfleet_domain::embedding::{PassageVectors, TokenVectors};
use memfleet_encoder::projection::Projection;
use memfleet_encoder::{Encoder, Encoding, quantise};
use memfleet_models::ModelDirectory;

/// Texts encoded in one call.
const BATCH: usize = 64;

/// The vectors of one data set, by text.
pub struct VectorCache {
    path: PathBuf,
    known: HashMap<String, Arc<PassageVectors>>,
    model: Option<(ModelDirectory, NonZeroUsize)>,
    encoder: Option<(Encoder, Projection)>,
}

impl VectorCache {
    /// Reads what an earlier run has kept.
    pub fn open(path: PathBuf, model: Option<(ModelDirectory, NonZeroUsize)>) -> Result<Self> {
        let mut known = HashMap::new();
        if path.exists() {
            let mut file = BufReader::new(File::open(&path)?);
            while let Some((text, vectors)) =
                read_entry(&mut file).with_context(|| path.display().to_string())?
            {
                known.insert(text, Arc::new(vectors));
            }
        }
        Ok(Self {
            path,
            known,
            model,
            encoder: None,
        })
    }

    /// The vectors of each text, in order.
    pub fn vectors(&mut self, texts: &[String]) -> Result<Vec<Arc<PassageVectors>>> {
        let missing: Vec<&String> = texts
            .iter()
            .filter(|text| !self.known.contains_key(*text))
            .collect();
        if !missing.is_empty() {
            eprintln!("encoding {} texts", missing.len());
        }
        for batch in missing.chunks(BATCH) {
            let vectors = self.encode(batch)?;
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.path)?;
            let mut file = BufWriter::new(file);
            for (&text, vectors) in batch.iter().zip(vectors) {
                write_entry(&mut file, text, &vectors)?;
                self.known.insert(text.clone(), Arc::new(vectors));
            }
            file.flush()?;
        }
        Ok(texts
            .iter()
            .map(|text| Arc::clone(&self.known[text]))
            .collect())
    }

    fn encode(&mut self, texts: &[&String]) -> Result<Vec<PassageVectors>> {
        if self.encoder.is_none() {
            let (model, threads) = self
                .model
                .as_ref()
                .context("no model: run `memfleet model pull` or give --model")?;
            self.encoder = Some((model.load(*threads)?, Projection::shipped()));
        }
        let (encoder, projection) = self.encoder.as_ref().context("loaded above")?;
        let texts: Vec<&str> = texts.iter().map(|text| text.as_str()).collect();
        let encodings = encoder.encode(&encoder.tokenize(&texts)?)?;
        encodings
            .iter()
            .map(|encoding| stored(encoding, projection))
            .collect()
    }
}

fn stored(encoding: &Encoding, projection: &Projection) -> Result<PassageVectors> {
    let tokens = projection.project_quantise(&encoding.tokens)?;
    Ok(PassageVectors {
        sentence: quantise::sentence(&encoding.sentence),
        tokens: TokenVectors {
            dimensions: usize::from(tokens.dimensions),
            pieces: tokens.pieces,
            values: tokens.values,
        },
    })
}

fn write_entry(file: &mut impl Write, text: &str, vectors: &PassageVectors) -> io::Result<()> {
    let tokens = &vectors.tokens;
    for length in [
        text.len(),
        vectors.sentence.len(),
        tokens.pieces.len(),
        tokens.dimensions,
    ] {
        file.write_all(&(length as u32).to_le_bytes())?;
    }
    file.write_all(text.as_bytes())?;
    for piece in &tokens.pieces {
        file.write_all(&piece.to_le_bytes())?;
    }
    let bytes = vectors.sentence.iter().chain(&tokens.values);
    file.write_all(&bytes.map(|&x| x.cast_unsigned()).collect::<Vec<u8>>())
}

fn read_entry(file: &mut impl Read) -> Result<Option<(String, PassageVectors)>> {
    let mut header = [0; 16];
    if let Err(error) = file.read_exact(&mut header) {
        return if error.kind() == io::ErrorKind::UnexpectedEof {
            Ok(None)
        } else {
            Err(error.into())
        };
    }
    let mut lengths = header
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&bytes| u32::from_le_bytes(bytes) as usize);
    let [text, sentence, pieces, dimensions] = std::array::from_fn(|_| lengths.next().unwrap_or(0));
    let mut bytes = |length: usize| -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8(bytes(text)?)?;
    let numbers = bytes(pieces * 4)?;
    let signed = |bytes: Vec<u8>| bytes.into_iter().map(u8::cast_signed).collect();
    let vectors = PassageVectors {
        sentence: signed(bytes(sentence)?),
        tokens: TokenVectors {
            dimensions,
            pieces: numbers
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&bytes| u32::from_le_bytes(bytes))
                .collect(),
            values: signed(bytes(pieces * dimensions)?),
        },
    };
    Ok(Some((text, vectors)))
}
