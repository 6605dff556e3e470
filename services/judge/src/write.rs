//! New facts against current ones (AMA section 3.3, conflict detection).

use std::collections::BTreeMap;

use async_trait::async_trait;
use memfleet_agents::conflicts::{JUDGE, Verdict, judge};
use memfleet_domain::derivation::{Conflict, Derivation, Kind, Origin};
use memfleet_domain::ids::ConflictId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::events::Event;
use memfleet_ports::feed::Change;
use memfleet_ports::knowledge::{Applied, Progress, Question, Stage, Work};
use memfleet_workers::{Agent, Outcome};
use tracing::instrument;

use crate::LocalJudge;

#[async_trait]
impl Agent for LocalJudge {
    #[instrument(name = "judge", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let News { facts, to, more } = self.news(scope, reached).await?;
        let (statements, facts): (Vec<_>, Vec<_>) =
            facts.into_iter().partition(Derivation::is_statement);
        let mut found = self.statement_conflicts(scope, &statements).await?;
        for ((subject, attribute), new) in claims(facts) {
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
        Ok(Outcome::more_if(more || conflicts > 0))
    }
}

/// Changes that are looked at together where statements are new: each is searched for and read.
const STATEMENT_ROUND: u32 = 16;

/// New facts, and the change sequence up to which they are all.
struct News {
    facts: Vec<Derivation>,
    to: u64,
    /// True where there may be more behind it.
    more: bool,
}

/// Facts by subject and attribute.
type Claims = BTreeMap<(String, String), Vec<Derivation>>;

fn claims(facts: Vec<Derivation>) -> Claims {
    let mut claims = Claims::new();
    for derivation in facts {
        if let Some(fact) = derivation.fact() {
            let claim = (fact.claim.subject.clone(), fact.claim.attribute.clone());
            claims.entry(claim).or_default().push(derivation);
        }
    }
    claims
}

impl LocalJudge {
    /// Facts that were derived or changed since: all of them, or, where statements are among the
    /// first, those of some changes.
    async fn news(&self, scope: &Scope, reached: u64) -> Result<News, Fault> {
        let question = Question {
            kind: Some(Kind::Fact),
            after: reached,
            ..Question::default()
        };
        // Before the facts are read: what comes meanwhile is looked at again.
        let to = self.feed.head(scope).await?;
        let first = self
            .knowledge
            .derivations(scope, &question, STATEMENT_ROUND, None)
            .await?;
        let mut first = first.items.iter();
        if first.any(Derivation::is_statement) {
            let changes = self
                .feed
                .changes_after(scope, reached, STATEMENT_ROUND)
                .await?;
            return Ok(News {
                facts: self.changed_facts(scope, &changes.changes).await?,
                to: changes.reached,
                more: changes.more,
            });
        }
        let facts = self.knowledge.all_derivations(scope, &question).await?;
        let more = false;
        Ok(News { facts, to, more })
    }

    /// Facts among changes.
    pub(crate) async fn changed_facts(
        &self,
        scope: &Scope,
        changes: &[Change],
    ) -> Result<Vec<Derivation>, Fault> {
        let ids = changes.iter().filter_map(|change| match change {
            Change::Derived(derived) if derived.kind == Kind::Fact => Some(derived.id),
            _ => None,
        });
        let question = Question {
            ids: ids.collect(),
            ..Question::default()
        };
        // No condition on ids would be all of them.
        match question.ids.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self.knowledge.all_derivations(scope, &question).await?),
        }
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

    /// The conflicts of new facts with those beside them in time. What another one ends is that one's: a thousand values of an attribute are a
    /// thousand conflicts, not half a million.
    fn conflicts(&self, new: &[Derivation], related: &[Derivation]) -> Vec<Conflict> {
        let mut conflicts = BTreeMap::new();
        for one in new {
            for (other, verdict) in beside(one, related) {
                let id = ConflictId::of(one.id, other.id);
                conflicts
                    .entry(id)
                    .or_insert_with(|| self.conflict(id, verdict, JUDGE));
            }
        }
        conflicts.into_values().collect()
    }
}

/// Those that a fact excludes: the first that comes after it, and those before it that no other one ends first.
fn beside<'r>(one: &Derivation, related: &'r [Derivation]) -> Vec<(&'r Derivation, Verdict)> {
    let others = related.iter().filter(|other| other.id != one.id);
    let excluded = others.filter_map(|other| Some((other, judge(one, other)?)));
    let (mut before, after): (Vec<_>, Vec<_>) =
        excluded.partition(|(_, verdict)| verdict.newer == one.id);
    let place = |(other, _): &(&Derivation, Verdict)| (other.valid.start, other.known.start);
    before.sort_by_key(|it| std::cmp::Reverse(place(it)));
    let mut beside: Vec<(&Derivation, Verdict)> = Vec::new();
    for (other, verdict) in before {
        let is_ended = |by: &(&Derivation, Verdict)| {
            judge(other, by.0).is_some_and(|verdict| verdict.older == other.id)
        };
        // What a caller said is not ended by what was read.
        if other.origin == Origin::Corrected || !beside.iter().any(is_ended) {
            beside.push((other, verdict));
        }
    }
    beside.extend(after.into_iter().min_by_key(place));
    beside
}
