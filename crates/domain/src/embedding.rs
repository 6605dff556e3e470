//! Vectors and the space they live in. Vectors of two embedding spaces never meet: each is stored with the name of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What must be equal for two vectors to be comparable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct EmbeddingSpace {
    /// Name of the model, for example `all-MiniLM-L6-v2`.
    pub model: String,
    /// Revision of the model's weights.
    pub revision: String,
    /// How text becomes input and output becomes vectors (prefixes, pooling, quantisation), for example `int8-1`.
    pub recipe: String,
    /// Name of the projection of token vectors, for example `pca64-1`.
    pub projection: String,
}

impl fmt::Display for EmbeddingSpace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}@{}/{}/{}",
            self.model, self.revision, self.recipe, self.projection
        )
    }
}

/// The embedding spaces that a memory space has vectors in: never more than two.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldEmbeddings {
    /// The one that searches use. Absent where nothing was embedded yet.
    pub served: Option<EmbeddingSpace>,
    /// The one that is built beside it, or that it took the place of.
    pub other: Option<OtherEmbedding>,
}

/// An embedding space of a memory space that searches do not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherEmbedding {
    /// The embedding space.
    pub space: EmbeddingSpace,
    /// True once every turn had vectors in it; what is stored later follows within seconds.
    pub is_whole: bool,
}

impl HeldEmbeddings {
    /// Embedding spaces that a search may use, the served one first.
    pub fn whole(&self) -> impl Iterator<Item = &EmbeddingSpace> {
        let other = self.other.as_ref().filter(|other| other.is_whole);
        self.served.iter().chain(other.map(|other| &other.space))
    }
}

/// Token vectors of one text: one row of `dimensions` components a word piece, without the model's own marker tokens.
/// A component is the projected component of the unit vector × 200, rounded, clipped at ±127.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenVectors {
    /// Components a row.
    pub dimensions: usize,
    /// The model's id of each word piece, in reading order.
    pub pieces: Vec<u32>,
    /// `pieces.len() * dimensions` components, row by row.
    pub values: Vec<i8>,
}

impl TokenVectors {
    /// One row a word piece.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[i8]> {
        self.values.chunks_exact(self.dimensions.max(1))
    }
}

/// What is stored for one passage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PassageVectors {
    /// The mean over all tokens, length 1, × 127, rounded.
    pub sentence: Vec<i8>,
    /// One vector a word piece.
    pub tokens: TokenVectors,
}

/// Vectors of a query, in the shapes of [`PassageVectors`]. Both parts are empty for a query whose
/// words the model's vocabulary mostly lacks.
pub type QueryVectors = PassageVectors;
