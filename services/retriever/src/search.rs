//! A query from start to end: indexes and query vectors, first stage, token vectors, second stage, turns.

use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings, QueryVectors};
use memfleet_domain::ids::TurnId;
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::space::Locale;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Query, Retriever, SHOWN_BEHIND_HITS};
use memfleet_retrieval::embedded_text;

use crate::LocalRetriever;
use crate::merging;
use crate::stages::Stage;

#[async_trait]
impl Retriever for LocalRetriever {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let this = self.with_priority(context.priority);
        let targets = this.targets(context, query).await?;
        let locale = locale(query, &targets);
        let mut answers = Vec::new();
        for group in this.groups(targets).await {
            answers.push(this.search_group(query, group, &locale).await?);
        }
        Ok(merging::merge(answers, query.k as usize))
    }
}

/// Spaces whose vectors are compared with those of the query in one embedding space.
struct Group {
    targets: Vec<Target>,
    /// Absent where nobody can say which.
    embedding: Result<EmbeddingSpace, Fault>,
}

/// A space that the query searches.
pub(crate) struct Target {
    pub(crate) scope: Scope,
    locale: Locale,
    held: HeldEmbeddings,
    pub(crate) labelled: Option<HashSet<TurnId>>,
}

impl LocalRetriever {
    async fn search_group(
        &self,
        query: &Query,
        Group { targets, embedding }: Group,
        locale: &Locale,
    ) -> Result<Found, Fault> {
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
            let understood = this.understand(query, &targets, locale, readings).await?;
            Ok::<_, Fault>(understood.wait())
        };
        let vectors = async {
            let embedding = embedding.as_ref().map_err(Clone::clone)?;
            this.vectors(query, locale, embedding).await
        };
        let (words, vectors) = tokio::join!(words, vectors);
        let mut degraded: Vec<String> = this.missed_quality(query).into_iter().collect();
        let vectors = vectors
            .inspect_err(|fault| degraded.push(format!("embedder: {fault}")))
            .ok();
        let embedding = embedding.as_ref().ok();
        let understood = this.resume(query, &targets, locale, words?).await?;
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

    /// The quality that the query asks for and the vectors of its spaces do not have.
    fn missed_quality(&self, query: &Query) -> Option<String> {
        let wanted = query.quality.unwrap_or_default();
        let is_missed =
            wanted > SearchQuality::Fast && self.calibration.quality < SearchQuality::Balanced;
        is_missed.then(|| {
            "quality: the vectors of these spaces are those of a fast search; `memfleet model switch` makes others (docs/retrieval.md, Quality)".to_owned()
        })
    }

    /// What told the relevance of the hits.
    fn scorer(&self, stage: &Stage) -> String {
        if stage.has_vectors() {
            self.calibration.relevance.name.clone()
        } else {
            String::new()
        }
    }

    /// The spaces by the embedding space that a search compares their vectors in: one that all of
    /// them have, that of most of them if they share two; else each the one that it serves. Spaces
    /// without vectors go with the first.
    async fn groups(&self, targets: Vec<Target>) -> Vec<Group> {
        for target in targets.iter().filter(|it| it.held.served.is_some()) {
            self.indexes.keep(&target.scope, &target.held);
        }
        if targets
            .iter()
            .all(|it| it.held.served.is_none() && it.held.other.is_none())
        {
            let embedding = self.embedder.space().await;
            return vec![Group { targets, embedding }];
        }
        if let Some(embedding) = self.shared(&targets) {
            return vec![Group {
                targets,
                embedding: Ok(embedding),
            }];
        }
        let mut groups: Vec<(EmbeddingSpace, Vec<Target>)> = Vec::new();
        let mut others = Vec::new();
        for target in targets {
            let Some(served) = target.held.served.clone() else {
                others.push(target);
                continue;
            };
            match groups.iter_mut().find(|(space, _)| *space == served) {
                Some((_, members)) => members.push(target),
                None => groups.push((served, vec![target])),
            }
        }
        if let Some((_, members)) = groups.first_mut() {
            members.append(&mut others);
        }
        let groups = groups.into_iter().map(|(embedding, targets)| Group {
            targets,
            embedding: Ok(embedding),
        });
        groups.collect()
    }

    /// The embedding space that all spaces have whole vectors in; of two, the one whose indexes are
    /// in memory, else that which most of them serve.
    fn shared(&self, targets: &[Target]) -> Option<EmbeddingSpace> {
        let mut held = targets
            .iter()
            .map(|target| &target.held)
            .filter(|held| held.served.is_some() || held.other.is_some());
        let first = held.next()?;
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
        let scopes: Vec<_> = targets.iter().map(|target| &target.scope).collect();
        self.indexes.choose(&scopes, shared)
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
