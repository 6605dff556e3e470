//! A language model as the extractor (AMA appendix C.1). What it says is checked word by word by the rules; a turn on which it talks
//! nonsense is read by the rules instead. While it cannot be asked at all, the turns wait for it: the rules have read them already.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_agents::facts::{claim, denies, is_supported};
use memfleet_domain::fact::{Clause, Draft};
use memfleet_domain::ids::TurnId;
use memfleet_domain::space::Locale;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::language_model::{Agent, LanguageModel, ModelFault};
use memfleet_prompts::facts::{Checks, Extraction, Facts};
use memfleet_prompts::handles::Turn;
use memfleet_prompts::{Press, Template};
use tokio::time::Instant;

use super::{Extractor, Rules, Utterances};

/// Longest time of one turn, with repair and retries.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(2);

/// Asks a model about each turn.
pub struct ModelExtractor {
    name: String,
    model: Arc<dyn LanguageModel>,
    press: Arc<Press>,
}

impl ModelExtractor {
    /// Its name is the model's and the prompt's.
    pub fn new(model: Arc<dyn LanguageModel>, press: Arc<Press>) -> Self {
        Self {
            name: format!("{} {}", model.name(Agent::Constructor), Facts::ID),
            model,
            press,
        }
    }

    /// What the model finds in a turn; nothing where what it says is of no use.
    async fn read(&self, scope: &Scope, turn: &Utterances) -> Result<Option<Vec<Draft>>, Fault> {
        let window = turn.before.iter().chain([&turn.turn]);
        let turns: Vec<Turn> = window.map(Turn::from).collect();
        let prompt = Facts {
            earlier: turns.len() - 1,
            turns: &turns,
            known: &[],
            checks: Checks {
                claim: &claim_of,
                is_supported: &supported,
            },
        };
        let deadline = Instant::now() + PATIENCE;
        let asked = self
            .press
            .ask(&*self.model, &scope.tenant, &prompt, deadline)
            .await;
        match asked {
            Ok(asked) => Ok(Some(taken(turn, asked.meant))),
            Err(fault) if fault.may_pass() => Err(fault.into()),
            Err(fault) => {
                count(&fault);
                Ok(None)
            }
        }
    }
}

#[async_trait]
impl Extractor for ModelExtractor {
    fn name(&self) -> &str {
        &self.name
    }

    async fn extract(
        &self,
        scope: &Scope,
        turns: Vec<Utterances>,
        locale: &Locale,
    ) -> Result<Vec<Vec<Draft>>, Fault> {
        let mut by_rules = HashMap::new();
        let mut drafts = Vec::with_capacity(turns.len());
        for (place, turn) in turns.iter().enumerate() {
            match self.read(scope, turn).await? {
                Some(found) => drafts.push(found),
                None => {
                    by_rules.insert(place, turn.clone());
                    drafts.push(Vec::new());
                }
            }
        }
        for (place, turn) in by_rules {
            let read = Rules.extract(scope, vec![turn], locale).await?;
            drafts[place] = read.into_iter().next().unwrap_or_default();
        }
        Ok(drafts)
    }
}

/// The facts of the turn itself; what was left out is counted.
fn taken(turn: &Utterances, extraction: Extraction) -> Vec<Draft> {
    for (why, dropped) in extraction.dropped.counts() {
        metrics::counter!("memfleet_model_facts_dropped_total", "why" => why)
            .increment(dropped.into());
    }
    let own = |(id, draft): (TurnId, Draft)| (id == turn.turn.accepted.id).then_some(draft);
    extraction.drafts.into_iter().filter_map(own).collect()
}

fn claim_of(clause: &Clause) -> memfleet_domain::fact::Claim {
    claim(clause)
}

/// Its words are those of the turn, or names from the window, and what it denies the turn denies.
fn supported(draft: &Draft, turn: &Turn, window: &[Turn]) -> bool {
    let speakers = window.iter().map(|turn| turn.speaker.as_str());
    let related = window
        .iter()
        .filter(|said| draft.related.contains(&said.id));
    let names: Vec<&str> = speakers
        .chain(related.map(|said| said.text.as_str()))
        .collect();
    let evidence = draft.evidence.start as usize..draft.evidence.end as usize;
    let is_denied = || turn.text.get(evidence).is_some_and(denies);
    is_supported(draft, &turn.text, &names) && (!draft.clause.negated || is_denied())
}

fn count(fault: &ModelFault) {
    metrics::counter!("memfleet_model_useless_total", "cause" => fault.cause()).increment(1);
    tracing::debug!(
        cause = fault.cause(),
        "the rules read a turn in the model's place"
    );
}
