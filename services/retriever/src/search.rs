//! A query from start to end: the spaces by the model that they serve, each group's ranking, its
//! turns, and one answer of all.

use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use futures::future::try_join_all;
use memfleet_background::CallInProgress;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings};
use memfleet_domain::ids::TurnId;
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::space::Locale;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::{CallPriority, Context};
use memfleet_ports::retriever::{Found, Query, Retriever, SHOWN_BEHIND_HITS};

use crate::LocalRetriever;
use crate::merging::{self, GroupAnswer};
use crate::ranking::Ranking;

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
