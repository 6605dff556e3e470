//! A small builder of ONNX graphs: nodes are added in order, each gives the name of its output.

use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataLocation, DataType, Dimension, GraphProto, ModelProto,
    NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto,
    TypeProto, TypeProtoTensor, ValueInfoProto,
};

use super::Error;

/// ONNX file format version that came with operator set 18.
const IR_VERSION: i64 = 8;
const OPERATOR_SET: i64 = 18;
/// Operators of ONNX Runtime beyond the standard; rten runs the ones used here.
const EXTENSIONS: &str = "com.microsoft";

/// A graph under construction.
#[derive(Default)]
pub(super) struct Graph {
    proto: GraphProto,
    properties: Vec<StringStringEntryProto>,
    /// Constants that go into a file beside the model, and their bytes.
    beside: Vec<(String, Vec<u8>)>,
    count: usize,
}

/// An attribute of a node.
pub(super) enum Attribute {
    Integer(&'static str, i64),
    Float(&'static str, f32),
}

impl Graph {
    /// Declares an input of 64-bit integers.
    pub(super) fn input(&mut self, name: &str, axes: &[&str]) -> String {
        let axes = axes.iter().map(|axis| symbolic(axis)).collect();
        self.proto
            .input
            .push(value_info(name, DataType::INT64, axes));
        name.to_owned()
    }

    /// Declares an output of floats; an axis is a name or a number.
    pub(super) fn output(&mut self, name: &str, source: &str, axes: &[&str]) {
        let axes = axes.iter().map(|axis| symbolic(axis)).collect();
        self.proto
            .output
            .push(value_info(name, DataType::FLOAT, axes));
        self.push("Identity", None, &[source], vec![name.to_owned()], &[]);
    }

    /// Adds a node of the standard set.
    pub(super) fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[Attribute],
    ) -> String {
        let output = self.name(operator);
        self.push(operator, None, inputs, vec![output.clone()], attributes);
        output
    }

    /// Adds a node of the extension set.
    pub(super) fn extension(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[Attribute],
    ) -> String {
        let output = self.name(operator);
        self.push(
            operator,
            Some(EXTENSIONS),
            inputs,
            vec![output.clone()],
            attributes,
        );
        output
    }

    /// Adds a conversion to another element type.
    pub(super) fn cast(&mut self, input: &str, to: DataType) -> String {
        self.node(
            "Cast",
            &[input],
            &[Attribute::Integer("to", i64::from(to.0))],
        )
    }

    /// Adds a constant of floats.
    pub(super) fn floats(&mut self, dims: &[usize], values: &[f32]) -> String {
        let name = self.name("constant");
        self.named_floats(&name, dims, values)
    }

    /// Adds a constant of floats that readers find by its name.
    pub(super) fn named_floats(&mut self, name: &str, dims: &[usize], values: &[f32]) -> String {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(name, DataType::FLOAT, dims, bytes)
    }

    /// Adds a constant of signed bytes that readers find by its name.
    pub(super) fn named_bytes(&mut self, name: &str, dims: &[usize], values: &[i8]) -> String {
        let bytes = values.iter().map(|x| x.cast_unsigned()).collect();
        self.constant(name, DataType::INT8, dims, bytes)
    }

    /// Adds a constant of signed bytes that lies in a file beside the model, see [`data_file`].
    pub(super) fn bytes_beside(&mut self, name: &str, dims: &[usize], values: &[i8]) -> String {
        let bytes = values.iter().map(|x| x.cast_unsigned()).collect();
        self.beside.push((name.to_owned(), bytes));
        self.constant(name, DataType::INT8, dims, Vec::new())
    }

    /// Adds a constant scalar of a signed byte.
    pub(super) fn signed_byte(&mut self, value: i8) -> String {
        let name = self.name("constant");
        self.constant(&name, DataType::INT8, &[], vec![value.cast_unsigned()])
    }

    /// Adds a constant scalar of an unsigned byte.
    pub(super) fn unsigned_byte(&mut self, value: u8) -> String {
        let name = self.name("constant");
        self.constant(&name, DataType::UINT8, &[], vec![value])
    }

    /// Adds a constant list of 64-bit integers.
    pub(super) fn integers(&mut self, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let name = self.name("constant");
        self.constant(&name, DataType::INT64, &[values.len()], bytes)
    }

    fn constant(
        &mut self,
        name: &str,
        data_type: DataType,
        dims: &[usize],
        bytes: Vec<u8>,
    ) -> String {
        self.proto.initializer.push(TensorProto {
            name: Some(name.to_owned()),
            dims: dims.iter().map(|&size| size as i64).collect(),
            data_type: Some(data_type),
            raw_data: Some(RefCell::new(bytes)),
            ..TensorProto::default()
        });
        name.to_owned()
    }

    /// Says something about the model, for readers that look at more than the graph.
    pub(super) fn describe(&mut self, name: &str, value: String) {
        self.properties.push(entry(name, value));
    }

    fn name(&mut self, stem: &str) -> String {
        self.count += 1;
        format!("{stem}_{}", self.count)
    }

    fn push(
        &mut self,
        operator: &str,
        domain: Option<&str>,
        inputs: &[&str],
        output: Vec<String>,
        attributes: &[Attribute],
    ) {
        self.proto.node.push(NodeProto {
            domain: domain.map(str::to_owned),
            name: Some(output[0].clone()),
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output,
            op_type: Some(operator.to_owned()),
            attribute: attributes.iter().map(Attribute::proto).collect(),
        });
    }

    /// Writes the model file, and the one beside it if a constant lies there.
    pub(super) fn write(mut self, path: &Path) -> Result<(), Error> {
        self.write_beside(path)?;
        let failed = |reason: String| Error::Write {
            path: path.to_owned(),
            reason,
        };
        let model = ModelProto {
            ir_version: Some(IR_VERSION),
            producer_name: Some("memfleet".to_owned()),
            graph: Some(self.proto),
            metadata_props: self.properties,
            opset_import: vec![operator_set("", OPERATOR_SET), operator_set(EXTENSIONS, 1)],
            ..ModelProto::default()
        };
        let file = File::create(path).map_err(|error| failed(error.to_string()))?;
        model
            .write_file(file)
            .map_err(|error| failed(error.to_string()))
    }

    /// Writes the constants that lie beside the model, one after the other, and notes where.
    fn write_beside(&mut self, path: &Path) -> Result<(), Error> {
        let path = data_file(path);
        let location = path.file_name().unwrap_or_default().to_string_lossy();
        let mut all = Vec::new();
        for (name, bytes) in std::mem::take(&mut self.beside) {
            let mut constants = self.proto.initializer.iter_mut();
            let constant = constants.find(|constant| constant.name.as_ref() == Some(&name));
            let constant = constant.expect("it was added with its bytes");
            constant.raw_data = None;
            constant.data_location = Some(DataLocation::EXTERNAL);
            constant.external_data = vec![
                entry("location", location.to_string()),
                entry("offset", all.len().to_string()),
                entry("length", bytes.len().to_string()),
            ];
            all.extend(bytes);
        }
        if all.is_empty() {
            return Ok(());
        }
        fs::write(&path, all).map_err(|error| Error::Write {
            path,
            reason: error.to_string(),
        })
    }
}

/// The file with the constants that lie beside a model, named as other exporters name it.
fn data_file(model: &Path) -> PathBuf {
    let mut path = model.as_os_str().to_owned();
    path.push(".data");
    path.into()
}

fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value),
    }
}

impl Attribute {
    fn proto(&self) -> AttributeProto {
        let (name, i, f, kind) = match *self {
            Self::Integer(name, value) => (name, Some(value), None, AttributeType::INT),
            Self::Float(name, value) => (name, None, Some(value), AttributeType::FLOAT),
        };
        AttributeProto {
            name: Some(name.to_owned()),
            i,
            f,
            r#type: Some(kind),
            ..AttributeProto::default()
        }
    }
}

fn symbolic(axis: &str) -> Dimension {
    match axis.parse() {
        Ok(size) => Dimension {
            dim_value: Some(size),
            dim_param: None,
        },
        Err(_) => Dimension {
            dim_value: None,
            dim_param: Some(axis.to_owned()),
        },
    }
}

fn value_info(name: &str, elem_type: DataType, dim: Vec<Dimension>) -> ValueInfoProto {
    let tensor = TypeProtoTensor {
        elem_type: Some(elem_type),
        shape: Some(TensorShapeProto { dim }),
    };
    let r#type = TypeProto {
        tensor_type: Some(tensor),
        ..TypeProto::default()
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(r#type),
    }
}

fn operator_set(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto {
        domain: Some(domain.to_owned()),
        version: Some(version),
    }
}
