//! A stand-in for the model in tests of services: words become vectors by hashing, and it can be told to be down.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors, TokenVectors};
use memfleet_domain::{Fault, FaultKind};

use crate::embedder::Embedder;

/// Components of its vectors.
const DIMENSIONS: usize = 16;

/// An embedder without a model: equal words have equal vectors.
#[derive(Debug)]
pub struct WordEmbedder {
    space: EmbeddingSpace,
    down: AtomicBool,
    texts: AtomicU32,
}

impl Default for WordEmbedder {
    fn default() -> Self {
        let space = EmbeddingSpace {
            model: "words".to_owned(),
            revision: "1".to_owned(),
            recipe: "hash".to_owned(),
            projection: "none".to_owned(),
        };
        Self {
            space,
            down: AtomicBool::new(false),
            texts: AtomicU32::new(0),
        }
    }
}

impl WordEmbedder {
    /// From now on every call fails, or works again.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// Texts embedded so far.
    pub fn texts(&self) -> u32 {
        self.texts.load(Ordering::SeqCst)
    }

    fn embed(&self, text: &str) -> Result<PassageVectors, Fault> {
        if self.down.load(Ordering::SeqCst) {
            return Err(Fault::new(
                FaultKind::Unavailable,
                "EMBEDDER_UNAVAILABLE",
                "the embedder is down",
            ));
        }
        self.texts.fetch_add(1, Ordering::SeqCst);
        let mut vectors = PassageVectors {
            sentence: vec![0; DIMENSIONS],
            tokens: TokenVectors {
                dimensions: DIMENSIONS,
                ..TokenVectors::default()
            },
        };
        for word in text
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            let piece = piece(word);
            let place = piece as usize % DIMENSIONS;
            vectors.tokens.pieces.push(piece);
            vectors
                .tokens
                .values
                .extend((0..DIMENSIONS).map(|index| if index == place { 127 } else { 0 }));
            vectors.sentence[place] = vectors.sentence[place].saturating_add(20);
        }
        Ok(vectors)
    }
}

/// FNV-1a of the word in lower case, cut to a vocabulary of 30,000.
fn piece(word: &str) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    word.to_lowercase().bytes().fold(2_166_136_261, mix) % 30_000
}

#[async_trait]
impl Embedder for WordEmbedder {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        Ok(self.space.clone())
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        texts.iter().map(|text| self.embed(text)).collect()
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.embed(&text)
    }
}
