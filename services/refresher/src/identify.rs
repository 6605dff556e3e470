//! A caller's word on two names: that they are of one entity, or that they are not. A version each time it changes.

use std::collections::HashMap;

use memfleet_domain::derivation::{Body, Change, ChangeKind, Derivation, Origin};
use memfleet_domain::graph::Identity;
use memfleet_domain::ids::{ChangeId, DerivationId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::knowledge::{Applied, Question, Revision, Rewrite};
use memfleet_ports::refresher::Naming;

use crate::LocalRefresher;
use crate::correct::TRIES;

impl LocalRefresher {
    pub(crate) async fn identify_names(
        &self,
        scope: &Scope,
        namings: &[Naming],
    ) -> Result<ChangeId, Fault> {
        for _ in 0..TRIES {
            let known = self.known(scope, namings).await?;
            let (said, new): (Vec<_>, Vec<_>) = namings.iter().partition(|naming| {
                let before = known.get(&id(naming));
                before.is_some_and(|before| says(before, naming))
            });
            let said = said.first().and_then(|naming| known.get(&id(naming)));
            let rewrite = match (said, new.is_empty()) {
                (Some(said), true) => return Ok(said.change),
                (None, true) => return Err(Fault::invalid("namings", "must not be empty")),
                (_, false) => self.naming(scope, &new, &known).await?,
            };
            let change = rewrite.change.id;
            if self.make(scope, rewrite, Vec::new()).await? != Applied::Stale {
                for naming in &new {
                    let what = if naming.identity.same {
                        "merged"
                    } else {
                        "split"
                    };
                    metrics::counter!("memfleet_names_told_total", "what" => what).increment(1);
                }
                return Ok(change);
            }
        }
        let message = "what is known of these names changed meanwhile: look at them again";
        Err(Fault::new(
            FaultKind::FailedPrecondition,
            "VERSION_CHANGED",
            message,
        ))
    }

    /// What was said of these pairs before.
    async fn known(
        &self,
        scope: &Scope,
        namings: &[Naming],
    ) -> Result<HashMap<DerivationId, Derivation>, Fault> {
        let question = Question {
            ids: namings.iter().map(id).collect(),
            withdrawn: true,
            ..Question::default()
        };
        // No condition on ids would be everything.
        if question.ids.is_empty() {
            return Ok(HashMap::new());
        }
        let known = self.knowledge.all_derivations(scope, &question).await?;
        Ok(known.into_iter().map(|it| (it.id, it)).collect())
    }

    async fn naming(
        &self,
        scope: &Scope,
        namings: &[&Naming],
        known: &HashMap<DerivationId, Derivation>,
    ) -> Result<Rewrite, Fault> {
        let versions = namings.iter().map(|naming| {
            let id = id(naming);
            let version = known.get(&id).map_or(1, |before| before.version + 1);
            (id, version)
        });
        let versions: Vec<(DerivationId, u32)> = versions.collect();
        let parts: Vec<Vec<u8>> = versions
            .iter()
            .map(|(id, version)| [&id.as_bytes()[..], &version.to_be_bytes()].concat())
            .collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let change = Change {
            id: ChangeId::of("identified", &parts),
            kind: ChangeKind::Corrected,
            at: self.clock.now(),
            reason: "a caller said which names are one".into(),
            conflict: None,
            reverts: None,
        };
        let language = self.indexer.language(scope).await?;
        let texts = namings
            .iter()
            .map(|naming| found_by(&naming.identity))
            .collect();
        let passages = self.indexer.passages(scope, texts, language).await?;
        let revisions = namings.iter().zip(versions).zip(passages);
        let revisions = revisions.map(|((naming, version), passage)| Revision {
            derivation: derivation(naming, version, change.id, change.at),
            passage: Some(passage),
        });
        Ok(Rewrite {
            revisions: revisions.collect(),
            change,
        })
    }
}

fn id(naming: &Naming) -> DerivationId {
    let identity = &naming.identity;
    DerivationId::of_identity(identity.entity.id, identity.other.id)
}

fn says(before: &Derivation, naming: &Naming) -> bool {
    let said = before.identity().map(|said| said.same);
    !before.is_withdrawn() && said == Some(naming.identity.same)
}

/// Text that a caller's word on two names is found by.
pub(crate) fn found_by(identity: &Identity) -> String {
    format!("{}, {}", identity.entity.name, identity.other.name)
}

fn derivation(
    naming: &Naming,
    (id, version): (DerivationId, u32),
    change: ChangeId,
    at: Timestamp,
) -> Derivation {
    Derivation {
        id,
        version,
        body: Body::Identity(Box::new(naming.identity.clone())),
        turns: naming.turns.clone(),
        valid: TimeRange::default(),
        known: TimeRange {
            start: Some(at),
            end: None,
        },
        origin: Origin::Corrected,
        change,
        succeeded_by: None,
    }
}
