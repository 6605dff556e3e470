//! What is injected by the shipped policy, gates and all, and by others, beside all memory that fits the same budget.

use std::collections::HashSet;
use std::path::Path;

use memfleet_domain::policy::Policy;
use memfleet_evaluation::{Dataset, Question};
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::{AssembleRequest, Assembled, AssembledItem, Assembly};
use memfleet_ports::knowledge::Stage;
use memfleet_ports::retriever::Query;
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::super::{Bench, query};
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;

/// Budgets in tokens.
const BUDGETS: [u32; 2] = [1_000, 4_000];
/// Candidates of a block: more turns than the larger budget holds.
const CANDIDATES: u32 = 250;

/// A data set.
#[derive(Debug, Serialize)]
pub struct File {
    file: String,
    questions: usize,
    /// A budget each.
    budgets: Vec<Kept>,
}

/// What is injected within a budget.
#[derive(Debug, Serialize)]
struct Kept {
    budget: u32,
    arms: Vec<Arm>,
}

/// What is injected under a policy.
#[derive(Debug, Serialize)]
struct Arm {
    /// `ungated` is all that fits, `shipped` the shipped policy, another one a file.
    policy: String,
    /// Questions whose evidence is all there, in percent.
    coverage: f64,
    /// Questions for which nothing is injected, in percent.
    skipped: f64,
    /// Mean tokens of the block.
    tokens: f64,
}

/// A policy to measure, over what is shipped.
#[derive(Debug, Clone)]
pub struct Named {
    name: String,
    policy: Policy,
}

impl Named {
    /// That of a file.
    pub fn read(path: &Path) -> Result<Self, BoxError> {
        Ok(Self {
            name: path.display().to_string(),
            policy: crate::cli::read_policy(path)?,
        })
    }

    /// What is compared: all that fits, what is shipped, and what others say.
    fn arms(others: &[Self]) -> Vec<(String, Option<Policy>)> {
        let mut arms = vec![
            ("ungated".to_owned(), None),
            ("shipped".to_owned(), Some(Policy::default())),
        ];
        let others = others.iter().cloned();
        arms.extend(others.map(|named| (named.name, Some(named.policy))));
        arms
    }
}

/// Asks every question of a file under every policy.
pub async fn measure(
    path: &Path,
    policies: &[Named],
    models: &ConfiguredModels,
) -> Result<File, BoxError> {
    let dataset = Dataset::load(path)?;
    let bench = Bench::start(models).await?;
    let gateway = bench.node.gateway.clone();
    let mut corpora = Vec::new();
    for (number, conversation) in dataset.conversations.iter().enumerate() {
        let name = format!("space-{number}");
        let conversation = std::slice::from_ref(conversation);
        corpora.push(Corpus::remember(&*gateway, &name, conversation).await?);
    }
    bench.derived(&Stage::ALL).await?;
    let mut budgets = Vec::new();
    for budget in BUDGETS {
        let mut arms = Vec::new();
        for (name, policy) in Named::arms(policies) {
            arms.push(within(&gateway, &corpora, budget, name, policy.as_ref()).await?);
        }
        budgets.push(Kept { budget, arms });
    }
    bench.stop().await;
    Ok(File {
        file: path.display().to_string(),
        questions: corpora.iter().map(|corpus| corpus.questions.len()).sum(),
        budgets,
    })
}

async fn within(
    gateway: &Gateway,
    corpora: &[Corpus],
    budget: u32,
    name: String,
    policy: Option<&Policy>,
) -> Result<Arm, BoxError> {
    let mut arm = Arm {
        policy: name,
        coverage: 0.0,
        skipped: 0.0,
        tokens: 0.0,
    };
    let mut asked = 0.0;
    for corpus in corpora {
        for question in &corpus.questions {
            let query = query(&corpus.space, question.text.clone(), CANDIDATES);
            let request = request(query, budget, policy);
            let answer = gateway.assemble(&call(), request).await?;
            arm.coverage += holds(corpus, question, &answer);
            arm.skipped += f64::from(u8::from(answer.items.is_empty()));
            arm.tokens += f64::from(answer.tokens);
            asked += 1.0;
        }
    }
    arm.coverage *= 100.0 / asked;
    arm.skipped *= 100.0 / asked;
    arm.tokens /= asked;
    Ok(arm)
}

/// A request under a policy; without one it is for all that fits.
fn request(query: Query, budget: u32, policy: Option<&Policy>) -> AssembleRequest {
    let Some(policy) = policy else {
        return AssembleRequest::ungated(query, budget);
    };
    let mut request = AssembleRequest::new(query);
    request.policy = policy.clone();
    request.policy.budget.max_tokens = Some(budget);
    request.policy.failure.deadline_ms = Some(60_000);
    request
}

/// Whether all evidence is in a block: 1 or 0.
fn holds(corpus: &Corpus, question: &Question, answer: &Assembled) -> f64 {
    let turns = answer.items.iter().filter_map(AssembledItem::turn);
    let places: HashSet<_> = turns.filter_map(|turn| corpus.places.get(&turn)).collect();
    let whole = question.evidence.iter().all(|place| places.contains(place));
    f64::from(u8::from(whole))
}

impl File {
    /// The figures for people.
    pub fn table(&self) -> String {
        let head = format!(
            "{} ({} questions)\n{:>8}{:>12}{:>12}{:>12}  policy",
            self.file, self.questions, "budget", "coverage %", "skipped %", "tokens"
        );
        let rows = self.budgets.iter().flat_map(|kept| {
            kept.arms.iter().map(|arm| {
                format!(
                    "{:>8}{:>12.1}{:>12.1}{:>12.0}  {}",
                    kept.budget, arm.coverage, arm.skipped, arm.tokens, arm.policy
                )
            })
        });
        std::iter::once(head)
            .chain(rows)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
