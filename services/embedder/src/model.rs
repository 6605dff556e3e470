//! What the service drives: something that reads texts and computes the vectors of a batch.

use std::borrow::Cow;
use std::sync::Arc;

use memfleet_background::give_way;
use memfleet_domain::embedding::{PassageVectors, TokenVectors};
use memfleet_encoder::projection::Projection;
use memfleet_encoder::{Encoder, Encoding, Error, Tokens, quantise};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// Part of a text in a search, for models that embed each in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// A question.
    Query,
    /// A part of memory.
    Passage,
}

/// A model with all that makes vectors of its output. Called from several threads at once.
pub trait Model: Send + Sync {
    /// Cuts texts into word pieces; cheap beside [`Model::encode`].
    fn tokenize(&self, kind: TextKind, texts: &[&str]) -> Result<Vec<Tokens>, Error>;

    /// One answer a text, in order. Passages give way to calls that are being computed.
    fn encode(&self, kind: TextKind, batch: &[Tokens]) -> Result<Vec<PassageVectors>, Error>;
}

/// A sentence encoder whose token vectors are projected.
pub struct SentenceModel {
    /// The model, which others may share.
    pub encoder: Arc<Encoder>,
    /// Applied to every token vector.
    pub projection: Projection,
    /// Put before each query.
    pub query_prefix: String,
    /// Put before each passage.
    pub passage_prefix: String,
}

impl SentenceModel {
    fn vectors(&self, encoding: &Encoding) -> Result<PassageVectors, Error> {
        let tokens = self.projection.project_quantise(&encoding.tokens)?;
        Ok(PassageVectors {
            sentence: quantise::sentence(&encoding.sentence),
            tokens: TokenVectors {
                dimensions: usize::from(tokens.dimensions),
                pieces: tokens.pieces,
                values: tokens.values,
            },
        })
    }
}

/// A text with compatible characters in their usual form (NFKC), such as full-width letters, which
/// many vocabularies lack.
fn compatible(text: &str) -> Cow<'_, str> {
    match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        IsNormalized::No | IsNormalized::Maybe => Cow::Owned(text.nfkc().collect()),
    }
}

impl Model for SentenceModel {
    fn tokenize(&self, kind: TextKind, texts: &[&str]) -> Result<Vec<Tokens>, Error> {
        let prefix = match kind {
            TextKind::Query => &self.query_prefix,
            TextKind::Passage => &self.passage_prefix,
        };
        let texts: Vec<_> = texts.iter().map(|text| compatible(text)).collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        self.encoder.tokenize_behind(prefix, &texts)
    }

    fn encode(&self, kind: TextKind, batch: &[Tokens]) -> Result<Vec<PassageVectors>, Error> {
        let encodings = match kind {
            TextKind::Query => self.encoder.encode(batch)?,
            TextKind::Passage => self.encoder.encode_in_steps(batch, &give_way)?,
        };
        encodings
            .iter()
            .map(|encoding| self.vectors(encoding))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_width_letters_are_read_as_letters() {
        assert_eq!(compatible("ＰＲＯＪＥＣＴ　ﬁve ²"), "PROJECT five 2");
        assert!(matches!(compatible("Ada: schön, 我的猫"), Cow::Borrowed(_)));
    }
}
