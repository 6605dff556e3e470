//! Decisions of callers about a fact or a naming, put back with its history: from an export, in
//! place of what agents derived here.

use memfleet_domain::derivation::{Body, DecidedMemory};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::{Applied, RestoredHistory};
use memfleet_ports::ledger::Passage;

use crate::LocalRefresher;
use crate::correct::TRIES;

impl LocalRefresher {
    pub(crate) async fn restore_memory(
        &self,
        scope: &Scope,
        memory: &DecidedMemory,
    ) -> Result<bool, Fault> {
        let id = match (memory.problem(), memory.id()) {
            (None, Some(id)) => id,
            (problem, _) => return Err(Fault::invalid("memory", problem.unwrap_or("is empty"))),
        };
        let passages = self.passages_of(scope, memory).await?;
        for _ in 0..TRIES {
            let known = self.knowledge.decided_memory(scope, id).await?;
            if !memory.adds_to(&known) {
                return Ok(false);
            }
            let current = known.versions.last();
            let restoration = RestoredHistory {
                memory: memory.clone(),
                passages: passages.clone(),
                instead_of: current.map_or(0, |version| version.derivation.version),
            };
            if self.knowledge.restore(scope, restoration).await? != Applied::Stale {
                self.events.announce(Event::Derived {
                    scope: scope.clone(),
                });
                return Ok(true);
            }
        }
        let message = format!("memory {id} has changed meanwhile: import it again");
        Err(Fault::new(
            FaultKind::FailedPrecondition,
            "VERSION_CHANGED",
            message,
        ))
    }

    /// For each version what it is found by; none where that is the same as before.
    async fn passages_of(
        &self,
        scope: &Scope,
        memory: &DecidedMemory,
    ) -> Result<Vec<Option<Passage>>, Fault> {
        let versions = memory.versions.iter();
        let texts: Vec<String> = versions
            .map(|version| found_by(&version.derivation.body))
            .collect();
        let is_new = |place: usize| place == 0 || texts[place] != texts[place - 1];
        let new = (0..texts.len()).filter(|place| is_new(*place));
        let new: Vec<String> = new.map(|place| texts[place].clone()).collect();
        let language = self.indexer.language(scope).await?;
        let mut passages = self
            .indexer
            .passages(scope, new, language)
            .await?
            .into_iter();
        let found_by = (0..texts.len()).map(|place| match is_new(place) {
            true => passages.next(),
            false => None,
        });
        Ok(found_by.collect())
    }
}

fn found_by(body: &Body) -> String {
    match body {
        Body::Fact(fact) => fact.text.clone(),
        Body::Identity(identity) => crate::identify::found_by(identity),
        Body::Episode(_) | Body::Fragment(_) | Body::Narrative(_) => String::new(),
    }
}
