//! A query from start to end: indexes and query vectors, first stage, token vectors, second stage, turns.

use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings, QueryVectors};
use memfleet_domain::ids::TurnId;
use memfleet_domain::space::Locale;
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Query, Retriever, SHOWN_BEHIND_HITS};
use memfleet_retrieval::embedded_text;

use crate::LocalRetriever;
use crate::stages::Stage;

#[async_trait]
impl Retriever for LocalRetriever {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let this = self.with_priority(context.priority);
        let targets = this.targets(context, query).await?;
        let scopes = targets
            .iter()
            .map(|target| &target.scope)
            .collect::<Vec<_>>();
        let locale = locale(query, &targets);
        let embedding = this.embedding(&targets, &scopes).await;
        // Words are looked up while the model computes.
        let words = async {
            let readings = this.indexes.current(&scopes, embedding.as_ref().ok());
            let readings = readings.await?;
            let understood = this.understand(query, &targets, &locale, readings).await?;
            Ok::<_, Fault>(understood.wait())
        };
        let vectors = async {
            let embedding = embedding.as_ref().map_err(Clone::clone)?;
            this.vectors(query, &locale, embedding).await
        };
        let (words, vectors) = tokio::join!(words, vectors);
        let mut degraded = Vec::new();
        let vectors = vectors
            .inspect_err(|fault| degraded.push(format!("embedder: {fault}")))
            .ok();
        let embedding = embedding.as_ref().ok();
        let understood = this.resume(query, &targets, &locale, words?).await?;
        let stage = this
            .first_stage(&targets, understood, vectors, embedding)
            .await?;
        degraded.extend(stage.missing_vectors());
        let stage = this.token_vectors(&targets, stage, embedding).await?;
        let (k, behind) = (query.k as usize, SHOWN_BEHIND_HITS);
        let depth = if query.explain { k + behind } else { k };
        let (stage, mut ranked) = this.second_stage(stage, depth).await?;
        let traced = query.explain.then(|| ranked.clone());
        ranked.truncate(k);
        let hits = this.hits(query, &targets, &stage, ranked).await?;
        let explanation = match traced {
            Some(traced) => Some(this.explanation(&targets, &stage, &hits, traced).await?),
            None => None,
        };
        let searched = stage
            .eligible
            .iter()
            .map(|eligible| eligible.turns() as u64)
            .sum();
        Ok(Found {
            hits,
            degraded,
            searched,
            scorer: this.scorer(&stage),
            understood: None,
            explanation,
        })
    }
}

/// A space that the query searches.
pub(crate) struct Target {
    pub(crate) scope: Scope,
    locale: Locale,
    held: HeldEmbeddings,
    pub(crate) labelled: Option<HashSet<TurnId>>,
}

impl LocalRetriever {
    /// What told the relevance of the hits.
    fn scorer(&self, stage: &Stage) -> String {
        if stage.has_vectors() {
            self.relevance.name.clone()
        } else {
            String::new()
        }
    }

    /// The embedding space that a search compares vectors in: one that all of its spaces have
    /// vectors in, that of most of them if they share two. Fails where they share none.
    async fn embedding(
        &self,
        targets: &[Target],
        scopes: &[&Scope],
    ) -> Result<EmbeddingSpace, Fault> {
        for target in targets.iter().filter(|it| it.held.served.is_some()) {
            self.indexes.keep(&target.scope, &target.held);
        }
        let mut held = targets
            .iter()
            .map(|target| &target.held)
            .filter(|held| held.served.is_some() || held.other.is_some());
        let Some(first) = held.next() else {
            return self.embedder.space().await;
        };
        let is_shared = |space: &&EmbeddingSpace| {
            let mut others = held.clone();
            others.all(|held| held.whole().any(|other| other == *space))
        };
        let mut shared: Vec<EmbeddingSpace> = first.whole().filter(is_shared).cloned().collect();
        let served = |space: &EmbeddingSpace| {
            let targets = targets
                .iter()
                .filter(|it| it.held.served.as_ref() == Some(space));
            std::cmp::Reverse(targets.count())
        };
        shared.sort_by_key(served);
        self.indexes.choose(scopes, shared).ok_or_else(|| {
            let message = "the spaces have vectors of different models: search them one by one, or switch them to one model";
            Fault::new(FaultKind::FailedPrecondition, "NO_SHARED_MODEL", message)
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

    /// The spaces of the query, sorted and each once, which must exist, with what only the store knows of the filter.
    async fn targets(&self, context: &Context, query: &Query) -> Result<Vec<Target>, Fault> {
        let mut targets = Vec::with_capacity(query.spaces.len());
        for space in query.spaces.iter().collect::<BTreeSet<_>>() {
            let scope = context.scope(space);
            let Some((locale, held)) = self.spaces.locale_and_embeddings(&scope).await? else {
                return Err(Fault::not_found(format_args!("space `{space}`")));
            };
            let labels = &query.filter.metadata;
            let labelled = if labels.is_empty() {
                None
            } else {
                Some(
                    self.feed
                        .with_metadata(&scope, labels)
                        .await?
                        .into_iter()
                        .collect(),
                )
            };
            targets.push(Target {
                scope,
                locale,
                held,
                labelled,
            });
        }
        Ok(targets)
    }
}

/// That of the space that the query names first: its language and zone are those that the query is read in.
fn locale(query: &Query, targets: &[Target]) -> Locale {
    let first = query.spaces.first();
    let target = targets
        .iter()
        .find(|target| first == Some(&target.scope.space));
    target.map_or_else(Locale::default, |target| target.locale.clone())
}
