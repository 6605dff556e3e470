//! A fact that was never so has ended nothing: what it had ended holds again, and the judge looks at it once more. It is withdrawn by a caller, by
//! the turn that replaces its own, by a rebuild or by a better extractor; this finds it, whoever did.

use std::collections::{BTreeMap, HashSet};

use memfleet_domain::derivation::{Change, ChangeKind, Derivation, Kind};
use memfleet_domain::ids::{ChangeId, DerivationId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::{Question, Revision, Rewrite};

use crate::LocalRefresher;

impl LocalRefresher {
    /// The changes that open what facts had ended that were withdrawn after a change sequence.
    pub(crate) async fn reopened(
        &self,
        scope: &Scope,
        reached: u64,
    ) -> Result<Vec<Rewrite>, Fault> {
        let mut rewrites = Vec::new();
        for (subject, withdrawn) in self.withdrawn(scope, reached).await? {
            let question = Question {
                subject: Some(subject),
                ..facts()
            };
            for fact in self.knowledge.all_derivations(scope, &question).await? {
                if fact.succeeded_by.is_some_and(|by| withdrawn.contains(&by)) {
                    rewrites.push(self.reopening(scope, &fact).await?);
                }
            }
        }
        Ok(rewrites)
    }

    /// Facts that were withdrawn since, by subject. What another fact says was wrong has its place taken by that one.
    async fn withdrawn(
        &self,
        scope: &Scope,
        reached: u64,
    ) -> Result<BTreeMap<String, HashSet<DerivationId>>, Fault> {
        let question = Question {
            after: reached,
            ..facts()
        };
        let mut withdrawn: BTreeMap<String, HashSet<DerivationId>> = BTreeMap::new();
        for fact in self.knowledge.all_derivations(scope, &question).await? {
            let Some(draft) = fact.fact() else { continue };
            if fact.is_withdrawn() && fact.succeeded_by.is_none() {
                let of_subject = withdrawn.entry(draft.claim.subject.clone()).or_default();
                of_subject.insert(fact.id);
            }
        }
        Ok(withdrawn)
    }

    /// The fact as it was before anything took its place.
    async fn reopening(&self, scope: &Scope, fact: &Derivation) -> Result<Rewrite, Fault> {
        let versions = self.knowledge.versions(scope, fact.id).await?;
        let before = versions
            .iter()
            .rfind(|version| version.succeeded_by.is_none());
        let now = self.clock.now();
        let id = ChangeId::of(
            "reopened",
            &[fact.id.as_bytes(), &fact.version.to_be_bytes()],
        );
        let mut reopened = fact.next(id);
        // Where that version is past its retention, all that is left to say is when it began.
        reopened.valid = before.map_or(
            TimeRange {
                start: fact.valid.start,
                end: None,
            },
            |before| before.valid,
        );
        reopened.succeeded_by = None;
        reopened.known = TimeRange {
            start: Some(now),
            end: None,
        };
        let change = Change {
            id,
            kind: ChangeKind::Updated,
            at: now,
            reason: "what took its place was never so".into(),
            conflict: None,
            reverts: None,
        };
        let revisions = vec![Revision {
            derivation: reopened,
            passage: None,
        }];
        Ok(Rewrite { change, revisions })
    }
}

fn facts() -> Question {
    Question {
        kind: Some(Kind::Fact),
        withdrawn: true,
        ..Question::default()
    }
}
