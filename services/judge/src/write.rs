//! New facts against current ones (AMA section 3.3, conflict detection).

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use memfleet_agents::conflicts::{JUDGE, judge};
use memfleet_domain::derivation::{Conflict, Derivation, Kind};
use memfleet_domain::ids::ConflictId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::{Applied, Progress, Question, Stage, Work};
use memfleet_workers::{Agent, Outcome};
use tracing::instrument;

use crate::LocalJudge;

#[async_trait]
impl Agent for LocalJudge {
    #[instrument(name = "judge", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        // Before the facts are read: what comes meanwhile is looked at again.
        let to = self.feed.head(scope).await?;
        let mut found = Vec::new();
        for ((subject, attribute), new) in self.new_facts(scope, reached).await? {
            let related = self.related(scope, subject, attribute).await?;
            found.extend(self.conflicts(&new, &related));
        }
        let conflicts = found.len();
        let work = Work {
            found,
            progress: Some(Progress {
                stage: Stage::Judge,
                from: reached,
                to,
            }),
            ..Work::default()
        };
        if self.knowledge.apply(scope, work).await? == Applied::Stale {
            return Ok(Outcome::More);
        }
        if conflicts > 0 {
            self.events.announce(Event::Derived {
                scope: scope.clone(),
            });
        }
        Ok(Outcome::more_if(conflicts > 0))
    }
}

/// Facts by subject and attribute.
type Claims = BTreeMap<(String, String), Vec<Derivation>>;

impl LocalJudge {
    /// What was derived or changed since.
    async fn new_facts(&self, scope: &Scope, reached: u64) -> Result<Claims, Fault> {
        let question = Question {
            kind: Some(Kind::Fact),
            after: reached,
            ..Question::default()
        };
        let mut claims = Claims::new();
        for derivation in self.knowledge.all_derivations(scope, &question).await? {
            if let Some(fact) = derivation.fact() {
                let claim = (fact.claim.subject.clone(), fact.claim.attribute.clone());
                claims.entry(claim).or_default().push(derivation);
            }
        }
        Ok(claims)
    }

    /// What is known of a subject's attribute.
    async fn related(
        &self,
        scope: &Scope,
        subject: String,
        attribute: String,
    ) -> Result<Vec<Derivation>, Fault> {
        let question = Question {
            kind: Some(Kind::Fact),
            subject: Some(subject),
            attribute: Some(attribute),
            ..Question::default()
        };
        Ok(self.knowledge.all_derivations(scope, &question).await?)
    }

    fn conflicts(&self, new: &[Derivation], related: &[Derivation]) -> Vec<Conflict> {
        let mut judged = BTreeSet::new();
        let mut conflicts = Vec::new();
        for one in new {
            for other in related.iter().filter(|other| other.id != one.id) {
                let id = ConflictId::of(one.id, other.id);
                if judged.insert(id) {
                    conflicts
                        .extend(judge(one, other).map(|verdict| self.conflict(id, verdict, JUDGE)));
                }
            }
        }
        conflicts
    }
}
