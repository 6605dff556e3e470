//! Reading of turns by a language model, behind the reader of turns. It has a position of its own:
//! while the model is down, slow or over its budget, the statements that are there are in use, and
//! the turns are read when it is back. Statements in their own words get the clauses of its facts,
//! and stay as they are otherwise. Where no reader is configured it finds facts of its own. A
//! caller's corrections stay.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, Changes};
use memfleet_ports::knowledge::{Progress, Rewrite, Stage};
use memfleet_workers::{Agent, Outcome, before, worked_through};
use tracing::instrument;

use super::Deriver;
use super::clauses::statements_of;
use crate::extract::{ExtractedFacts, Extractor};

/// Changes that are read together: each turn is a call to the model.
const ROUND: u32 = 8;

/// Follows every space behind the deriver, with a language model.
#[derive(Clone)]
pub struct Refiner {
    /// Derives facts without the model; writes those of the model.
    pub deriver: Arc<Deriver>,
    /// The model.
    pub model: Arc<dyn Extractor>,
}

#[async_trait]
impl Agent for Refiner {
    #[instrument(name = "refine", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let deriver = &self.deriver;
        let (changes, turns) = self.changed(scope, reached).await?;
        let known = deriver.known(scope, Kind::Fact, &turns).await?;
        let (read, failed) = self.read(scope, &turns, &known).await;
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
    /// Changes behind `reached` and the turns among them. Statements are derived before a model
    /// gives them clauses.
    async fn changed(&self, scope: &Scope, reached: u64) -> Result<(Changes, Vec<Turn>), Fault> {
        let deriver = &self.deriver;
        let changes = deriver.feed.changes_after(scope, reached, ROUND).await?;
        let turns = deriver.changed(scope, &changes).await?;
        if turns.is_empty() || !deriver.extractor.gives_statements() {
            return Ok((changes, turns));
        }
        let (feed, knowledge) = (&*deriver.feed, &*deriver.knowledge);
        let changes = worked_through(feed, knowledge, scope, Stage::Derive, reached, ROUND).await?;
        let turns = deriver.changed(scope, &changes).await?;
        Ok((changes, turns))
    }

    /// Facts that the model finds in each of these turns, and the first turn on which it could not
    /// be asked. One that fails does not keep others from being read: what they say is kept, and
    /// that they are answered is how the model's adapter knows a bad input from a bad endpoint.
    /// After a second failure it is the endpoint, as far as can be told now.
    async fn read<'t>(
        &self,
        scope: &Scope,
        turns: &'t [Turn],
        known: &[Derivation],
    ) -> (Readings<'t>, Option<(TurnId, Fault)>) {
        let (mut read, mut failed) = (Readings::default(), None);
        for turn in turns.iter().filter(|turn| turn.replaced.is_none()) {
            let id = turn.accepted.id;
            let Some(statements) = self.deriver.asked_about(known, id) else {
                continue;
            };
            match self.facts(scope, turn, &statements).await {
                Ok(ExtractedFacts { by, drafts }) => {
                    read.by = by;
                    let is_stated = !statements.is_empty();
                    let drafts = drafts.into_iter().map(|drafts| Reading {
                        turn,
                        drafts,
                        is_stated,
                    });
                    read.turns.extend(drafts);
                }
                Err(_) if failed.is_some() => break,
                Err(fault) => failed = Some((id, fault)),
            }
        }
        (read, failed)
    }

    /// Facts that the model finds in a turn with these statements.
    async fn facts(
        &self,
        scope: &Scope,
        turn: &Turn,
        statements: &[&Derivation],
    ) -> Result<ExtractedFacts, Fault> {
        let mut windows = self.deriver.windows(scope, &[turn]).await?;
        for window in &mut windows {
            window.statements = statements.iter().copied().cloned().collect();
        }
        self.deriver.extracted(scope, &*self.model, windows).await
    }

    /// The changes by which statements get clauses, and the facts of turns without statements.
    async fn rewrites(
        &self,
        scope: &Scope,
        turns: &[Turn],
        read: Readings<'_>,
    ) -> Result<Vec<Rewrite>, Fault> {
        let deriver = &self.deriver;
        // The model took its time.
        let known = deriver.known(scope, Kind::Fact, turns).await?;
        let Readings { by, turns: read } = read;
        let (stated, read): (Vec<_>, Vec<_>) = read.into_iter().partition(|it| it.is_stated);
        let read = read.into_iter().map(|it| (it.turn, it.drafts));
        let (standing, drafts): (Vec<&Turn>, Vec<_>) = read.unzip();
        let mut rewrites = deriver
            .statements(scope, &standing, drafts, &known, &by)
            .await?;
        for Reading { turn, drafts, .. } in stated {
            let statements = statements_of(&known, turn.accepted.id);
            rewrites.extend(deriver.clauses(scope, &statements, drafts, &by).await?);
        }
        Ok(rewrites)
    }
}

/// Facts that the model finds in some turns.
#[derive(Default)]
struct Readings<'t> {
    /// Name and version of the model and its prompt.
    by: String,
    turns: Vec<Reading<'t>>,
}

/// Facts that the model finds in a turn.
struct Reading<'t> {
    turn: &'t Turn,
    drafts: Vec<Draft>,
    /// True where they give clauses to statements.
    is_stated: bool,
}
