//! Scores of statements for topics, by the embedding model.

use std::sync::Arc;

use memfleet_domain::Fault;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::topic::Topic;
use memfleet_ports::embedder::Embedder;
use quick_cache::sync::Cache;

use super::boundary::{EverydayVectors, TopicBoundary};

/// Everyday sentences in 15 languages that belong to no topic, one a line behind its language.
const EVERYDAY: &str = include_str!("../../data/everyday.txt");

/// Sentences in other languages than English: the model that reads them best reads topics.
const FOREIGN: [&str; 4] = [
    "Ich habe am Wochenende das Regal aufgebaut.",
    "Вчера мы весь вечер играли в шахматы.",
    "昨天晚上我们看了一部老电影。",
    "نسيت المظلة في الحافلة.",
];

/// Texts that are embedded together.
const BATCH: usize = 64;

/// Models whose everyday sentences are kept.
const KEPT_MODELS: usize = 4;

/// Topics whose boundaries are kept; each with its texts is 13 KB at most.
const KEPT_TOPICS: usize = 1_000;

/// Embedding space and content of a topic.
#[derive(Clone, PartialEq, Eq, Hash)]
struct BoundaryKey {
    embedding: EmbeddingSpace,
    description: String,
    examples: Vec<String>,
}

/// Reads topics and statements.
pub struct TopicMatcher {
    embedder: Arc<dyn Embedder>,
    everyday: Cache<EmbeddingSpace, Arc<EverydayVectors>>,
    boundaries: Cache<BoundaryKey, Arc<TopicBoundary>>,
}

impl TopicMatcher {
    /// A matcher by an embedder.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            everyday: Cache::new(KEPT_MODELS),
            boundaries: Cache::new(KEPT_TOPICS),
        }
    }

    /// Embedding space in which topics are compared, whatever that of a memory space is: the one of
    /// the multilingual model where the embedder has it, else that of its default model.
    pub async fn embedding(&self) -> Result<EmbeddingSpace, Fault> {
        self.embedder.space_for(&FOREIGN.map(str::to_owned)).await
    }

    /// Score of each text for each topic: about 0 for everyday sentences and 1 for those of the
    /// topic. What it has to reach is [`topic_threshold`](super::topic_threshold).
    pub async fn scores(
        &self,
        embedding: &EmbeddingSpace,
        topics: &[Topic],
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, Fault> {
        let everyday = self.everyday(embedding).await?;
        let mut boundaries = Vec::with_capacity(topics.len());
        for topic in topics {
            boundaries.push(self.boundary(embedding, &everyday, topic).await?);
        }
        let sentences = self.sentences(embedding, texts).await?;
        computed(move || {
            let scores = sentences.iter().map(|sentence| {
                let scores = boundaries.iter();
                scores.map(|it| everyday.score(it, sentence)).collect()
            });
            scores.collect()
        })
        .await
    }

    async fn everyday(&self, embedding: &EmbeddingSpace) -> Result<Arc<EverydayVectors>, Fault> {
        if let Some(known) = self.everyday.get(embedding) {
            return Ok(known);
        }
        let lines = EVERYDAY.lines().filter_map(|line| line.split_once('\t'));
        let (languages, texts): (Vec<&str>, Vec<&str>) = lines.unzip();
        let texts = texts.into_iter().map(str::to_owned).collect();
        let sentences = self.sentences(embedding, texts).await?;
        let sentences: Vec<_> = languages.into_iter().zip(sentences).collect();
        let vectors = computed(move || Arc::new(EverydayVectors::new(&sentences))).await?;
        self.everyday.insert(embedding.clone(), vectors.clone());
        Ok(vectors)
    }

    async fn boundary(
        &self,
        embedding: &EmbeddingSpace,
        everyday: &Arc<EverydayVectors>,
        topic: &Topic,
    ) -> Result<Arc<TopicBoundary>, Fault> {
        let key = BoundaryKey {
            embedding: embedding.clone(),
            description: topic.description.clone(),
            examples: topic.examples.clone(),
        };
        if let Some(known) = self.boundaries.get(&key) {
            return Ok(known);
        }
        let texts = [&topic.description].into_iter().chain(&topic.examples);
        let texts = texts.cloned().collect();
        let (sentences, everyday) = (self.sentences(embedding, texts).await?, everyday.clone());
        let boundary = computed(move || Arc::new(everyday.boundary(&sentences))).await?;
        self.boundaries.insert(key, boundary.clone());
        Ok(boundary)
    }

    /// Sentence vector of each text.
    async fn sentences(
        &self,
        embedding: &EmbeddingSpace,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<i8>>, Fault> {
        let count = texts.len();
        let mut sentences = Vec::with_capacity(count);
        for batch in texts.chunks(BATCH) {
            let batch = batch.to_vec();
            let vectors = self.embedder.embed_passages_in(embedding, batch).await?;
            sentences.extend(vectors.into_iter().map(|vectors| vectors.sentence));
        }
        match sentences.len() == count {
            true => Ok(sentences),
            false => Err(Fault::internal("the embedder left out texts of a request")),
        }
    }
}

/// Runs work on a background thread.
async fn computed<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let computed = memfleet_background::compute(work).await;
    computed.ok_or_else(|| Fault::internal("matching topics stopped: see the log for the panic"))
}
