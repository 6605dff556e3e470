//! A query from start to end: indexes and query vectors, first stage, token vectors, second stage, turns.

use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use futures::future::try_join_all;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings, QueryVectors};
use memfleet_domain::ids::TurnId;
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::space::Locale;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Query, Retriever, SHOWN_BEHIND_HITS};
use memfleet_retrieval::{ScoredTurn, embedded_text, fuse};

use crate::LocalRetriever;
use crate::merging;
use crate::stages::Stage;

/// Turns of each ranking that a balanced search fuses.
const FUSED_TURNS: usize = 100;

#[async_trait]
impl Retriever for LocalRetriever {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let this = self.with_priority(context.priority);
        let targets = this.targets(context, query).await?;
        let locale = locale(query, &targets);
        let groups = this.groups(query, targets).await.into_iter();
        let searches = groups.map(|group| this.search_group(query, group, &locale));
        let answers = try_join_all(searches).await?;
        Ok(merging::merge(answers, query.k as usize))
    }
}

/// Spaces whose vectors are compared with those of the query in one embedding space, or in a
/// balanced search in two.
struct Group {
    targets: Vec<Target>,
    /// Absent where nobody can say which.
    embedding: Result<EmbeddingSpace, Fault>,
    second: Option<EmbeddingSpace>,
}

/// Turns of a group ranked by the vectors of one embedding space, or by words alone.
struct Ranking {
    /// The retriever that ranked them, with the calibration of the model.
    by: LocalRetriever,
    stage: Stage,
    turns: Vec<ScoredTurn>,
    degraded: Vec<String>,
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
        group: Group,
        locale: &Locale,
    ) -> Result<Found, Fault> {
        let Group {
            targets,
            embedding,
            second,
        } = group;
        let k = query.k as usize;
        let mut depth = if query.explain {
            k + SHOWN_BEHIND_HITS
        } else {
            k
        };
        if second.is_some() {
            depth = depth.max(FUSED_TURNS);
        }
        let ranking = self.ranking(query, &targets, embedding, locale, depth);
        let mut found = Found::default();
        let Ranking {
            by,
            stage,
            mut turns,
            degraded,
        } = if let Some(second) = second {
            let other = self.ranking(query, &targets, Ok(second), locale, depth);
            let (ranking, other) = tokio::join!(ranking, other);
            by_two_models(ranking?, other, &mut found)
        } else {
            let ranking = ranking.await?;
            found.scorer = ranking.scorer();
            found
                .degraded
                .extend(ranking.by.missed_quality(query, &targets));
            ranking
        };
        found.degraded.extend(degraded);
        let traced = query.explain.then(|| turns.clone());
        turns.truncate(k);
        found.hits = by.hits(query, &targets, &stage, turns).await?;
        if let Some(traced) = traced {
            let explanation = by.explanation(&targets, &stage, &found.hits, traced);
            found.explanation = Some(explanation.await?);
        }
        let searched = stage.eligible.iter();
        found.searched = searched.map(|eligible| eligible.turns() as u64).sum();
        Ok(found)
    }

    /// The best `depth` turns by the vectors of an embedding space, or by words where these are
    /// missing.
    async fn ranking(
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
            by: this,
            stage,
            degraded,
        })
    }

    /// The quality that the query asks for and a search in one embedding space does not have.
    fn missed_quality(&self, query: &Query, targets: &[Target]) -> Option<String> {
        let is_missed = is_balanced(query) && self.calibration.quality < SearchQuality::Balanced;
        let is_built = targets.iter().any(|target| target.held.other.is_some());
        is_missed.then(|| match is_built {
            true => "quality: not all of these spaces have the vectors of a second model yet",
            false => "quality: these spaces have the vectors of one model; `retrieval.quality` gives them those of a second one (docs/retrieval.md, Quality)",
        }.to_owned())
    }

    /// The spaces by the embedding space that a search compares their vectors in: one that all of
    /// them have, that of most of them if they share two; else each the one that it serves. Spaces
    /// without vectors go with the first. A balanced search compares in a second one, too, where
    /// all of a group have it.
    async fn groups(&self, query: &Query, targets: Vec<Target>) -> Vec<Group> {
        let mut groups = self.served_groups(targets).await;
        for group in groups.iter_mut().filter(|_| is_balanced(query)) {
            group.second = self.second(group);
        }
        groups
    }

    /// The embedding space beside that of a group which all of its spaces have whole vectors in.
    fn second(&self, group: &Group) -> Option<EmbeddingSpace> {
        let first = group.embedding.as_ref().ok()?;
        let mut shared = shared(&group.targets);
        shared.retain(|space| space != first && self.calibrations.of(space).is_some());
        shared.into_iter().next()
    }

    async fn served_groups(&self, targets: Vec<Target>) -> Vec<Group> {
        for target in targets.iter().filter(|it| it.held.served.is_some()) {
            self.indexes.keep(&target.scope, &target.held);
        }
        if targets
            .iter()
            .all(|it| it.held.served.is_none() && it.held.other.is_none())
        {
            let embedding = self.embedder.space().await;
            return vec![Group::new(targets, embedding)];
        }
        if let Some(embedding) = self.chosen(&targets) {
            return vec![Group::new(targets, Ok(embedding))];
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
        let groups = groups.into_iter();
        let groups = groups.map(|(embedding, targets)| Group::new(targets, Ok(embedding)));
        groups.collect()
    }

    /// The embedding space that all spaces have whole vectors in; of two, the one whose indexes are
    /// in memory, else that which most of them serve.
    fn chosen(&self, targets: &[Target]) -> Option<EmbeddingSpace> {
        let mut shared = shared(targets);
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

impl Group {
    fn new(targets: Vec<Target>, embedding: Result<EmbeddingSpace, Fault>) -> Self {
        Self {
            targets,
            embedding,
            second: None,
        }
    }
}

impl Ranking {
    /// Name of what told the relevance of the turns.
    fn scorer(&self) -> String {
        if self.stage.has_vectors() {
            self.by.calibration.relevance.name.clone()
        } else {
            String::new()
        }
    }
}

/// One ranking of two: of both where both have vectors of the query, else of the one that has.
fn by_two_models(first: Ranking, second: Result<Ranking, Fault>, found: &mut Found) -> Ranking {
    let missed = |reason: &str| format!("quality: the second model: {reason}");
    let ranking = match second {
        Err(fault) => {
            found.degraded.push(missed(&fault.to_string()));
            first
        }
        Ok(second) if !second.stage.has_vectors() => {
            let reasons = second.degraded.iter();
            found.degraded.extend(reasons.map(|reason| missed(reason)));
            first
        }
        Ok(second) if !first.stage.has_vectors() => second,
        Ok(second) => {
            found.scorer = format!("{}+{}", first.scorer(), second.scorer());
            let turns = fuse(first.turns, second.turns);
            return Ranking { turns, ..first };
        }
    };
    found.scorer = ranking.scorer();
    ranking
}

fn is_balanced(query: &Query) -> bool {
    query.quality.unwrap_or_default() >= SearchQuality::Balanced
}

/// Embedding spaces that all spaces with vectors have whole vectors in.
fn shared(targets: &[Target]) -> Vec<EmbeddingSpace> {
    let mut held = targets
        .iter()
        .map(|target| &target.held)
        .filter(|held| held.served.is_some() || held.other.is_some());
    let Some(first) = held.next() else {
        return Vec::new();
    };
    let is_shared = |space: &&EmbeddingSpace| {
        let mut others = held.clone();
        others.all(|held| held.whole().any(|other| other == *space))
    };
    first.whole().filter(is_shared).cloned().collect()
}

/// That of the space that the query names first: its language and zone are those that the query is read in.
fn locale(query: &Query, targets: &[Target]) -> Locale {
    let first = query.spaces.first();
    let target = targets
        .iter()
        .find(|target| first == Some(&target.scope.space));
    target.map_or_else(Locale::default, |target| target.locale.clone())
}
