//! Settling conflicts (AMA section 3.4, update): the older fact's interval is closed where the
//! newer one begins, both are linked, and nothing is removed. What a caller corrected is for no
//! agent to decide: such a conflict stays open.

use async_trait::async_trait;
use memfleet_agents::conflicts::WITHDRAWN_JUDGES;
use memfleet_domain::derivation::{
    Change, ChangeKind, Conflict, Contradiction, Derivation, Origin, Status,
};
use memfleet_domain::ids::{ChangeId, ConflictId, DerivationId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::{Applied, Progress, Question, Revision, Rewrite, Stage, Work};
use memfleet_workers::{Agent, Outcome};

use crate::LocalRefresher;

/// Conflicts settled in one round.
const ROUND: u32 = 64;

/// How often a conflict is settled on a newer state before it waits for the next look.
const TRIES: u32 = 3;

#[async_trait]
impl Agent for LocalRefresher {
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let to = self.feed.head(scope).await?;
        let found = self
            .knowledge
            .conflicts(scope, &[Status::Found], ROUND, None)
            .await?;
        for conflict in &found.items {
            if !self.settle(scope, conflict).await? {
                return Ok(Outcome::Done);
            }
        }
        if !found.items.is_empty() {
            return Ok(Outcome::More);
        }
        let rewrites = self.reopened(scope, reached).await?;
        let is_reopened = !rewrites.is_empty();
        let work = Work {
            rewrites,
            progress: Some(Progress {
                stage: Stage::Settle,
                from: reached,
                to,
            }),
            ..Work::default()
        };
        if self.knowledge.apply(scope, work).await? == Applied::Stale {
            return Ok(Outcome::More);
        }
        if is_reopened {
            self.events.announce(Event::Derived {
                scope: scope.clone(),
            });
        }
        Ok(Outcome::Done)
    }
}

impl LocalRefresher {
    /// Settles one conflict on the facts as they are now, once more where they changed meanwhile;
    /// false where they go on changing, or the space is gone: the next look at it finds what is
    /// left.
    async fn settle(&self, scope: &Scope, conflict: &Conflict) -> Result<bool, Fault> {
        for _ in 0..TRIES {
            let [older, newer] = [
                self.fact(scope, conflict.older).await?,
                self.fact(scope, conflict.newer).await?,
            ];
            let (status, rewrite) = match (older, newer) {
                (Some(older), Some(newer)) => self.decide(conflict, &older, &newer),
                // Forgotten since: nothing is left to settle.
                _ => (Status::Settled, None),
            };
            let work = Work {
                rewrites: rewrite.into_iter().collect(),
                settled: vec![(conflict.id, status)],
                ..Work::default()
            };
            if self.knowledge.apply(scope, work).await? != Applied::Stale {
                metrics::counter!("memfleet_conflicts_total", "status" => name(status))
                    .increment(1);
                self.events.announce(Event::Derived {
                    scope: scope.clone(),
                });
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn fact(&self, scope: &Scope, id: DerivationId) -> Result<Option<Derivation>, Fault> {
        let question = Question {
            ids: vec![id],
            ..Question::default()
        };
        let page = self
            .knowledge
            .derivations(scope, &question, 1, None)
            .await?;
        Ok(page.items.into_iter().next())
    }

    fn decide(
        &self,
        conflict: &Conflict,
        older: &Derivation,
        newer: &Derivation,
    ) -> (Status, Option<Rewrite>) {
        if WITHDRAWN_JUDGES.contains(&conflict.judge.as_str()) {
            return (Status::Dismissed, None);
        }
        let ends = conflict.ends.or(older.valid.start);
        let is_closed = older
            .valid
            .end
            .is_some_and(|end| ends.is_some_and(|ends| end <= ends));
        if is_closed {
            return (Status::Settled, None);
        }
        if older.origin == Origin::Corrected && newer.origin != Origin::Corrected {
            return (Status::Open, None);
        }
        let id = settling(conflict.id, older.version);
        let now = self.clock.now();
        let mut closed = older.next(id);
        closed.valid.end = ends;
        closed.succeeded_by = Some(newer.id);
        closed.known = TimeRange {
            start: Some(now),
            end: None,
        };
        let change = Change {
            id,
            kind: ChangeKind::Updated,
            at: now,
            reason: reason(conflict.contradiction).into(),
            conflict: Some(conflict.id),
            reverts: None,
        };
        let revisions = vec![Revision {
            derivation: closed,
            passage: None,
        }];
        (Status::Settled, Some(Rewrite { change, revisions }))
    }
}

/// The change by which a conflict closes this version.
pub(crate) fn settling(conflict: ConflictId, version: u32) -> ChangeId {
    ChangeId::of("updated", &[conflict.as_bytes(), &version.to_be_bytes()])
}

fn reason(contradiction: Contradiction) -> &'static str {
    match contradiction {
        Contradiction::Functional => "a newer fact gives the attribute another value",
        Contradiction::Negation => "a newer fact denies it",
        Contradiction::Number => "a newer fact gives another number",
        Contradiction::Correction => "a newer fact says that it was wrong",
    }
}

fn name(status: Status) -> &'static str {
    match status {
        Status::Found => "found",
        Status::Settled => "settled",
        Status::Open => "open",
        Status::Dismissed => "dismissed",
        Status::Possible => "possible",
    }
}
