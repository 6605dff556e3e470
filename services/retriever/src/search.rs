//! A query from start to end: indexes and query vectors, first stage, token vectors, second stage, turns.

use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use futures::future::try_join_all;
use memfleet_background::CallInProgress;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings, QueryVectors};
use memfleet_domain::ids::TurnId;
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::space::Locale;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::{CallPriority, Context};
use memfleet_ports::retriever::{Found, Query, Retriever, SHOWN_BEHIND_HITS};
use memfleet_retrieval::{FUSED_TURNS, FUSION, ModelRanking, ScoredTurn, embedded_text, fuse};

use crate::LocalRetriever;
use crate::merging::{self, GroupAnswer};
use crate::stages::Stage;

#[async_trait]
impl Retriever for LocalRetriever {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let this = self.with_priority(context.priority);
        let is_first = context.priority == CallPriority::Normal;
        let _call = is_first.then(CallInProgress::begin);
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
    retriever: LocalRetriever,
    /// Holds the indexes as they were.
    stage: Stage,
    turns: Vec<ScoredTurn>,
    degraded: Vec<String>,
    /// Name of the model, where it does not read the query.
    unread_by: Option<String>,
}

/// The same without the indexes, which other searches and writes wait for.
struct OtherRanking {
    model: ModelRanking,
    /// Name of the scorer of its relevance; empty where the query has no vectors.
    scorer: String,
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
    ) -> Result<GroupAnswer, Fault> {
        let Group {
            targets,
            embedding,
            second,
        } = group;
        let k = query.k as usize;
        let behind = if query.explain { SHOWN_BEHIND_HITS } else { 0 };
        let depth = k + behind;
        let (ranking, scorer) = if let Some(second) = second {
            let spaces = (embedding, second);
            let ranking = self.balanced_ranking(query, &targets, spaces, locale, depth);
            ranking.await?
        } else {
            let ranking = self.ranking(query, &targets, embedding, locale, depth);
            let mut ranking = ranking.await?;
            let missed = ranking.retriever.missed_quality(query, &targets);
            ranking.degraded.extend(missed);
            let scorer = ranking.scorer();
            (ranking, scorer)
        };
        let Ranking {
            retriever,
            stage,
            mut turns,
            mut degraded,
            unread_by,
        } = ranking;
        let is_read = unread_by.is_none();
        degraded.extend(unread_by.map(|model| {
            format!("query: {model} does not read it, so that these spaces are searched by its words alone")
        }));
        turns.truncate(depth);
        let traced = query.explain.then(|| turns.clone());
        turns.truncate(k);
        let hits = retriever.hits(query, &targets, &stage, turns).await?;
        let explanation = match traced {
            Some(traced) => {
                let explanation = retriever.explanation(&targets, &stage, &hits, traced);
                Some(explanation.await?)
            }
            None => None,
        };
        let eligible = stage.eligible.iter();
        let found = Found {
            hits,
            degraded,
            searched: eligible.map(|eligible| eligible.turns() as u64).sum(),
            scorer,
            understood: None,
            explanation,
        };
        Ok(GroupAnswer { found, is_read })
    }

    /// The rankings by two models as one, with the name of its scorer. The second model ranks
    /// first and lets go of its index: whoever holds one waits for nothing else, so that no two
    /// searches wait for each other.
    async fn balanced_ranking(
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

    /// The quality that the query asks for and a search in one embedding space does not have.
    fn missed_quality(&self, query: &Query, targets: &[Target]) -> Option<String> {
        if !is_balanced(query) || !self.calibration.has_second() {
            return None;
        }
        let is_built = targets.iter().any(|target| target.held.other.is_some());
        let message = if is_built {
            "quality: not all of these spaces have the vectors of a second model yet (`memfleet model switch --status`)"
        } else {
            "quality: these spaces have the vectors of one model; a node gives them those of a second one where its `retrieval.quality` is `balanced` (docs/retrieval.md, Quality)"
        };
        Some(message.to_owned())
    }

    /// The spaces by the embedding space that each serves; those without vectors go with the first.
    /// A balanced search compares in a second one, too, where all spaces of a group have it.
    /// Another search takes what all of a group have and what is in memory: just after a space
    /// changed its model that is the one of before.
    async fn groups(&self, query: &Query, targets: Vec<Target>) -> Vec<Group> {
        let mut groups: Vec<(EmbeddingSpace, Vec<Target>)> = Vec::new();
        let mut others = Vec::new();
        for target in targets {
            let Some(served) = target.held.served.clone() else {
                others.push(target);
                continue;
            };
            self.indexes.keep(&target.scope, &target.held);
            match groups.iter_mut().find(|(space, _)| *space == served) {
                Some((_, members)) => members.push(target),
                None => groups.push((served, vec![target])),
            }
        }
        let Some((_, members)) = groups.first_mut() else {
            return vec![self.unserved(others).await];
        };
        members.append(&mut others);
        let groups = groups.into_iter().map(|(served, targets)| {
            if is_balanced(query) {
                let second = self.second(&served, &targets);
                return Group {
                    targets,
                    embedding: Ok(served),
                    second,
                };
            }
            let scopes: Vec<_> = targets.iter().map(|target| &target.scope).collect();
            let chosen = self.indexes.choose(&scopes, shared(&targets));
            Group {
                embedding: Ok(chosen.unwrap_or(served)),
                targets,
                second: None,
            }
        });
        groups.collect()
    }

    /// Spaces none of which has vectors to search.
    async fn unserved(&self, targets: Vec<Target>) -> Group {
        let embedding = match shared(&targets).into_iter().next() {
            Some(embedding) => Ok(embedding),
            None => self.embedder.space().await,
        };
        Group {
            targets,
            embedding,
            second: None,
        }
    }

    /// The embedding space beside the served one that all spaces have whole vectors in, and whose
    /// ranking is fused with that of the served one.
    fn second(&self, served: &EmbeddingSpace, targets: &[Target]) -> Option<EmbeddingSpace> {
        let calibration = self.calibrations.of(served)?;
        let mut shared = shared(targets);
        shared.retain(|space| {
            space != served
                && calibration.is_fused_with(&space.model)
                && self.calibrations.of(space).is_some()
        });
        shared.into_iter().next()
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

impl Ranking {
    /// Name of what told the relevance of the turns; empty where the query has no vectors.
    fn scorer(&self) -> String {
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
