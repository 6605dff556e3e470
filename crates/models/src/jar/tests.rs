//! Tiny jars, unpacked and damaged.

use safetensors::SafeTensors;

use super::sample::{constant, jar, linear};
use super::*;
use crate::build::WEIGHTS;
use crate::registry::SourceFile;

fn source() -> MavenSource {
    MavenSource {
        group: "org.example".to_owned(),
        artifact: "tiny".to_owned(),
        version: "1.0".to_owned(),
        jar: SourceFile {
            name: "tiny-1.0.jar".to_owned(),
            bytes: 0,
            sha256: String::new(),
        },
        graph: "tiny.onnx".to_owned(),
        tokenizer: "tiny-tokenizer.json".to_owned(),
        configuration: "{}".to_owned(),
    }
}

/// Unpacks an archive; gives the checkpoint.
fn unpacked(archive: &[u8]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny-1.0.jar");
    fs::write(&path, archive).unwrap();
    unpack(&source(), &path, folder.path()).map_err(|error| error.to_string())?;
    assert_eq!(fs::read(folder.path().join(CONFIGURATION)).unwrap(), b"{}");
    assert_eq!(fs::read(folder.path().join(TOKENIZER)).unwrap(), b"[]");
    Ok(fs::read(folder.path().join(WEIGHTS)).unwrap())
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats
        .iter()
        .flat_map(|float| float.to_le_bytes())
        .collect()
}

/// A linear layer of two inputs and three outputs.
fn graph() -> GraphProto {
    GraphProto {
        node: linear("layer", "onnx::MatMul_7").to_vec(),
        initializer: vec![
            constant("layer.bias", &[3], bytes(&[0.1, 0.2, 0.3])),
            constant(
                "onnx::MatMul_7",
                &[2, 3],
                bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            ),
        ],
        ..GraphProto::default()
    }
}

#[test]
fn the_weight_of_a_linear_layer_is_turned_and_has_the_name_of_its_bias() {
    let checkpoint = unpacked(&jar(graph(), b"[]")).unwrap();
    let tensors = SafeTensors::deserialize(&checkpoint).unwrap();
    let weight = tensors.tensor("layer.weight").unwrap();
    assert_eq!(weight.shape(), [3, 2]);
    assert_eq!(weight.data(), bytes(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    let bias = tensors.tensor("layer.bias").unwrap();
    assert_eq!(bias.data(), bytes(&[0.1, 0.2, 0.3]));
}

#[test]
fn constants_that_are_no_floats_are_left_out() {
    let mut graph = graph();
    let mut places = constant("embeddings.position_ids", &[1], vec![0; 8]);
    places.data_type = Some(DataType::INT64);
    graph.initializer.push(places);
    let checkpoint = unpacked(&jar(graph, b"[]")).unwrap();
    let tensors = SafeTensors::deserialize(&checkpoint).unwrap();
    assert_eq!(tensors.names().len(), 2);
}

#[test]
fn a_constant_of_another_size_than_its_shape_is_refused() {
    for dims in [
        vec![2, 4],
        vec![-2, 3],
        vec![i64::MAX, 3],
        vec![0, 5],
        vec![],
    ] {
        let mut graph = graph();
        graph.initializer[1].dims.clone_from(&dims);
        let reason = unpacked(&jar(graph, b"[]")).unwrap_err();
        let expected = format!("tiny.onnx: onnx::MatMul_7 of {dims:?} floats has 24 bytes");
        assert!(reason.contains(&expected), "{reason}");
    }
}

#[test]
fn an_empty_matrix_is_an_empty_weight() {
    let mut graph = graph();
    graph.initializer[1] = constant("onnx::MatMul_7", &[0, 5], Vec::new());
    assert!(unpacked(&jar(graph, b"[]")).is_ok());
}

#[test]
fn an_archive_that_lacks_a_file_or_is_none_is_refused() {
    let whole = jar(graph(), b"[]");
    let reason = unpacked(&whole[..whole.len() - 30]).unwrap_err();
    assert!(
        reason.contains("tiny-1.0.jar is damaged: tiny-tokenizer.json: "),
        "{reason}"
    );
    let empty = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let reason = unpacked(&empty.finish().unwrap().into_inner()).unwrap_err();
    assert!(reason.contains("tiny-tokenizer.json: "), "{reason}");
}
