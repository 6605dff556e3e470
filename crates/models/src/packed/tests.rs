//! A tiny packed checkpoint, unpacked, built and damaged.

use std::num::NonZeroUsize;

use sha2::{Digest, Sha256};

use super::*;
use crate::directory::ModelDirectory;
use crate::hash;
use crate::pull::{Event, Sources, pull};
use crate::registry::{KnownModel, SourceFile, SourceFiles};
use crate::verify::{LEAST_COSINE, verify};

const HIDDEN: usize = 64;
const INNER: usize = 128;
const POSITIONS: usize = 64;

/// Pieces with their scores: the special ones, the space, letters and one word.
fn pieces() -> Vec<(String, f32)> {
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

fn sample() -> Vec<u8> {
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

#[test]
fn half_bytes_become_weights_the_low_ones_first() {
    let mut block = 0x3c00_u16.to_le_bytes().to_vec();
    block.extend((0..16).map(|byte| byte | ((15 - byte) << 4)));
    let tensor = Tensor {
        bytes: &block,
        shape: vec![1, BLOCK],
        is_packed: true,
    };
    let unpacked = tensor.unpacked();
    let weights = unpacked.as_chunks::<4>().0.iter();
    let weights: Vec<f32> = weights.map(|bytes| f32::from_le_bytes(*bytes)).collect();
    assert_eq!((weights[0], weights[15]), (-8.0, 7.0));
    assert_eq!((weights[16], weights[31]), (7.0, -8.0));
}

/// The tiny model, built in the folder.
fn built(root: &Path) -> ModelDirectory {
    let bytes = sample();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.bin"), &bytes).unwrap();
    let model = KnownModel {
        name: "tiny".to_owned(),
        revision: "r1".to_owned(),
        licence: "MIT".to_owned(),
        dimensions: HIDDEN,
        pooling: crate::manifest::Pooling::Mean,
        max_tokens: POSITIONS,
        files: SourceFiles::Packed(SourceFile {
            name: "tiny.bin".to_owned(),
            bytes: bytes.len() as u64,
            sha256: hash::hexadecimal(&Sha256::digest(&bytes)),
        }),
        query_prefix: "query: ".to_owned(),
        passage_prefix: "passage: ".to_owned(),
        hub: None,
        package: None,
    };
    let sources = Sources {
        root: root.to_owned(),
        hub: String::new(),
        installers: Vec::new(),
        folder: Some(folder.path().to_owned()),
    };
    pull(&model, &sources, &mut |_: Event<'_>| {}).unwrap()
}

#[test]
fn a_packed_model_is_built_and_reads_its_own_pieces() {
    let root = tempfile::tempdir().unwrap();
    let pulled = built(root.path());
    assert!(verify(&pulled).unwrap().least_cosine > LEAST_COSINE);
    assert_eq!(pulled.manifest().query_prefix, "query: ");
    let encoder = pulled.load(NonZeroUsize::MIN).unwrap();
    let tokens = encoder.tokenize_behind("query: ", &["猫 ab"]).unwrap();
    let expected: Vec<u32> = ["▁猫", "▁", "a", "b"]
        .map(|piece| pieces().iter().position(|(it, _)| it == piece).unwrap() as u32)
        .to_vec();
    assert_eq!(
        tokens[0].pieces(),
        expected,
        "the prefix is no part of the text"
    );
}

#[test]
fn the_table_and_the_compact_tokenizer_lie_beside_the_model_and_are_pinned() {
    let root = tempfile::tempdir().unwrap();
    let built = built(root.path());
    for name in ["model.onnx.data", "tokenizer.bin"] {
        assert!(built.manifest().files.contains_key(name), "{name}");
    }
    let table = built.path().join("model.onnx.data");
    let bytes = fs::read(&table).unwrap();
    assert_eq!(bytes.len(), pieces().len() * HIDDEN);
    fs::write(&table, &bytes[1..]).unwrap();
    assert!(matches!(verify(&built), Err(Error::WrongHash { .. })));
    let error = built.load(NonZeroUsize::MIN).err().unwrap().to_string();
    assert!(error.contains("model.onnx.data has 2047 bytes"), "{error}");
    fs::remove_file(&table).unwrap();
    let error = built.load(NonZeroUsize::MIN).err().unwrap().to_string();
    assert!(error.contains("model.onnx.data: "), "{error}");
}

#[test]
fn a_checkpoint_that_is_cut_off_or_of_another_format_is_refused() {
    let bytes = sample();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("tiny.bin");
    for cut in (0..bytes.len()).step_by(1_009) {
        fs::write(&source, &bytes[..cut]).unwrap();
        assert!(unpack(&source, folder.path()).is_err(), "{cut}");
    }
    fs::write(&source, b"GGUF and more").unwrap();
    let error = unpack(&source, folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("no packed checkpoint"),
        "{error}"
    );
}
