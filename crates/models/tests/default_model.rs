//! The default model as it lies on disk: what it computes, on its own and in batches.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use anyhow::Result;
use memfleet_encoder::{Encoder, Encoding, ModelFiles, Tokens};
use memfleet_models::testing::default_model;
use memfleet_models::verify;
use rten_onnx::onnx::ModelProto;

const TEXTS: [&str; 5] = [
    "Lena: did the plumber come by in the end?",
    "Yes.",
    "We spent the whole afternoon sorting old photographs, and half of them are from a trip that nobody remembers.",
    "",
    "日曜日に市場へ行きます。",
];

fn encoder(threads: usize) -> Result<Encoder> {
    Ok(default_model().load(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN))?)
}

fn encode(encoder: &Encoder, texts: &[&str]) -> Result<Vec<Encoding>> {
    Ok(encoder.encode(&encoder.tokenize(texts)?)?)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[test]
fn it_is_intact_and_near_the_full_precision_model() -> Result<()> {
    let verification = verify(&default_model())?;
    assert!(verification.mean_cosine > 0.995, "{verification:?}");
    Ok(())
}

#[test]
fn a_text_has_the_same_vectors_alone_and_in_any_batch() -> Result<()> {
    let encoder = encoder(2)?;
    let together = encode(&encoder, &TEXTS)?;
    for (text, batched) in TEXTS.iter().zip(together) {
        let alone = encode(&encoder, &[text])?.remove(0);
        assert_eq!(alone.tokens.pieces, batched.tokens.pieces);
        let pairs = alone.sentence.iter().zip(&batched.sentence);
        let pairs = pairs.chain(alone.tokens.values.iter().zip(&batched.tokens.values));
        let worst = pairs.map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-3, "{text}: {worst}");
    }
    Ok(())
}

#[test]
fn all_vectors_have_length_one_and_an_empty_text_has_no_tokens() -> Result<()> {
    let encodings = encode(&encoder(1)?, &TEXTS)?;
    for encoding in &encodings {
        let rows = encoding.tokens.rows().chain([encoding.sentence.as_slice()]);
        assert!(
            rows.into_iter()
                .all(|row| (dot(row, row) - 1.0).abs() < 1e-4)
        );
    }
    assert!(encodings[3].tokens.is_empty());
    assert!(encode(&encoder(1)?, &[])?.is_empty());
    Ok(())
}

#[test]
fn a_long_text_is_cut_to_the_models_maximum() -> Result<()> {
    let tokens = encoder(1)?.tokenize(&["word ".repeat(2000).as_str()])?;
    assert_eq!((tokens[0].len(), tokens[0].pieces().len()), (256, 254));
    Ok(())
}

#[test]
fn related_texts_are_nearer_than_unrelated_ones() -> Result<()> {
    let texts = [
        "Where did Omar adopt his cat?",
        "Omar got a kitten from the shelter in Porto.",
        "The tax form is due on Friday.",
    ];
    let [question, answer, other] = encode(&encoder(1)?, &texts)?
        .try_into()
        .expect("three texts");
    let near = dot(&question.sentence, &answer.sentence);
    assert!(
        near > dot(&question.sentence, &other.sentence) + 0.3,
        "{near}"
    );
    Ok(())
}

#[test]
fn several_threads_share_one_encoder() -> Result<()> {
    let encoder = encoder(2)?;
    let expected = encode(&encoder, &TEXTS)?;
    thread::scope(|scope| {
        let others: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| encode(&encoder, &TEXTS)))
            .collect();
        for other in others {
            assert_eq!(other.join().expect("no panic")?, expected);
        }
        Ok(())
    })
}

/// The same file without what it says about itself, which makes the encoder run it as a graph.
fn as_graph(folder: &Path) -> Result<Encoder> {
    let model = default_model();
    let mut proto = ModelProto::parse_file(File::open(model.path().join("model.onnx"))?)?;
    proto.metadata_props.clear();
    let path = folder.join("graph.onnx");
    proto.write_file(File::create(&path)?)?;
    let data = model.path().join("model.onnx.data");
    if data.exists() {
        fs::copy(&data, folder.join("model.onnx.data"))?;
    }
    let files = ModelFiles {
        model: path,
        tokenizer: model.path().join("tokenizer.json"),
    };
    let spec = encoder(1)?.spec();
    Ok(Encoder::open(&files, spec, NonZeroUsize::MIN)?)
}

#[test]
fn the_fused_loop_computes_what_the_graph_computes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (fused, graph) = (
        encode(&encoder(1)?, &TEXTS)?,
        encode(&as_graph(folder.path())?, &TEXTS)?,
    );
    for ((text, fused), graph) in TEXTS.iter().zip(fused).zip(graph) {
        assert_eq!(fused.tokens.pieces, graph.tokens.pieces);
        let sentence = dot(&fused.sentence, &graph.sentence);
        assert!(sentence > 0.999, "{text}: {sentence}");
        for (ours, theirs) in fused.tokens.rows().zip(graph.tokens.rows()) {
            assert!(dot(ours, theirs) > 0.99, "{text}");
        }
    }
    Ok(())
}

#[test]
fn a_text_in_a_script_that_the_vocabulary_lacks_is_mostly_unknown() -> Result<()> {
    let encoder = encoder(1)?;
    let tokens = encoder.tokenize(&[
        "密码藏在保险柜后面。",
        "The code is behind the safe.",
        "🎉 ok",
    ])?;
    let are_unknown: Vec<bool> = tokens.iter().map(Tokens::are_mostly_unknown).collect();
    assert_eq!(are_unknown, [true, false, false]);
    let encodings = encoder.encode(&tokens)?;
    let unknown = encoder.tokenize(&["码"])?[0].pieces()[0];
    assert!(!encodings[0].tokens.pieces.contains(&unknown));
    Ok(())
}
