//! Tiny base and reader with random weights, for tests of what hosts a reader: they run like real
//! ones, in microseconds, and what they say has no meaning.

use std::cell::RefCell;
use std::fs::File;
use std::num::NonZeroUsize;

use memfleet_domain::statement::{
    ChangeVectors, NameKind, StatementKind, StatementOwner, StatementRelation,
};
use memfleet_domain::tense::PromptTense;
use memfleet_encoder::{BertLayout, Encoder, ModelFiles, Pooling, Spec};
use rten_onnx::onnx::{DataType, GraphProto, ModelProto, StringStringEntryProto, TensorProto};

use crate::ReaderModel;
use crate::relations::INNER;

const WIDTH: usize = 64;
const PIECES: usize = 512;
const LAYERS: usize = 2;

/// An encoder of two layers whose vocabulary is the letters.
///
/// # Panics
/// If its files cannot be written or read.
pub fn tiny_base() -> Encoder {
    let folder = tempfile::tempdir().expect("a folder for a tiny model");
    let vocabulary = vocabulary();
    let rows = vocabulary.len();
    let mut model = TinyFile::default();
    model.bytes("embeddings.words", [rows, WIDTH]);
    model.constant("embeddings.words.scales", &vec![0.02; rows]);
    model.floats("embeddings.positions", PIECES * WIDTH);
    model.norm("embeddings.LayerNorm");
    (0..LAYERS).for_each(|number| model.layer(number));
    let files = ModelFiles {
        model: folder.path().join("model.onnx"),
        tokenizer: folder.path().join("tokenizer.json"),
    };
    let file = File::create(&files.model).expect("a file for a tiny model");
    let written = model.proto(LAYERS).write_file(file);
    written.expect("a tiny model is written");
    let tokenizer = tokenizer(&vocabulary).to_string();
    std::fs::write(&files.tokenizer, tokenizer).expect("a tiny tokenizer is written");
    let spec = Spec {
        max_tokens: PIECES,
        dimensions: WIDTH,
        pooling: Pooling::Mean,
    };
    Encoder::open(&files, spec, NonZeroUsize::MIN).expect("the tiny model is sound")
}

/// A reader over [`tiny_base`] with one layer of its own.
///
/// # Panics
/// If the base cannot be made.
pub fn tiny_reader() -> ReaderModel {
    let mut model = TinyFile::default();
    model.layer(LAYERS - 1);
    let relations = StatementRelation::ALL.len();
    for (name, [outputs, inputs]) in [
        ("statements.start", [1, WIDTH]),
        ("statements.kind", [StatementKind::ALL.len(), 2 * WIDTH]),
        ("statements.owner", [StatementOwner::ALL.len(), 2 * WIDTH]),
        ("statements.flags", [3, 2 * WIDTH]),
        ("lines.line", [4, 2 * WIDTH]),
        ("candidates.later", [ChangeVectors::DIMENSIONS, WIDTH]),
        ("candidates.earlier", [ChangeVectors::DIMENSIONS, WIDTH]),
        ("names.name", [1 + 2 * NameKind::ALL.len(), WIDTH]),
        ("pairs.widen", [INNER, 4 * WIDTH]),
        ("pairs.relation", [relations, INNER]),
        ("needs.offset", [1, WIDTH]),
        ("tenses.tense", [PromptTense::ALL.len(), WIDTH]),
    ] {
        model.floats(&format!("{name}.weight"), outputs * inputs);
        model.floats(&format!("{name}.bias"), outputs);
    }
    model.constant("needs.scale", &[4.0]);
    let bytes = model
        .proto(1)
        .write_buf()
        .expect("a tiny reader is written");
    ReaderModel::from_bytes(&tiny_base(), &bytes).expect("the tiny reader is sound")
}

/// Constants of a file; those of weights are random, and the same in every run.
#[derive(Default)]
struct TinyFile {
    constants: Vec<TensorProto>,
    drawn: u32,
}

impl TinyFile {
    /// Random number between −1 and 1.
    fn draw(&mut self) -> f32 {
        self.drawn = self
            .drawn
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        (self.drawn >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    fn floats(&mut self, name: &str, size: usize) {
        let values: Vec<f32> = (0..size).map(|_| self.draw() / 4.0).collect();
        self.constant(name, &values);
    }

    fn constant(&mut self, name: &str, values: &[f32]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.add(name, DataType::FLOAT, &[values.len()], bytes);
    }

    fn bytes(&mut self, name: &str, dims: [usize; 2]) {
        let bytes = (0..dims[0] * dims[1]).map(|_| ((self.draw() * 100.0) as i8).cast_unsigned());
        let bytes = bytes.collect();
        self.add(name, DataType::INT8, &dims, bytes);
    }

    fn add(&mut self, name: &str, kind: DataType, dims: &[usize], bytes: Vec<u8>) {
        self.constants.push(TensorProto {
            name: Some(name.to_owned()),
            dims: dims.iter().map(|&size| size as i64).collect(),
            data_type: Some(kind),
            raw_data: Some(RefCell::new(bytes)),
            ..TensorProto::default()
        });
    }

    fn norm(&mut self, name: &str) {
        self.constant(&format!("{name}.weight"), &[1.0; WIDTH]);
        self.constant(&format!("{name}.bias"), &[0.0; WIDTH]);
    }

    fn layer(&mut self, number: usize) {
        for (part, inputs, outputs) in [
            ("attention.self", WIDTH, 3 * WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", WIDTH, WIDTH),
            ("output.dense", WIDTH, WIDTH),
        ] {
            let name = format!("encoder.layer.{number}.{part}");
            self.bytes(&format!("{name}.weight"), [inputs, outputs]);
            self.constant(&format!("{name}.scales"), &vec![0.005; outputs]);
            self.floats(&format!("{name}.bias"), outputs);
            self.constant(&format!("{name}.smoothing"), &vec![1.0; inputs]);
        }
        for part in ["attention.output", "output"] {
            self.norm(&format!("encoder.layer.{number}.{part}.LayerNorm"));
        }
    }

    fn proto(self, layers: usize) -> ModelProto {
        let layout = BertLayout {
            layers,
            heads: 4,
            epsilon: 1e-12,
        };
        let properties = layout.properties().into_iter();
        let properties = properties.map(|(key, value)| StringStringEntryProto {
            key: Some(key.to_owned()),
            value: Some(value),
        });
        ModelProto {
            graph: Some(GraphProto {
                initializer: self.constants,
                ..GraphProto::default()
            }),
            metadata_props: properties.collect(),
            ..ModelProto::default()
        }
    }
}

/// Pieces by their numbers: letters, at the beginning of words and inside them.
fn vocabulary() -> serde_json::Map<String, serde_json::Value> {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(str::to_owned);
    let letters = ('a'..='z').flat_map(|letter| [letter.to_string(), format!("##{letter}")]);
    let pieces = special.into_iter().chain(letters).enumerate();
    pieces.map(|(id, piece)| (piece, id.into())).collect()
}

fn tokenizer(vocabulary: &serde_json::Map<String, serde_json::Value>) -> serde_json::Value {
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
