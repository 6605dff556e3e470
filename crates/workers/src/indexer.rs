//! From a derived text to what it is found by.

use std::sync::Arc;

use memfleet_domain::embedding::EmbeddingSpace;
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

    /// One passage a text, with vectors of the space's served embedding space: what cannot be
    /// embedded now is derived later, as nobody waits for it.
    pub async fn passages(
        &self,
        scope: &Scope,
        texts: Vec<String>,
        language: Language,
    ) -> Result<Vec<Passage>, Fault> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let analyzer = Analyzer::new(language);
        let passages: Vec<_> = texts.iter().map(|text| derived(text, &analyzer)).collect();
        let embedding = served_embedding(&*self.spaces, &*self.embedder, scope).await?;
        let vectors = self.embedder.embed_passages_in(&embedding, texts).await?;
        let embedding = Arc::new(embedding);
        let pairs = passages.into_iter().zip(vectors);
        let passages = pairs.map(|(passage, vectors)| Passage {
            vectors: Some(vectors),
            embedding_space: Some(embedding.clone()),
            ..passage
        });
        Ok(passages.collect())
    }
}

/// The embedding space that new vectors of a space are made in: the served one, or that of the
/// embedder where it has none.
pub async fn served_embedding(
    spaces: &dyn SpaceCatalog,
    embedder: &dyn Embedder,
    scope: &Scope,
) -> Result<EmbeddingSpace, Fault> {
    match spaces.embeddings(scope).await?.served {
        Some(served) => Ok(served),
        None => embedder.space().await,
    }
}
