//! `memfleet bench topics`: how well the embedding models tell which statements belong to a topic,
//! on labelled sets, and what each threshold would do.

mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use memfleet_consolidator::Mode;
use memfleet_constructor::TopicMatcher;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::topic::{Topic, TopicAction};
use memfleet_ports::embedder::Embedder;
use memfleet_runtime::BoxError;
use serde::Deserialize;

use super::Bench;
use crate::cli::Error;
use crate::models::ConfiguredModels;

pub use report::TopicsReport;
use report::{ModelFigures, ScoredStatement};

/// Arguments.
#[derive(Debug, Args)]
pub struct TopicsArgs {
    /// Sets of labelled statements, one topic each (docs/topics.md)
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Topic with statements that belong to it and statements that do not.
#[derive(Debug, Deserialize)]
struct TopicSet {
    name: String,
    description: String,
    examples: Vec<String>,
    inside: Vec<LabelledStatement>,
    outside: Vec<LabelledStatement>,
}

/// Statement of a set.
#[derive(Debug, Deserialize)]
struct LabelledStatement {
    text: String,
    /// Code such as `en`.
    language: String,
    /// True for a statement outside that has words or a subject near the topic.
    #[serde(default)]
    near: bool,
}

/// Scores every statement of every set for its topic, by each configured model.
pub async fn measure(args: &TopicsArgs, models: &ConfiguredModels) -> Result<TopicsReport, Error> {
    let sets = args.files.iter().map(|path| read(path));
    let sets: Vec<TopicSet> = sets.collect::<Result<_, _>>()?;
    let bench = Bench::start_with(models, &[], Mode::None).await?;
    let embedder = bench.node.gateway.embedder.clone();
    let measured = by_models(&sets, models, embedder).await;
    bench.stop().await;
    Ok(measured?)
}

async fn by_models(
    sets: &[TopicSet],
    models: &ConfiguredModels,
    embedder: Arc<dyn Embedder>,
) -> Result<TopicsReport, BoxError> {
    let matcher = TopicMatcher::new(embedder.clone());
    let configured = [Some(&models.main), models.multilingual.as_ref()];
    let mut names: Vec<&str> = Vec::new();
    for model in configured.into_iter().flatten() {
        if !names.contains(&&*model.manifest().name) {
            names.push(&model.manifest().name);
        }
    }
    let mut figures = Vec::new();
    for name in names {
        let embedding = embedder.space_of(name).await?;
        let mut statements = Vec::new();
        for set in sets {
            statements.extend(scored(&matcher, &embedding, set).await?);
        }
        figures.push(ModelFigures::of(name, &statements));
    }
    Ok(TopicsReport {
        topics: sets.len(),
        models: figures,
    })
}

async fn scored(
    matcher: &TopicMatcher,
    embedding: &EmbeddingSpace,
    set: &TopicSet,
) -> Result<Vec<ScoredStatement>, BoxError> {
    let topic = Topic {
        name: set.name.clone(),
        action: TopicAction::Tag,
        description: set.description.clone(),
        examples: set.examples.clone(),
    };
    let labelled = set.inside.iter().map(|it| (it, true));
    let labelled = labelled.chain(set.outside.iter().map(|it| (it, false)));
    let labelled: Vec<_> = labelled.collect();
    let texts = labelled.iter().map(|(it, _)| it.text.clone()).collect();
    let scores = matcher.scores(embedding, &[topic], texts).await?;
    let pairs = labelled.into_iter().zip(scores);
    let scored = pairs.map(|((statement, is_inside), scores)| ScoredStatement {
        topic: set.name.clone(),
        score: scores.first().copied().unwrap_or_default(),
        is_inside,
        is_near: statement.near,
        is_english: statement.language == "en",
    });
    Ok(scored.collect())
}

fn read(path: &Path) -> Result<TopicSet, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path.to_owned()))?;
    let set = serde_json::from_str(&text);
    let problem =
        |error| BoxError::from(format!("{}: is no set of a topic: {error}", path.display()));
    Ok(set.map_err(problem)?)
}
