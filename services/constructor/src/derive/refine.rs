//! What the rules derived, read once more by a better extractor behind them. It has a position of its own: while the model is down, slow
//! or over its budget, the facts of the rules are in use, and the turns are read when it is back. What the rules took from words
//! that it takes something else from is withdrawn then; a caller's corrections stay.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::{ChangeId, DerivationId, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::Change;
use memfleet_ports::knowledge::{Progress, Rewrite, Stage};
use memfleet_workers::{Agent, Outcome, before};
use tracing::instrument;

use super::rebuild::is_of;
use super::{Deriver, overlap};
use crate::extract::{ExtractedFacts, REFINED};

/// Changes that are read together: each turn is a call to the model.
const ROUND: u32 = 8;

/// Follows every space behind the rules, with an extractor of its own.
#[derive(Clone)]
pub struct Refiner(pub Arc<Deriver>);

#[async_trait]
impl Agent for Refiner {
    #[instrument(name = "refine", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let deriver = &self.0;
        let changes = deriver.feed.changes_after(scope, reached, ROUND).await?;
        let turns = deriver.changed(scope, &changes).await?;
        let (read, failed) = self.read(scope, &turns).await;
        let rewrites = self.rewrites(scope, &turns, read).await?;
        let to = match &failed {
            None => changes.reached,
            Some((failed, _)) => {
                let is_failed =
                    |change: &Change| matches!(change, Change::Stored(turn) if turn.id == *failed);
                before(&*deriver.feed, scope, reached, &changes, is_failed).await?
            }
        };
        let progress = Progress {
            stage: Stage::Refine,
            from: reached,
            to,
        };
        let Some(written) = deriver.write(scope, rewrites, progress).await? else {
            return Ok(Outcome::More);
        };
        match failed {
            None => Ok(Outcome::more_if(changes.more || written > 0)),
            Some((_, fault)) => Err(fault),
        }
    }
}

impl Refiner {
    /// What the extractor finds in each of these turns, and the first on which it could not be asked. One that fails does not keep others from
    /// being read: what they say is kept, and that they are answered is how the model's adapter knows a bad input from a bad endpoint. After a
    /// second failure it is the endpoint, as far as anybody can tell now.
    async fn read<'t>(
        &self,
        scope: &Scope,
        turns: &'t [Turn],
    ) -> (Readings<'t>, Option<(TurnId, Fault)>) {
        let (mut read, mut failed) = (Readings::default(), None);
        for turn in turns.iter().filter(|turn| turn.replaced.is_none()) {
            match self.0.drafts(scope, &[turn]).await {
                Ok(ExtractedFacts { by, drafts }) => {
                    read.by = by;
                    let drafts = drafts.into_iter().map(|drafts| (turn, drafts));
                    read.turns.extend(drafts);
                }
                Err(_) if failed.is_some() => break,
                Err(fault) => failed = Some((turn.accepted.id, fault)),
            }
        }
        (read, failed)
    }

    /// What the extractor finds and nobody did, and what only the rules found.
    async fn rewrites(
        &self,
        scope: &Scope,
        turns: &[Turn],
        read: Readings<'_>,
    ) -> Result<Vec<Rewrite>, Fault> {
        let deriver = &self.0;
        let known = deriver.known(scope, Kind::Fact, turns).await?;
        let Readings { by, turns: read } = read;
        let found = read.iter().map(|(turn, drafts)| {
            let id = turn.accepted.id;
            let found = drafts.iter().map(|draft| Found::of(id, draft));
            (id, found.collect())
        });
        let found: HashMap<TurnId, Vec<Found>> = found.collect();
        let (standing, drafts): (Vec<&Turn>, Vec<_>) = read.into_iter().unzip();
        let mut rewrites = deriver
            .statements(scope, &standing, drafts, &known, &by)
            .await?;
        for turn in &standing {
            let id = turn.accepted.id;
            let is_refuted = |fact: &&Derivation| {
                is_of(fact, &REFINED)
                    && fact.turns[0] == id
                    && !fact.is_withdrawn()
                    && is_read_otherwise(fact, &found[&id])
            };
            let refuted: Vec<_> = known.iter().filter(is_refuted).collect();
            let change = ChangeId::of("refined", &[id.as_bytes(), by.as_bytes()]);
            let reason = "a better extractor reads its words otherwise";
            rewrites.extend(deriver.withdrawal(change, &refuted, reason));
        }
        Ok(rewrites)
    }
}

/// Facts that the extractor finds in each of some turns.
#[derive(Default)]
struct Readings<'t> {
    /// Name and version of the extractor.
    by: String,
    turns: Vec<(&'t Turn, Vec<Draft>)>,
}

/// A fact of the extractor.
struct Found {
    id: DerivationId,
    evidence: Range<u32>,
}

impl Found {
    fn of(turn: TurnId, draft: &Draft) -> Self {
        Self {
            id: DerivationId::of_fact(turn, &draft.claim, draft.is_negated()),
            evidence: draft.evidence.clone(),
        }
    }
}

/// Whether the extractor has facts of the same words and this is none of them: who takes nothing from words has not refuted what others
/// take from them.
fn is_read_otherwise(fact: &Derivation, found: &[Found]) -> bool {
    let Some(draft) = fact.fact() else {
        return false;
    };
    let is_of_same_words = |found: &Found| overlap(&found.evidence, &draft.evidence);
    found.iter().all(|found| found.id != fact.id) && found.iter().any(is_of_same_words)
}
