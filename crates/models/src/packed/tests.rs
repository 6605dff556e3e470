//! A tiny packed checkpoint, unpacked, built and damaged.

use std::num::NonZeroUsize;

use super::sample::{HIDDEN, checkpoint, model, pieces};
use super::*;
use crate::directory::ModelDirectory;
use crate::pull::{Event, Sources, pull};
use crate::verify::{LEAST_COSINE, verify};

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
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.bin"), checkpoint()).unwrap();
    let sources = Sources {
        folder: Some(folder.path().to_owned()),
        ..Sources::new(root.to_owned())
    };
    pull(&model(b"no wheel"), &sources, &mut |_: Event<'_>| {}).unwrap()
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
    let bytes = checkpoint();
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
