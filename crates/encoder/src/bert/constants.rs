//! The constants of an ONNX file, by name.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use rten_onnx::onnx::{DataLocation, DataType, ModelProto, TensorProto};

use super::layout::BertLayout;
use super::table::{FilePart, Table};
use crate::error::Error;

/// The layout and the constants of a file that describes itself.
pub(super) struct Constants {
    path: PathBuf,
    pub(super) layout: BertLayout,
    tensors: HashMap<String, TensorProto>,
}

impl Constants {
    /// Reads a file; nothing if it does not describe itself.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |reason: String| Error::Model {
            path: path.to_owned(),
            reason,
        };
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let model = ModelProto::parse_file(file).map_err(|error| failed(error.to_string()))?;
        Self::of(path, model)
    }

    /// Reads the bytes of a file; `name` stands in errors.
    pub(super) fn of_bytes(name: &str, bytes: &[u8]) -> Result<Option<Self>, Error> {
        let model = ModelProto::parse_buf(bytes).map_err(|error| Error::Model {
            path: name.into(),
            reason: error.to_string(),
        })?;
        Self::of(Path::new(name), model)
    }

    fn of(path: &Path, model: ModelProto) -> Result<Option<Self>, Error> {
        let properties = model.metadata_props.into_iter();
        let properties = properties.filter_map(|entry| Some((entry.key?, entry.value?)));
        let properties: HashMap<_, _> = properties.collect();
        let Some(layout) = BertLayout::read(&properties) else {
            return Ok(None);
        };
        let layout = layout.map_err(|name| unfit(path, name))?;
        let tensors = model.graph.unwrap_or_default().initializer;
        let named = tensors
            .into_iter()
            .filter_map(|tensor| Some((tensor.name.clone()?, tensor)));
        Ok(Some(Self {
            path: path.to_owned(),
            layout,
            tensors: named.collect(),
        }))
    }

    /// The rest of the constants, those of floats, by name.
    pub(super) fn remaining_floats(self) -> HashMap<String, Vec<f32>> {
        let floats = self.tensors.into_iter();
        let floats = floats.filter(|(_, tensor)| tensor.data_type == Some(DataType::FLOAT));
        floats
            .map(|(name, tensor)| (name, of_bytes(&raw(tensor))))
            .collect()
    }

    /// A constant of floats.
    pub(super) fn floats(&mut self, name: &str) -> Result<Vec<f32>, Error> {
        let (bytes, _) = self.take(name, DataType::FLOAT)?;
        Ok(of_bytes(&bytes))
    }

    /// A constant of signed bytes in rows of this width, which may lie in a file beside the model.
    pub(super) fn table(&mut self, name: &str, width: usize) -> Result<Table, Error> {
        let tensor = self.tensor(name, DataType::INT8)?;
        let table = if tensor.data_location == Some(DataLocation::EXTERNAL) {
            Table::of_file(self.beside(&tensor)?, width)
        } else {
            Table::of_bytes(raw(tensor), width)
        };
        table.ok_or_else(|| self.unfit(&format!("size of {name}")))
    }

    /// The part of a file in the model's folder that a constant's description names.
    fn beside(&self, tensor: &TensorProto) -> Result<FilePart, Error> {
        let value = |key: &str| {
            let mut entries = tensor.external_data.iter();
            let entry = entries.find(|entry| entry.key.as_deref() == Some(key))?;
            entry.value.as_deref()
        };
        let name = value("location").map(Path::new);
        let name = name.filter(|name| name.file_name() == Some(name.as_os_str()));
        let number = |key: &str| value(key)?.parse::<u64>().ok();
        let (Some(name), Some(offset), Some(length)) = (name, number("offset"), number("length"))
        else {
            return Err(self.unfit("the place of a constant"));
        };
        let part = FilePart::open(&self.path.with_file_name(name), offset, length);
        part.map_err(|reason| Error::Model {
            path: self.path.clone(),
            reason: format!("{reason}; pull the model again"),
        })
    }

    /// A matrix of signed bytes and its shape.
    pub(super) fn matrix(&mut self, name: &str) -> Result<(Vec<i8>, [usize; 2]), Error> {
        let (bytes, dims) = self.take(name, DataType::INT8)?;
        let shape: Option<[usize; 2]> = dims.try_into().ok();
        let shape = shape.filter(|[rows, columns]| rows * columns == bytes.len());
        let shape = shape.ok_or_else(|| self.unfit(&format!("shape of {name}")))?;
        Ok((bytes.into_iter().map(u8::cast_signed).collect(), shape))
    }

    fn take(&mut self, name: &str, kind: DataType) -> Result<(Vec<u8>, Vec<usize>), Error> {
        let tensor = self.tensor(name, kind)?;
        let dims = tensor.dims.iter().map(|&size| size as usize).collect();
        Ok((raw(tensor), dims))
    }

    fn tensor(&mut self, name: &str, kind: DataType) -> Result<TensorProto, Error> {
        let tensor = self.tensors.remove(name);
        let tensor = tensor.filter(|tensor| tensor.data_type == Some(kind));
        tensor.ok_or_else(|| self.unfit(&format!("constant {name}")))
    }

    /// The error that says what is missing or of another size.
    pub(super) fn unfit(&self, what: &str) -> Error {
        unfit(&self.path, what)
    }
}

fn raw(tensor: TensorProto) -> Vec<u8> {
    let bytes = tensor.raw_data.map(std::cell::RefCell::into_inner);
    bytes.unwrap_or_default()
}

fn of_bytes(bytes: &[u8]) -> Vec<f32> {
    let (floats, _) = bytes.as_chunks();
    floats.iter().map(|&x| f32::from_le_bytes(x)).collect()
}

fn unfit(path: &Path, what: &str) -> Error {
    Error::Model {
        path: path.to_owned(),
        reason: format!("{what} is not as its exporter writes it; pull the model again"),
    }
}
