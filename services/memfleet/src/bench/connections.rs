//! `memfleet bench connections`: whether the turns that connect two people or things are found, where the question names the two and none in
//! between (Amory section 3.3), without a language model.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use memfleet_domain::intent::Intent;
use memfleet_evaluation::connections::chat;
use memfleet_evaluation::{Question, Tally};
use memfleet_ports::knowledge::Stage;
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::Bench;
use super::arms::arms;
use super::retrieval::{asked, progress};
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;

/// Turns of an answer.
const DEPTH: usize = 10;

/// Arguments.
#[derive(Debug, Args)]
pub struct ConnectionsArgs {
    /// Which chat
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    seed: u64,
    turns: usize,
    #[serde(flatten)]
    ours: Measures,
    /// The same where details are asked for, which the graph has no part in, and the usual methods.
    arms: BTreeMap<&'static str, Measures>,
}

/// Shares in percent.
#[derive(Debug, Serialize)]
struct Measures {
    #[serde(flatten)]
    all: Shares,
    by_links: BTreeMap<usize, Shares>,
}

/// Of a chain's links among the first [`DEPTH`] turns.
#[derive(Debug, Serialize)]
struct Shares {
    chains: usize,
    /// The mean share.
    recall: f64,
    /// How often it is all of them.
    coverage: f64,
}

/// Remembers the chat, and asks for every chain.
pub async fn measure(
    args: &ConnectionsArgs,
    models: &ConfiguredModels,
) -> Result<Report, BoxError> {
    let chat = chat(args.seed);
    let bench = Bench::start(models).await?;
    let conversation = std::slice::from_ref(&chat.conversation);
    let corpus = Corpus::remember(&*bench.node.gateway, "connections", conversation).await?;
    bench.derived(&Stage::ALL).await?;
    let ours = run("memfleet", &*bench.node.gateway, &corpus, None).await?;
    let details = Intent {
        fine: true,
        ..Intent::default()
    };
    let plain = run("plain", &*bench.node.gateway, &corpus, Some(details)).await?;
    let mut others = BTreeMap::from([("plain", plain)]);
    for (name, gateway) in arms(&bench.node) {
        others.insert(name, run(name, &gateway, &corpus, None).await?);
    }
    bench.stop().await;
    Ok(Report {
        seed: args.seed,
        turns: chat.conversation.turns.len(),
        ours,
        arms: others,
    })
}

/// One method over all questions.
async fn run(
    name: &str,
    memory: &dyn Memory,
    corpus: &Corpus,
    intent: Option<Intent>,
) -> Result<Measures, BoxError> {
    let bar = progress(name, corpus.questions.len());
    let (mut all, mut by_links) = (Tally::default(), BTreeMap::<usize, Tally>::new());
    for question in &corpus.questions {
        let found = found(memory, corpus, question, intent).await?;
        all.add(question, &found);
        let links = by_links.entry(question.evidence.len()).or_default();
        links.add(question, &found);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let by_links = by_links.into_iter();
    Ok(Measures {
        all: Shares::of(&all),
        by_links: by_links
            .map(|(links, tally)| (links, Shares::of(&tally)))
            .collect(),
    })
}

/// The places of what is found, best first.
async fn found(
    memory: &dyn Memory,
    corpus: &Corpus,
    question: &Question,
    intent: Option<Intent>,
) -> Result<Vec<usize>, BoxError> {
    let mut query = asked(corpus, question, u32::try_from(DEPTH)?);
    query.intent = intent;
    let request = RecallRequest::from(query);
    let answer = memory.recall(&call(), request).await?;
    let hits = answer.hits.iter().map(|hit| &hit.turn.accepted.id);
    Ok(hits
        .filter_map(|id| corpus.places.get(id).copied())
        .collect())
}

impl Shares {
    fn of(tally: &Tally) -> Self {
        let at = |means: &BTreeMap<usize, f64>| means.get(&DEPTH).copied().unwrap_or_default();
        Self {
            chains: tally.recall.questions(),
            recall: at(&tally.recall.means()),
            coverage: at(&tally.coverage.means()),
        }
    }
}

impl Measures {
    /// Recall and coverage of all, and of each number of links.
    fn row(&self, name: &str) -> String {
        let shares = std::iter::once(&self.all).chain(self.by_links.values());
        let shares = shares.map(|it| format!("{:>9.1}{:>9.1}", it.recall, it.coverage));
        format!("{name:<10}{}", shares.collect::<String>())
    }

    fn heading(&self) -> String {
        let of_links = self.by_links.iter();
        let of_links =
            of_links.map(|(links, it)| format!("{:>18}", format!("{links} links ({})", it.chains)));
        let all = format!("all ({})", self.all.chains);
        format!("{:<10}{all:>18}{}", "", of_links.collect::<String>())
    }
}

impl Report {
    /// As a person reads it.
    pub fn table(&self) -> String {
        let (chains, turns, seed) = (self.ours.all.chains, self.turns, self.seed);
        let mut lines = vec![format!(
            "{chains} chains in {turns} turns (seed {seed}); recall@{DEPTH} and coverage@{DEPTH} of their links in percent"
        )];
        lines.push(self.ours.heading());
        lines.push(self.ours.row("memfleet"));
        lines.extend(self.arms.iter().map(|(name, arm)| arm.row(name)));
        lines.push(String::new());
        lines.join("\n")
    }
}
