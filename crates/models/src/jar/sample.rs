//! Tiny jars, as tests need them.

use std::cell::RefCell;
use std::io::{Cursor, Write};

use rten_onnx::onnx::{DataType, GraphProto, ModelProto, NodeProto, TensorProto};
use safetensors::SafeTensors;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::turned;

/// The weights of a checkpoint as PyTorch writes them into a graph.
pub(crate) fn graph(checkpoint: &[u8]) -> GraphProto {
    let mut graph = GraphProto::default();
    let tensors = SafeTensors::deserialize(checkpoint).unwrap();
    for (at, (name, tensor)) in tensors.iter().enumerate() {
        let is_table = name.starts_with("embeddings.");
        match (name.strip_suffix(".weight"), tensor.shape()) {
            (Some(layer), &[outputs, inputs]) if !is_table => {
                let weight = format!("onnx::MatMul_{at}");
                let matrix = turned(tensor.data(), inputs);
                graph
                    .initializer
                    .push(constant(&weight, &[inputs, outputs], matrix));
                graph.node.extend(linear(layer, &weight));
            }
            (_, shape) => {
                let constant = constant(name, shape, tensor.data().to_vec());
                graph.initializer.push(constant);
            }
        }
    }
    graph
}

/// A constant of floats.
pub(crate) fn constant(name: &str, shape: &[usize], bytes: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: shape.iter().map(|&size| size as i64).collect(),
        data_type: Some(DataType::FLOAT),
        raw_data: Some(RefCell::new(bytes)),
        ..TensorProto::default()
    }
}

/// The product and the sum of a linear layer.
pub(crate) fn linear(layer: &str, weight: &str) -> [NodeProto; 2] {
    let node = |operator: &str, input: [&str; 2]| NodeProto {
        op_type: Some(operator.to_owned()),
        input: input.map(str::to_owned).to_vec(),
        output: vec![format!("/{layer}/{operator}")],
        ..NodeProto::default()
    };
    let product = node("MatMul", ["input", weight]);
    let sum = node("Add", [&format!("{layer}.bias"), &product.output[0]]);
    [product, sum]
}

/// An archive with a graph, `tiny.onnx`, and a tokenizer, `tiny-tokenizer.json`.
pub(crate) fn jar(graph: GraphProto, tokenizer: &[u8]) -> Vec<u8> {
    let model = ModelProto {
        graph: Some(graph),
        ..ModelProto::default()
    };
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [
        ("tiny.onnx", &*model.write_buf().unwrap()),
        ("tiny-tokenizer.json", tokenizer),
    ] {
        let options = SimpleFileOptions::default();
        archive.start_file(name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
