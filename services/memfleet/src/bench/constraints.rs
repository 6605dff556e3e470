//! `memfleet bench constraints`: whether all requirements of a task are found in a long chat about many (Amory section 4.4), without a
//! language model: a question a task, answered with as many turns as there are requirements and five more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use clap::Args;
use memfleet_consolidator::Mode;
use memfleet_domain::Scope;
use memfleet_domain::derivation::Kind;
use memfleet_evaluation::Question;
use memfleet_evaluation::clusters::{Agreement, agreement};
use memfleet_evaluation::constraints::{Chat, Sign, chat, most_tasks};
use memfleet_ports::knowledge::{Question as Fragments, Stage};
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::arms::arms;
use super::retrieval::{asked, progress};
use super::{Bench, percent};
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;

/// Turns that an answer may have beyond the requirements.
const MORE: usize = 5;

/// Arguments.
#[derive(Debug, Args)]
pub struct ConstraintsArgs {
    /// Which chat
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many tasks it is about; at most, and by default, all that there are wordings for
    #[arg(long, value_name = "N", value_parser = tasks, default_value_t = most_tasks())]
    tasks: usize,
    /// When narratives are put together: `momentum` when nobody speaks of them any more, `rapid` with each fragment, `none` never
    #[arg(long, value_name = "WHEN", value_parser = consolidation, default_value = "momentum")]
    consolidation: Mode,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

pub fn consolidation(text: &str) -> Result<Mode, String> {
    let mode = serde_json::from_value(text.into());
    mode.map_err(|_| "expected momentum, rapid or none".to_owned())
}

fn tasks(text: &str) -> Result<usize, String> {
    let most = most_tasks();
    let tasks = text.parse().ok().filter(|tasks| (2..=most).contains(tasks));
    tasks.ok_or_else(|| format!("expected a number from 2 to {most}"))
}

/// What was measured. Shares are percentages.
#[derive(Debug, Serialize)]
pub struct Report {
    seed: u64,
    consolidation: Mode,
    tasks: usize,
    turns: usize,
    constraints: usize,
    /// The mean over the tasks of the share of their requirements that is found.
    recall: f64,
    /// The same of the usual methods.
    arms: BTreeMap<&'static str, f64>,
    /// The share of requirements that is found, by what they can be known by.
    by_sign: BTreeMap<Sign, f64>,
    /// The narratives that the chat was told apart into.
    stories: Stories,
}

/// Narratives beside the tasks that were planted.
#[derive(Debug, Serialize)]
struct Stories {
    narratives: usize,
    fragments: usize,
    /// Of a turn's narrative with its task.
    agreement: Agreement,
    /// How far a fragment is of one task.
    fragment_homogeneity: f64,
}

/// Remembers the chat, and asks for every task.
pub async fn measure(
    args: &ConstraintsArgs,
    models: &ConfiguredModels,
) -> Result<Report, BoxError> {
    let chat = chat(args.seed, args.tasks);
    let bench = Bench::start_with(models, &Stage::ALL, args.consolidation).await?;
    let conversation = std::slice::from_ref(&chat.conversation);
    let corpus = Corpus::remember(&*bench.node.gateway, "tasks", conversation).await?;
    bench.derived(&Stage::ALL).await?;
    let ours = Method::run("memfleet", &*bench.node.gateway, &corpus).await?;
    let mut others = BTreeMap::new();
    for (name, gateway) in arms(&bench.node) {
        let arm = Method::run(name, &gateway, &corpus).await?;
        others.insert(name, arm.recall(&corpus.questions));
    }
    let stories = stories(&bench, &corpus, &chat).await?;
    bench.stop().await;
    Ok(Report {
        seed: args.seed,
        consolidation: args.consolidation,
        tasks: args.tasks,
        turns: chat.conversation.turns.len(),
        constraints: chat.signs.iter().flatten().count(),
        recall: ours.recall(&corpus.questions),
        arms: others,
        by_sign: ours.by_sign(&chat),
        stories,
    })
}

/// What the chat was told apart into, beside what was planted.
async fn stories(bench: &Bench, corpus: &Corpus, chat: &Chat) -> Result<Stories, BoxError> {
    let question = Fragments {
        kind: Some(Kind::Fragment),
        ..Fragments::default()
    };
    let scope = Scope {
        tenant: call().tenant,
        space: corpus.space.clone(),
    };
    let knowledge = &bench.node.gateway.knowledge;
    let fragments = knowledge.all_derivations(&scope, &question).await?;
    let (mut by_narrative, mut by_fragment) = (Vec::new(), Vec::new());
    let mut narratives = HashSet::new();
    for (derivation, fragment) in fragments.iter().filter_map(|it| Some((it, it.fragment()?))) {
        narratives.insert(fragment.narrative);
        let places = derivation
            .turns
            .iter()
            .filter_map(|turn| corpus.places.get(turn));
        for &place in places {
            by_narrative.push((fragment.narrative, chat.stories[place]));
            by_fragment.push((derivation.id, chat.stories[place]));
        }
    }
    Ok(Stories {
        narratives: narratives.len(),
        fragments: fragments.len(),
        agreement: agreement(&by_narrative),
        fragment_homogeneity: agreement(&by_fragment).homogeneity,
    })
}

/// What one method found.
struct Method {
    /// The requirements that were found, for each question.
    found: Vec<HashSet<usize>>,
}

impl Method {
    async fn run(name: &str, memory: &dyn Memory, corpus: &Corpus) -> Result<Self, BoxError> {
        let bar = progress(name, corpus.questions.len());
        let mut found = Vec::with_capacity(corpus.questions.len());
        for question in &corpus.questions {
            let k = u32::try_from(question.evidence.len() + MORE)?;
            let request = RecallRequest::from(asked(corpus, question, k));
            let answer = memory.recall(&call(), request).await?;
            let hits = answer.hits.iter().map(|hit| &hit.turn.accepted.id);
            let places = hits.filter_map(|id| corpus.places.get(id).copied());
            found.push(
                places
                    .filter(|place| question.evidence.contains(place))
                    .collect(),
            );
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(Self { found })
    }

    fn recall(&self, questions: &[Question]) -> f64 {
        let shares = self.found.iter().zip(questions);
        let shares = shares.map(|(found, asked)| percent(found.len(), asked.evidence.len()));
        shares.sum::<f64>() / questions.len().max(1) as f64
    }

    fn by_sign(&self, chat: &Chat) -> BTreeMap<Sign, f64> {
        let found: HashSet<usize> = self.found.iter().flatten().copied().collect();
        let mut counts: HashMap<Sign, (usize, usize)> = HashMap::new();
        for (place, sign) in chat.signs.iter().enumerate() {
            if let Some(sign) = sign {
                let (part, whole) = counts.entry(*sign).or_default();
                *part += usize::from(found.contains(&place));
                *whole += 1;
            }
        }
        let shares = counts.into_iter();
        shares
            .map(|(sign, (part, whole))| (sign, percent(part, whole)))
            .collect()
    }
}

impl Report {
    /// As a person reads it.
    pub fn table(&self) -> String {
        let (tasks, constraints, turns, seed) =
            (self.tasks, self.constraints, self.turns, self.seed);
        let mut lines = vec![format!(
            "{constraints} constraints of {tasks} tasks in {turns} turns (seed {seed}); {MORE} more turns are asked for than a task has; percent"
        )];
        let row = |name: &str, share: f64| format!("{name:<40}{share:>8.1}");
        lines.push(row("constraint recall", self.recall));
        lines.extend(self.arms.iter().map(|(name, share)| row(name, *share)));
        let kinds = self.by_sign.iter();
        lines.extend(kinds.map(|(sign, share)| row(sign.describe(), *share)));
        let stories = &self.stories;
        let counted = |name: &str, count: usize| format!("{name:<40}{count:>8}");
        lines.push(counted("narratives", stories.narratives));
        lines.push(counted("fragments", stories.fragments));
        let measured = |name: &str, value: f64| format!("{name:<40}{value:>8.3}");
        lines.push(measured(
            "V-measure of narratives with tasks",
            stories.agreement.v_measure,
        ));
        lines.push(measured(
            "adjusted Rand index of the same",
            stories.agreement.adjusted_rand,
        ));
        lines.push(measured(
            "homogeneity of fragments",
            stories.fragment_homogeneity,
        ));
        lines.push(String::new());
        lines.join("\n")
    }
}
