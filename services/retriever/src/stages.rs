//! The stages of a search, each computed on the threads of its parallel parts, and what one hands to the next.

use std::collections::HashSet;
use std::sync::Arc;

use memfleet_background::BackgroundLane;
use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, QueryVectors, TokenVectors};
use memfleet_domain::ids::TurnId;
use memfleet_domain::space::Locale;
use memfleet_language::{Analyzer, Language};
use memfleet_ports::context::CallPriority;
use memfleet_ports::retriever::Query;
use memfleet_retrieval::{
    Candidates, Eligible, Excerpt, Lexical, Plan, Ranked, Searched, Weights, candidates, lexical,
    rank,
};
use tokio::sync::Semaphore;

use crate::LocalRetriever;
use crate::cache::{Paused, Reading};
use crate::outlines::{self, Excerpts};
use crate::search::Target;
use crate::tokens::TokenReader;

/// A query without its vectors, and the words of it that were found.
pub(crate) struct Understood {
    readings: Vec<Reading>,
    meaning: Meaning,
}

/// What a query means to the indexes as they are.
struct Meaning {
    eligible: Vec<Eligible>,
    plan: Plan,
    excerpts: Excerpts,
    lexical: Lexical,
}

/// The same while it waits for the model, which must not keep the indexes from changing.
pub(crate) struct Waiting {
    paused: Vec<Paused>,
    meaning: Meaning,
}

impl Understood {
    pub(crate) fn wait(self) -> Waiting {
        Waiting {
            paused: self.readings.into_iter().map(Reading::pause).collect(),
            meaning: self.meaning,
        }
    }
}

/// What the first stage hands to the second.
pub(crate) struct Stage {
    pub(crate) readings: Vec<Reading>,
    pub(crate) eligible: Vec<Eligible>,
    plan: Plan,
    excerpts: Excerpts,
    pub(crate) candidates: Candidates,
    /// By space, of the passages that the candidates need: those in memory, then those that were read.
    tokens: Vec<Vec<Option<Arc<TokenVectors>>>>,
}

impl Stage {
    /// Whether the query has vectors. Without, nothing tells how relevant a turn is.
    pub(crate) fn has_vectors(&self) -> bool {
        self.plan.vectors().is_some()
    }

    /// Turns without vectors of the model yet, with the place of their space. Of a space that is
    /// here as an outline it is not known which these are.
    pub(crate) fn unembedded(&self) -> HashSet<(usize, TurnId)> {
        let spaces = (0..).zip(&self.readings);
        let turns = spaces.flat_map(|(space, reading)| {
            let turns = reading.index.without_vectors();
            turns.map(move |turn| (space, turn))
        });
        turns.collect()
    }

    /// Turns that only their words can find for now.
    pub(crate) fn missing_vectors(&self) -> Option<String> {
        let missing: u64 = self.readings.iter().map(Reading::without_vectors).sum();
        (missing > 0).then(|| format!("vectors: {missing} turns are not embedded yet"))
    }
}

impl LocalRetriever {
    /// What the query means, and where its words are.
    pub(crate) async fn understand(
        &self,
        query: &Query,
        targets: &[Target],
        locale: &Locale,
        readings: Vec<Reading>,
    ) -> Result<Understood, Fault> {
        let (weights, query, zone) = (
            self.calibration.weights.clone(),
            query.clone(),
            locale.time_zone.0,
        );
        let labelled = targets.iter().map(|target| target.labelled.clone());
        let labelled = labelled.collect::<Vec<_>>();
        let analyzer = Analyzer::new(Language::tagged(locale.language.as_deref()));
        let (readings, eligible, plan) = self
            .compute(move || {
                let pairs = readings.iter().zip(&labelled);
                let eligible = pairs
                    .map(|(reading, labelled)| {
                        reading.index.eligible(&query.filter, labelled.as_ref())
                    })
                    .collect::<Vec<_>>();
                let spaces = searched(&readings, &eligible, &[]);
                let plan = Plan::new(&query.text, &spaces, &analyzer, query.now, zone)
                    .with_intent(query.intent)
                    .explained(query.explain);
                drop(spaces);
                (readings, eligible, plan)
            })
            .await?;
        let excerpts = outlines::look_up(targets, &readings, &plan).await?;
        self.compute(move || {
            let lexical = lexical(&searched(&readings, &eligible, &excerpts), &plan, &weights);
            let meaning = Meaning {
                eligible,
                plan,
                excerpts,
                lexical,
            };
            Understood { readings, meaning }
        })
        .await
    }

    /// Goes on when the model has answered; from the start if an index changed meanwhile.
    pub(crate) async fn resume(
        &self,
        query: &Query,
        targets: &[Target],
        locale: &Locale,
        Waiting { paused, meaning }: Waiting,
    ) -> Result<Understood, Fault> {
        let (mut readings, mut unchanged) = (Vec::with_capacity(paused.len()), true);
        for paused in paused {
            let (reading, is_same) = paused.resume().await;
            readings.push(reading);
            unchanged &= is_same;
        }
        if unchanged {
            return Ok(Understood { readings, meaning });
        }
        self.understand(query, targets, locale, readings).await
    }

    /// The candidates, and those of their token vectors that are in memory.
    pub(crate) async fn first_stage(
        &self,
        targets: &[Target],
        mut understood: Understood,
        vectors: Option<QueryVectors>,
        embedding: Option<&EmbeddingSpace>,
    ) -> Result<Stage, Fault> {
        let vectors = vectors.filter(|vectors| !vectors.sentence.is_empty());
        if let (Some(vectors), Some(embedding)) = (&vectors, embedding) {
            let near = self.near(targets, understood, embedding, &vectors.sentence);
            understood = near.await?;
        }
        let Understood { readings, meaning } = understood;
        let (weights, reader) = (self.calibration.weights.clone(), self.tokens.clone());
        let mut stage = self
            .compute(move || chosen(readings, meaning, vectors, &weights, &reader))
            .await?;
        let (readings, excerpts) = (&stage.readings, &mut stage.excerpts);
        let candidates = &stage.candidates;
        outlines::read_passages(targets, readings, excerpts, embedding, candidates).await?;
        Ok(stage)
    }

    /// Has the store look for what comes near, in spaces that are not held.
    async fn near(
        &self,
        targets: &[Target],
        understood: Understood,
        embedding: &EmbeddingSpace,
        vector: &[i8],
    ) -> Result<Understood, Fault> {
        if understood.meaning.excerpts.iter().all(Option::is_none) {
            return Ok(understood);
        }
        let weights = self.calibration.weights.clone();
        let (mut understood, questions) = self
            .compute(move || {
                let Understood { readings, meaning } = &understood;
                let spaces = searched(readings, &meaning.eligible, &meaning.excerpts);
                let questions = outlines::questions(&spaces, &meaning.lexical, &weights);
                drop(spaces);
                (understood, questions)
            })
            .await?;
        let (readings, excerpts) = (&understood.readings, &mut understood.meaning.excerpts);
        let asked = outlines::ask(targets, readings, excerpts, questions, (embedding, vector));
        asked.await?;
        Ok(understood)
    }

    /// Reads the token vectors that are not in memory, space by space.
    pub(crate) async fn token_vectors(
        &self,
        targets: &[Target],
        mut stage: Stage,
        embedding: Option<&EmbeddingSpace>,
    ) -> Result<Stage, Fault> {
        let Some(embedding) = embedding else {
            return Ok(stage);
        };
        let spaces = targets.iter().zip(&stage.readings).zip(&mut stage.tokens);
        for (((target, reading), found), needed) in spaces.zip(stage.candidates.needed()) {
            let generation = reading.generation;
            let read = self
                .tokens
                .complete(&target.scope, embedding, generation, needed, found);
            read.await?;
        }
        Ok(stage)
    }

    /// The best `k` of the candidates.
    pub(crate) async fn second_stage(
        &self,
        stage: Stage,
        k: usize,
    ) -> Result<(Stage, Vec<Ranked>), Fault> {
        let weights = self.calibration.weights.clone();
        self.compute(move || {
            let spaces = searched(&stage.readings, &stage.eligible, &stage.excerpts);
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

    async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        self.computing.run(work).await
    }
}

/// Threads that searches compute on, by priority. No more of a priority compute at once than there
/// are processors: a thread that waits for parallel parts takes up whatever else is there.
#[derive(Debug, Clone)]
pub(crate) struct SearchThreads {
    normal: Arc<Semaphore>,
    low: Arc<Semaphore>,
    priority: CallPriority,
}

impl SearchThreads {
    /// Threads of this machine, with normal priority.
    pub(crate) fn new() -> Self {
        let places = || Arc::new(Semaphore::new(rayon::current_num_threads()));
        Self {
            normal: places(),
            low: places(),
            priority: CallPriority::Normal,
        }
    }

    /// The same with this priority.
    pub(crate) fn with_priority(&self, priority: CallPriority) -> Self {
        Self {
            priority,
            ..self.clone()
        }
    }

    /// Runs work on the threads that its parallel parts run on: from elsewhere each part would have
    /// to wake them and wait.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let stopped = || Fault::internal("a search stopped");
        let places = match self.priority {
            CallPriority::Normal => &self.normal,
            CallPriority::Low => &self.low,
        };
        let permit = places.clone().acquire_owned().await;
        let permit = permit.map_err(|_| stopped())?;
        let (job, answer) = memfleet_background::job(move || {
            let done = work();
            drop(permit);
            done
        });
        match self.priority {
            CallPriority::Normal => rayon::spawn(job),
            CallPriority::Low => memfleet_background::spawn(BackgroundLane::Calls, job),
        }
        // A panic fails this search, not the process.
        answer.await.ok_or_else(stopped)
    }
}

/// The candidates, and those of their token vectors that are in memory.
fn chosen(
    readings: Vec<Reading>,
    meaning: Meaning,
    vectors: Option<QueryVectors>,
    weights: &Weights,
    reader: &TokenReader,
) -> Stage {
    let Meaning {
        eligible,
        plan,
        excerpts,
        lexical,
    } = meaning;
    let plan = plan.with_vectors(vectors);
    let spaces = searched(&readings, &eligible, &excerpts);
    let candidates = candidates(&spaces, &plan, lexical, weights);
    drop(spaces);
    let tokens = readings.iter().zip(candidates.needed());
    let tokens = tokens
        .map(|(reading, needed)| reader.cached(reading.generation, needed))
        .collect();
    Stage {
        readings,
        eligible,
        plan,
        excerpts,
        candidates,
        tokens,
    }
}

/// What the retrieval core sees of the spaces. Without excerpts only what an outline says is seen of those that are not held.
fn searched<'a>(
    readings: &'a [Reading],
    eligible: &[Eligible],
    excerpts: &'a [Option<Excerpt>],
) -> Vec<Searched<'a>> {
    let pairs = (0_usize..).zip(readings.iter().zip(eligible));
    pairs
        .map(|(space, (reading, eligible))| Searched {
            index: &reading.index,
            eligible: eligible.clone(),
            excerpt: excerpts.get(space).and_then(Option::as_ref),
        })
        .collect()
}
