//! Texts to embed, and their vectors.

use std::sync::Arc;

use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, TokenVectors};
use memfleet_ports::memory::RecallRequest;
use memfleet_ports::retriever::{Embedded, Query};

use super::{Checked, Fields};
use crate::proto::internal::{EmbedRequest, EmbedResponse, EmbeddedRequest, Purpose, Vectors};
use crate::{limits, proto};

/// A question to an embedder.
pub struct EmbedQuestion {
    /// The texts.
    pub texts: Vec<String>,
    /// The lane.
    pub purpose: Purpose,
    /// Where the vectors are to live; absent: in that of the default model.
    pub space: Option<EmbeddingSpace>,
    /// A model whose embedding space is asked for.
    pub model: Option<String>,
}

impl Checked for EmbedRequest {
    type Value = EmbedQuestion;

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let purpose = match Purpose::try_from(self.purpose) {
            Ok(Purpose::Unspecified) | Err(_) => fields.refuse("purpose", "must be set"),
            Ok(purpose) => Some(purpose),
        };
        let texts = fields.each(
            "texts",
            self.texts,
            limits::EMBEDDED_TEXTS,
            |fields, text| fields.text("", text, limits::TEXT),
        );
        let space = self.embedding_space.and_then(|space| space.check(fields));
        let model = fields.text("model", self.model, MODEL_NAME);
        Some(EmbedQuestion {
            texts: texts?,
            purpose: purpose?,
            space,
            model: model.filter(|model| !model.is_empty()),
        })
    }
}

/// Bytes of a model's name.
const MODEL_NAME: usize = 256;

impl From<(EmbeddingSpace, Vec<PassageVectors>)> for EmbedResponse {
    fn from((space, vectors): (EmbeddingSpace, Vec<PassageVectors>)) -> Self {
        Self {
            embedding_space: Some(space.into()),
            vectors: vectors.into_iter().map(Into::into).collect(),
            is_default: false,
        }
    }
}

impl Checked for EmbedResponse {
    type Value = (EmbeddingSpace, Vec<PassageVectors>);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.message("embedding_space", self.embedding_space);
        let vectors = fields.messages("vectors", self.vectors, usize::MAX);
        Some((space?, vectors?))
    }
}

impl EmbeddedRequest {
    /// A search with the vectors of its query.
    pub(crate) fn new(request: proto::RecallRequest, embedded: Embedded) -> Self {
        Self {
            request: Some(request),
            text: embedded.text,
            embedding_space: Some(embedded.space.into()),
            vectors: Some(embedded.vectors.into()),
        }
    }
}

impl Checked for EmbeddedRequest {
    type Value = RecallRequest;

    fn check(self, fields: &mut Fields) -> Option<RecallRequest> {
        let request = fields.message("request", self.request);
        let text = fields.text("text", self.text, limits::QUERY);
        let space = fields.message("embedding_space", self.embedding_space);
        let vectors = fields.message("vectors", self.vectors);
        let request = request?;
        let embedded = Embedded {
            text: text?,
            space: space?,
            vectors: vectors?,
        };
        Some(RecallRequest {
            query: Query {
                vectors: Some(Arc::new(embedded)),
                ..request.query
            },
            ..request
        })
    }
}

impl From<PassageVectors> for Vectors {
    fn from(vectors: PassageVectors) -> Self {
        Self {
            sentence: bytes(&vectors.sentence),
            dimensions: vectors.tokens.dimensions as u32,
            tokens: bytes(&vectors.tokens.values),
            pieces: vectors.tokens.pieces,
        }
    }
}

impl Checked for Vectors {
    type Value = PassageVectors;

    fn check(self, fields: &mut Fields) -> Option<PassageVectors> {
        let expected = self.pieces.len() * self.dimensions as usize;
        if self.tokens.len() != expected {
            let problem = format!("has {} components instead of {expected}", self.tokens.len());
            return fields.refuse("tokens", problem);
        }
        Some(PassageVectors {
            sentence: components(&self.sentence),
            tokens: TokenVectors {
                dimensions: self.dimensions as usize,
                values: components(&self.tokens),
                pieces: self.pieces,
            },
        })
    }
}

fn bytes(components: &[i8]) -> Vec<u8> {
    components
        .iter()
        .map(|value| value.cast_unsigned())
        .collect()
}

fn components(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|value| value.cast_signed()).collect()
}
