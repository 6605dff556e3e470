//! A stand-in for an embedding model that tells texts apart by their subject.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors, TokenVectors};
use memfleet_domain::{Fault, FaultKind};

use super::piece;
use crate::embedder::Embedder;

/// Words of each subject.
const SUBJECTS: [&[&str]; 4] = [
    &["asthma", "insulin", "ill"],
    &["hamster", "parrot"],
    &["salary", "loan"],
    &["oslo", "bergen"],
];

/// Components for words without a subject.
const OTHER_WORDS: usize = 28;

/// An embedder without a model. Texts are near that have words of one subject: illness ("asthma",
/// "insulin", "ill"), pets ("hamster", "parrot"), money ("salary", "loan") or towns ("oslo",
/// "bergen"). Its token vectors are empty.
#[derive(Debug, Default)]
pub struct SubjectEmbedder {
    down: AtomicBool,
    texts: AtomicU32,
}

impl SubjectEmbedder {
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
            let message = "the embedder is down";
            let kind = FaultKind::Unavailable;
            return Err(Fault::new(kind, "EMBEDDER_UNAVAILABLE", message));
        }
        self.texts.fetch_add(1, Ordering::SeqCst);
        let mut sentence = vec![0_i8; SUBJECTS.len() + OTHER_WORDS];
        let words = text.split(|character: char| !character.is_alphanumeric());
        for word in words.filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            let subject = SUBJECTS.iter().position(|it| it.contains(&&*word));
            let place = SUBJECTS.len() + piece(&word) as usize % OTHER_WORDS;
            match subject {
                Some(subject) => sentence[subject] = 100,
                None => sentence[place] = sentence[place].saturating_add(10),
            }
        }
        Ok(PassageVectors {
            sentence,
            tokens: TokenVectors::default(),
        })
    }
}

#[async_trait]
impl Embedder for SubjectEmbedder {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        Ok(EmbeddingSpace {
            model: "subjects".to_owned(),
            ..EmbeddingSpace::default()
        })
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        texts.iter().map(|text| self.embed(text)).collect()
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.embed(&text)
    }
}
