//! What is injected by the shipped policy, gates and all, beside all memory that fits the same budget.

use std::collections::HashSet;
use std::path::Path;

use memfleet_evaluation::{Dataset, Question};
use memfleet_gateway::Gateway;
use memfleet_models::ModelDirectory;
use memfleet_ports::assembly::{AssembleRequest, Assembled, AssembledItem, Assembly};
use memfleet_ports::knowledge::Stage;
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::super::{Bench, query};
use crate::corpus::{Corpus, call};

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
#[derive(Debug, Default, Serialize)]
struct Kept {
    budget: u32,
    /// Questions whose evidence is all there, in percent: of all that fits …
    ungated: f64,
    /// … and of what the shipped policy injects.
    shipped: f64,
    /// Questions for which nothing is injected, in percent.
    skipped: f64,
    /// Mean tokens of the block: of all that fits …
    ungated_tokens: f64,
    /// … and of what the shipped policy injects.
    shipped_tokens: f64,
}

/// Asks every question of a file both ways.
pub async fn measure(path: &Path, model: &ModelDirectory) -> Result<File, BoxError> {
    let dataset = Dataset::load(path)?;
    let bench = Bench::start(model).await?;
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
        budgets.push(within(&gateway, &corpora, budget).await?);
    }
    bench.stop().await;
    Ok(File {
        file: path.display().to_string(),
        questions: corpora.iter().map(|corpus| corpus.questions.len()).sum(),
        budgets,
    })
}

async fn within(gateway: &Gateway, corpora: &[Corpus], budget: u32) -> Result<Kept, BoxError> {
    let mut kept = Kept {
        budget,
        ..Kept::default()
    };
    let mut asked = 0.0;
    for corpus in corpora {
        for question in &corpus.questions {
            let query = || query(&corpus.space, question.text.clone(), CANDIDATES);
            let ungated = AssembleRequest::ungated(query(), budget);
            let ungated = gateway.assemble(&call(), ungated).await?;
            let mut shipped = AssembleRequest::new(query());
            shipped.policy.budget.max_tokens = Some(budget);
            shipped.policy.failure.deadline_ms = Some(60_000);
            let shipped = gateway.assemble(&call(), shipped).await?;
            kept.ungated += holds(corpus, question, &ungated);
            kept.shipped += holds(corpus, question, &shipped);
            kept.skipped += f64::from(u8::from(shipped.items.is_empty()));
            kept.ungated_tokens += f64::from(ungated.tokens);
            kept.shipped_tokens += f64::from(shipped.tokens);
            asked += 1.0;
        }
    }
    for share in [&mut kept.ungated, &mut kept.shipped, &mut kept.skipped] {
        *share *= 100.0 / asked;
    }
    kept.ungated_tokens /= asked;
    kept.shipped_tokens /= asked;
    Ok(kept)
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
            "{} ({} questions)\n{:>8}{:>12}{:>12}{:>12}{:>16}{:>16}",
            self.file,
            self.questions,
            "budget",
            "ungated %",
            "shipped %",
            "skipped %",
            "ungated tokens",
            "shipped tokens"
        );
        let rows = self.budgets.iter().map(|kept| {
            format!(
                "{:>8}{:>12.1}{:>12.1}{:>12.1}{:>16.0}{:>16.0}",
                kept.budget,
                kept.ungated,
                kept.shipped,
                kept.skipped,
                kept.ungated_tokens,
                kept.shipped_tokens
            )
        });
        std::iter::once(head)
            .chain(rows)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
