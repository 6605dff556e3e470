//! The turns of a group of spaces in their order: by the vectors of one model, or of two.

use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, QueryVectors};
use memfleet_domain::space::Locale;
use memfleet_ports::retriever::Query;
use memfleet_retrieval::{FUSED_TURNS, FUSION, ModelRanking, ScoredTurn, embedded_text, fuse};

use crate::LocalRetriever;
use crate::search::Target;
use crate::stages::Stage;

/// Turns of a group ranked by the vectors of one embedding space, or by words alone.
pub(crate) struct Ranking {
    /// The retriever that ranked them, with the calibration of the model.
    pub(crate) retriever: LocalRetriever,
    /// Holds the indexes as they were.
    pub(crate) stage: Stage,
    pub(crate) turns: Vec<ScoredTurn>,
    pub(crate) degraded: Vec<String>,
    /// Name of the model, where it does not read the query.
    pub(crate) unread_by: Option<String>,
}

/// Ranking by the second model of a balanced search. It holds no index: other searches and writes
/// wait for those.
struct OtherRanking {
    model: ModelRanking,
    /// Name of the scorer of its relevance; empty where the query has no vectors.
    scorer: String,
    degraded: Vec<String>,
}

impl LocalRetriever {
    /// Ranking by two models, with the name of its scorer. The second model ranks first and lets go
    /// of its index: a search never waits while it holds one, so that no two searches wait for each
    /// other.
    pub(crate) async fn balanced_ranking(
        &self,
        query: &Query,
        targets: &[Target],
        (first, second): (Result<EmbeddingSpace, Fault>, EmbeddingSpace),
        locale: &Locale,
        depth: usize,
    ) -> Result<(Ranking, String), Fault> {
        // Searches by one model take the index that is there: the first model's has to be.
        let scopes: Vec<_> = targets.iter().map(|target| &target.scope).collect();
        drop(self.indexes.current(&scopes, first.as_ref().ok()).await?);
        let other = self.ranking(query, targets, Ok(second), locale, FUSED_TURNS);
        let other = other.await.map(Ranking::into_other);
        let depth = depth.max(FUSED_TURNS);
        let mut ranking = self.ranking(query, targets, first, locale, depth).await?;
        let scorer = match other {
            Ok(other) => {
                ranking
                    .degraded
                    .extend(other.degraded.iter().map(of_second));
                ranking.fuse(other)
            }
            Err(fault) => {
                ranking.degraded.push(of_second(&fault));
                ranking.scorer()
            }
        };
        Ok((ranking, scorer))
    }

    /// The best `depth` turns by the vectors of an embedding space, or by words where these are
    /// missing.
    pub(crate) async fn ranking(
        &self,
        query: &Query,
        targets: &[Target],
        embedding: Result<EmbeddingSpace, Fault>,
        locale: &Locale,
        depth: usize,
    ) -> Result<Ranking, Fault> {
        let calibrated = embedding.and_then(|space| Ok((self.calibrated_for(&space)?, space)));
        let (this, embedding) = match calibrated {
            Ok((this, embedding)) => (this, Ok(embedding)),
            Err(fault) => (self.clone(), Err(fault)),
        };
        let scopes: Vec<_> = targets.iter().map(|target| &target.scope).collect();
        // Words are looked up while the model computes.
        let words = async {
            let readings = this.indexes.current(&scopes, embedding.as_ref().ok());
            let readings = readings.await?;
            let understood = this.understand(query, targets, locale, readings).await?;
            Ok::<_, Fault>(understood.wait())
        };
        let vectors = async {
            let embedding = embedding.as_ref().map_err(Clone::clone)?;
            this.vectors(query, locale, embedding).await
        };
        let (words, vectors) = tokio::join!(words, vectors);
        let mut degraded = Vec::new();
        let vectors = vectors
            .inspect_err(|fault| degraded.push(format!("embedder: {fault}")))
            .ok();
        let embedding = embedding.as_ref().ok();
        let is_unread = vectors.as_ref().is_some_and(|it| it.sentence.is_empty());
        let unread_by = embedding.filter(|_| is_unread);
        let unread_by = unread_by.map(|embedding| embedding.model.clone());
        let understood = this.resume(query, targets, locale, words?).await?;
        let stage = this
            .first_stage(targets, understood, vectors, embedding)
            .await?;
        degraded.extend(stage.missing_vectors());
        let stage = this.token_vectors(targets, stage, embedding).await?;
        let (stage, ranked) = this.second_stage(stage, depth).await?;
        let relevance = this.calibration.relevance.clone();
        let turns = ranked.into_iter().map(|ranked| ScoredTurn {
            relevance: relevance.of(&ranked.clues),
            ranked,
        });
        Ok(Ranking {
            turns: turns.collect(),
            retriever: this,
            stage,
            degraded,
            unread_by,
        })
    }

    /// The vectors of the query: those that it brings, where they are of this text and of this
    /// embedding space, else the model's.
    async fn vectors(
        &self,
        query: &Query,
        locale: &Locale,
        embedding: &EmbeddingSpace,
    ) -> Result<QueryVectors, Fault> {
        let text = embedded_text(&query.text, locale);
        if let Some(brought) = query.vectors.as_deref().filter(|it| it.text == text)
            && brought.space == *embedding
        {
            return Ok(brought.vectors.clone());
        }
        self.embedder
            .embed_query_in(embedding, text.into_owned())
            .await
    }
}

impl Ranking {
    /// Name of what told the relevance of the turns; empty where the query has no vectors.
    pub(crate) fn scorer(&self) -> String {
        if self.stage.has_vectors() {
            self.retriever.calibration.relevance.name.clone()
        } else {
            String::new()
        }
    }

    fn into_other(self) -> OtherRanking {
        OtherRanking {
            scorer: self.scorer(),
            model: ModelRanking {
                unembedded: self.stage.unembedded(),
                turns: self.turns,
            },
            degraded: self.degraded,
        }
    }

    /// Takes the turns of both rankings where both have vectors of the query, else those of the one
    /// that has. Gives the name of the scorer.
    fn fuse(&mut self, other: OtherRanking) -> String {
        let own = self.scorer();
        match (own.is_empty(), other.scorer.is_empty()) {
            (_, true) => own,
            (true, false) => {
                self.turns = other.model.turns;
                self.unread_by = None;
                other.scorer
            }
            (false, false) => {
                let first = ModelRanking {
                    unembedded: self.stage.unembedded(),
                    turns: std::mem::take(&mut self.turns),
                };
                self.turns = fuse(first, other.model);
                format!("{FUSION}({own},{})", other.scorer)
            }
        }
    }
}

/// Missing parts of the second ranking of a balanced search, as an answer names them.
fn of_second(missing: &impl std::fmt::Display) -> String {
    format!("second model: {missing}")
}
