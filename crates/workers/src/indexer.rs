//! From a derived text to what it is found by.

use std::sync::Arc;

use memfleet_domain::{Fault, Scope};
use memfleet_language::{Analyzer, Language};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::ledger::Passage;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_retrieval::document::derived;

/// Makes passages of derived texts.
#[derive(Clone)]
pub struct Indexer {
    /// What language a space is in.
    pub spaces: Arc<dyn SpaceCatalog>,
    /// Text to vectors.
    pub embedder: Arc<dyn Embedder>,
}

impl Indexer {
    /// The language that a space's texts are analysed in.
    pub async fn language(&self, scope: &Scope) -> Result<Language, Fault> {
        let locale = self.spaces.locale(scope).await?.unwrap_or_default();
        Ok(Language::tagged(locale.language.as_deref()))
    }

    /// One passage a text, with vectors: what cannot be embedded now is derived later, as nobody waits for it.
    pub async fn passages(
        &self,
        texts: Vec<String>,
        language: Language,
    ) -> Result<Vec<Passage>, Fault> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let analyzer = Analyzer::new(language);
        let passages: Vec<_> = texts.iter().map(|text| derived(text, &analyzer)).collect();
        let vectors = self.embedder.embed_passages(texts).await?;
        let pairs = passages.into_iter().zip(vectors);
        let passages = pairs.map(|(passage, vectors)| Passage {
            vectors: Some(vectors),
            ..passage
        });
        Ok(passages.collect())
    }
}
