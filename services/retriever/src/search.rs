//! A query from start to end: indexes and query vectors, first stage, token vectors, second stage, turns.

use std::collections::{BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::embedding::{QueryVectors, TokenVectors};
use memfleet_domain::space::Locale;
use memfleet_domain::{Fault, Scope};
use memfleet_language::{Analyzer, Language, topic};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Query, Retriever};
use memfleet_retrieval::{
    Candidates, Eligible, Lexical, Plan, Ranked, Searched, Weights, candidates, lexical, rank,
};
use tokio::sync::oneshot;

use crate::LocalRetriever;
use crate::cache::Reading;

#[async_trait]
impl Retriever for LocalRetriever {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let targets = self.targets(context, query).await?;
        let scopes = targets
            .iter()
            .map(|target| &target.scope)
            .collect::<Vec<_>>();
        let locale = locale(query, &targets);
        let language = Language::tagged(locale.language.as_deref());
        let about = topic(&query.text, language).into_owned();
        // Words are looked up while the model computes.
        let (understood, vectors) = tokio::join!(
            async {
                let readings = self.indexes.current(&scopes).await?;
                self.understand(query, &targets, locale, readings).await
            },
            self.embedder.embed_query(about)
        );
        let mut degraded = Vec::new();
        let vectors = vectors
            .inspect_err(|fault| degraded.push(format!("embedder: {fault}")))
            .ok();
        let stage = self.first_stage(understood?, vectors).await?;
        degraded.extend(stage.missing_vectors());
        let stage = self.token_vectors(&targets, stage).await?;
        let (stage, ranked) = self.second_stage(stage, query.k as usize).await?;
        let hits = self.hits(query, &targets, &stage, ranked).await?;
        let searched = stage
            .eligible
            .iter()
            .map(|eligible| eligible.turns() as u64)
            .sum();
        Ok(Found {
            hits,
            degraded,
            searched,
        })
    }
}

/// A space that the query searches.
pub(crate) struct Target {
    pub(crate) scope: Scope,
    locale: Locale,
    labelled: Option<HashSet<memfleet_domain::ids::TurnId>>,
}

/// A query without its vectors, and the words of it that were found.
struct Understood {
    readings: Vec<Reading>,
    eligible: Vec<Eligible>,
    plan: Plan,
    lexical: Lexical,
}

/// What the first stage hands to the second.
pub(crate) struct Stage {
    pub(crate) readings: Vec<Reading>,
    pub(crate) eligible: Vec<Eligible>,
    plan: Plan,
    candidates: Candidates,
    /// By space, of the passages that the candidates need: those in memory, then those that were read.
    tokens: Vec<Vec<Option<Arc<TokenVectors>>>>,
}

impl Stage {
    /// Turns that only their words can find for now.
    fn missing_vectors(&self) -> Option<String> {
        let missing: usize = self
            .readings
            .iter()
            .map(|reading| reading.index.without_vectors())
            .sum();
        (missing > 0).then(|| format!("vectors: {missing} turns are not embedded yet"))
    }
}

impl LocalRetriever {
    /// The spaces of the query, sorted and each once, which must exist, with what only the store knows of the filter.
    async fn targets(&self, context: &Context, query: &Query) -> Result<Vec<Target>, Fault> {
        let mut targets = Vec::with_capacity(query.spaces.len());
        for space in query.spaces.iter().collect::<BTreeSet<_>>() {
            let scope = context.scope(space);
            let Some(locale) = self.spaces.locale(&scope).await? else {
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
                labelled,
            });
        }
        Ok(targets)
    }

    async fn understand(
        &self,
        query: &Query,
        targets: &[Target],
        locale: Locale,
        readings: Vec<Reading>,
    ) -> Result<Understood, Fault> {
        let (weights, query) = (self.weights.clone(), query.clone());
        let labelled = targets.iter().map(|target| target.labelled.clone());
        let labelled = labelled.collect::<Vec<_>>();
        let analyzer = Analyzer::new(Language::tagged(locale.language.as_deref()));
        off_the_async_threads(move || {
            let pairs = readings.iter().zip(&labelled);
            let eligible = pairs
                .map(|(reading, labelled)| reading.index.eligible(&query.filter, labelled.as_ref()))
                .collect::<Vec<_>>();
            let spaces = searched(&readings, &eligible);
            let zone = locale.time_zone.0;
            let plan = Plan::new(&query.text, &spaces, &analyzer, query.now, zone);
            let lexical = lexical(&spaces, &plan, &weights);
            drop(spaces);
            Understood {
                readings,
                eligible,
                plan,
                lexical,
            }
        })
        .await
    }

    async fn first_stage(
        &self,
        understood: Understood,
        vectors: Option<QueryVectors>,
    ) -> Result<Stage, Fault> {
        let (weights, reader) = (self.weights.clone(), self.tokens.clone());
        off_the_async_threads(move || {
            let Understood {
                readings,
                eligible,
                plan,
                lexical,
            } = understood;
            let plan = plan.with_vectors(vectors);
            let spaces = searched(&readings, &eligible);
            let candidates = candidates(&spaces, &plan, lexical, &weights);
            drop(spaces);
            let tokens = readings.iter().zip(candidates.needed());
            let tokens = tokens
                .map(|(reading, needed)| reader.cached(reading.generation, needed))
                .collect();
            Stage {
                readings,
                eligible,
                plan,
                candidates,
                tokens,
            }
        })
        .await
    }

    /// Reads the token vectors that are not in memory, space by space.
    async fn token_vectors(&self, targets: &[Target], mut stage: Stage) -> Result<Stage, Fault> {
        let spaces = targets.iter().zip(&stage.readings).zip(&mut stage.tokens);
        for (((target, reading), found), needed) in spaces.zip(stage.candidates.needed()) {
            let generation = reading.generation;
            let read = self
                .tokens
                .complete(&target.scope, generation, needed, found);
            read.await?;
        }
        Ok(stage)
    }

    async fn second_stage(&self, stage: Stage, k: usize) -> Result<(Stage, Vec<Ranked>), Fault> {
        let weights: Arc<Weights> = self.weights.clone();
        off_the_async_threads(move || {
            let spaces = searched(&stage.readings, &stage.eligible);
            let ranked = rank(
                &spaces,
                &stage.plan,
                &stage.candidates,
                &stage.tokens,
                &weights,
                k,
            );
            drop(spaces);
            (stage, ranked)
        })
        .await
    }
}

/// What the retrieval core sees of the spaces.
fn searched<'a>(readings: &'a [Reading], eligible: &[Eligible]) -> Vec<Searched<'a>> {
    let pairs = readings.iter().zip(eligible);
    pairs
        .map(|(reading, eligible)| Searched {
            index: &reading.index,
            eligible: eligible.clone(),
        })
        .collect()
}

/// That of the space that the query names first: its language and zone are those that the query is read in.
fn locale(query: &Query, targets: &[Target]) -> Locale {
    let first = query.spaces.first();
    let target = targets
        .iter()
        .find(|target| first == Some(&target.scope.space));
    target.map_or_else(Locale::default, |target| target.locale.clone())
}

/// Work on the threads that its parallel parts run on: from elsewhere each part would have to wake them and wait.
async fn off_the_async_threads<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let (answer, answered) = oneshot::channel();
    rayon::spawn(move || {
        // The caller may have left; then there is nobody to work for.
        if !answer.is_closed() {
            // A panic fails this search, not the process.
            let _ = answer.send(catch_unwind(AssertUnwindSafe(work)));
        }
    });
    match answered.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(Fault::internal("a search stopped")),
    }
}
