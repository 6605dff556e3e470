//! What a round reads: the turns that changed, what was said before each, what is derived from them already.

use std::collections::HashMap;

use memfleet_agents::facts::sources;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, Changes};
use memfleet_ports::knowledge::{Question, WINDOW};

use super::Deriver;
use crate::extract::{ExtractedFacts, Extractor, Utterances};

/// Drafts with every turn that says a word of them, so that a forget of that turn takes them along.
/// One with a word that no turn of its window says is left out.
pub(super) fn traced_to_turns(window: &Utterances, drafts: Vec<Draft>) -> Vec<Draft> {
    // A statement in its own words draws on no other turn.
    let (statements, drafts): (Vec<_>, Vec<_>) = drafts.into_iter().partition(Draft::is_statement);
    if drafts.is_empty() {
        return statements;
    }
    window.read(|turn, before| {
        let traced = drafts.into_iter().filter_map(|draft| {
            let related = sources(&draft, turn, before)?;
            Some(Draft { related, ..draft })
        });
        statements.into_iter().chain(traced).collect()
    })
}

impl Deriver {
    /// The turns that were stored or changed.
    pub(super) async fn changed(
        &self,
        scope: &Scope,
        changes: &Changes,
    ) -> Result<Vec<Turn>, Fault> {
        let ids = changes.changes.iter().filter_map(|change| match change {
            Change::Stored(turn) => Some(turn.id),
            _ => None,
        });
        let ids: Vec<TurnId> = ids.collect();
        Ok(self.ledger.turns(scope, &ids).await?)
    }

    /// The facts, or the episodes, of these turns, withdrawn or not.
    pub(super) async fn known(
        &self,
        scope: &Scope,
        kind: Kind,
        turns: &[Turn],
    ) -> Result<Vec<Derivation>, Fault> {
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            kind: Some(kind),
            turns: turns.iter().map(|turn| turn.accepted.id).collect(),
            withdrawn: true,
            ..Question::default()
        };
        Ok(self.knowledge.all_derivations(scope, &question).await?)
    }

    /// Facts that each turn states, in the light of what was said before it, and that the topics in
    /// force let be.
    pub(super) async fn drafts(
        &self,
        scope: &Scope,
        turns: &[&Turn],
    ) -> Result<ExtractedFacts, Fault> {
        let windows = self.windows(scope, turns).await?;
        self.extracted(scope, &*self.extractor, windows).await
    }

    /// Each turn with what was said before it.
    pub(super) async fn windows(
        &self,
        scope: &Scope,
        turns: &[&Turn],
    ) -> Result<Vec<Utterances>, Fault> {
        let mut sessions: HashMap<&SessionId, Vec<Turn>> = HashMap::new();
        let mut windows = Vec::with_capacity(turns.len());
        for &turn in turns {
            let session = &turn.accepted.session;
            let follows = |before: &[Turn]| {
                let last = before.last();
                last.is_some_and(|last| last.position + 1 == turn.position)
            };
            let before = match sessions.remove(session) {
                Some(before) if follows(&before) => before,
                _ => {
                    self.ledger
                        .preceding(scope, turn.accepted.id, WINDOW)
                        .await?
                }
            };
            let mut window = before;
            windows.push(Utterances {
                before: window.clone(),
                turn: turn.clone(),
                statements: Vec::new(),
            });
            window.push(turn.clone());
            let surplus = window.len().saturating_sub(WINDOW as usize);
            window.drain(..surplus);
            sessions.insert(session, window);
        }
        Ok(windows)
    }

    /// Facts that an extractor finds in turns and that the topics in force let be.
    pub(super) async fn extracted(
        &self,
        scope: &Scope,
        extractor: &dyn Extractor,
        windows: Vec<Utterances>,
    ) -> Result<ExtractedFacts, Fault> {
        let locale = self.indexer.spaces.locale(scope).await?.unwrap_or_default();
        let read = windows.clone();
        let ExtractedFacts { by, drafts } = extractor.extract(scope, read, &locale).await?;
        let traced = move || {
            let traced = windows.iter().zip(drafts);
            traced
                .map(|(window, drafts)| traced_to_turns(window, drafts))
                .collect()
        };
        let traced = memfleet_background::compute(traced).await;
        let stopped = || Fault::internal("tracing facts stopped: see the log for the panic");
        let drafts = self.topics.admitted(scope, traced.ok_or_else(stopped)?);
        Ok(ExtractedFacts {
            by,
            drafts: drafts.await?,
        })
    }
}
