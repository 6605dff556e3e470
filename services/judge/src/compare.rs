//! New facts against current ones, by a language model (AMA appendix C.5), with a position of its
//! own: it sees contradictions in what the facts mean. What it names are facts of one subject that
//! were shown to it; which of the two is older, that it is not over already, and whether its end is
//! more than a question to a person, `conflicts::judged` says. Of statements in their own words it
//! is asked about the possible changes that the judge noted (`possible`).

mod possible;

use std::collections::BTreeMap;

use async_trait::async_trait;
use memfleet_agents::conflicts::{Judged, judged};
use memfleet_domain::derivation::{Conflict, Derivation, Kind, Status};
use memfleet_domain::ids::ConflictId;
use memfleet_domain::time::AsOf;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::{Applied, Progress, Question, Stage, Work};
use memfleet_ports::language_model;
use memfleet_prompts::Adviser;
use memfleet_prompts::conflicts::{Comparing, Exclusion, Relation, Sentence};
use memfleet_workers::{Agent, Outcome, worked_through};
use tracing::instrument;

use crate::LocalJudge;

/// Changes that are looked at together.
const ROUND: u32 = 32;
/// Changes that are looked at together where statements are new: each has some possible changes.
const STATEMENT_ROUND: u32 = 8;
/// Facts of a subject that its new ones are compared with: those of the same attributes first, then
/// the latest.
const SHOWN: usize = 40;
/// Below this a model is too doubtful to close anything.
const DOUBTFUL: f32 = 0.6;

/// Compares behind the judge.
#[derive(Clone)]
pub struct Comparer {
    /// The judge.
    pub judge: LocalJudge,
    /// What compares.
    pub adviser: Adviser,
}

#[async_trait]
impl Agent for Comparer {
    #[instrument(name = "compare", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let judge = &self.judge;
        let mut changes = judge.feed.changes_after(scope, reached, ROUND).await?;
        let mut new = judge.changed_facts(scope, &changes.changes).await?;
        if new.iter().any(Derivation::is_statement) {
            let (feed, knowledge) = (&*judge.feed, &*judge.knowledge);
            let by = Stage::Judge;
            changes = worked_through(feed, knowledge, scope, by, reached, STATEMENT_ROUND).await?;
            new = judge.changed_facts(scope, &changes.changes).await?;
        }
        // What is over speaks against nothing, and what was settled need not be compared once more.
        new.retain(|fact| fact.valid.end.is_none());
        let (statements, facts): (Vec<_>, Vec<_>) =
            new.into_iter().partition(Derivation::is_statement);
        let mut found = self.confirmed(scope, &statements).await?;
        for (subject, new) in by_subject(facts) {
            found.extend(self.conflicts(scope, subject, &new).await?);
        }
        let conflicts = found.len();
        let work = Work {
            found,
            progress: Some(Progress {
                stage: Stage::Compare,
                from: reached,
                to: changes.reached,
            }),
            ..Work::default()
        };
        if judge.knowledge.apply(scope, work).await? == Applied::Stale {
            return Ok(Outcome::More);
        }
        if conflicts > 0 {
            judge.events.announce(Event::Derived {
                scope: scope.clone(),
            });
        }
        Ok(Outcome::more_if(changes.more || conflicts > 0))
    }
}

impl Comparer {
    /// What a model finds in the facts of one subject.
    async fn conflicts(
        &self,
        scope: &Scope,
        subject: String,
        new: &[Derivation],
    ) -> Result<Vec<Conflict>, Fault> {
        let now = self.judge.clock.now();
        let known = Question {
            kind: Some(Kind::Fact),
            subject: Some(subject),
            as_of: AsOf {
                happened_by: Some(now),
                known_at: None,
            },
            ..Question::default()
        };
        let known = self.judge.knowledge.all_derivations(scope, &known).await?;
        let known = known.into_iter().filter(|it| !it.is_statement()).collect();
        let known = nearest(known, new);
        let sentences = |facts: &[Derivation]| facts.iter().filter_map(Sentence::of).collect();
        let (news, knowns): (Vec<_>, Vec<_>) = (sentences(new), sentences(&known));
        // The only fact of its subject contradicts nothing.
        if !known
            .iter()
            .any(|known| new.iter().any(|new| new.id != known.id))
        {
            return Ok(Vec::new());
        }
        let prompt = Comparing {
            new: &news,
            known: &knowns,
        };
        let Some(asked) = self.adviser.ask(&scope.tenant, &prompt).await? else {
            return Ok(Vec::new());
        };
        asked.meant.dropped.report(language_model::Agent::Judge);
        let sure = asked
            .meant
            .found
            .iter()
            .filter(|found| found.confidence >= DOUBTFUL);
        let conflicts = sure.filter_map(|found| self.conflict(found, new, &known, &asked.by));
        Ok(conflicts.collect())
    }

    /// The conflict of two facts that exclude each other. It is for a person to decide where
    /// nothing tells which of them holds, and where their claims are not of one matter: what a
    /// model says alone closes nothing then.
    fn conflict(
        &self,
        found: &Exclusion,
        new: &[Derivation],
        known: &[Derivation],
        by: &str,
    ) -> Option<Conflict> {
        let one = new.iter().find(|fact| fact.id == found.new)?;
        let other = known.iter().find(|fact| fact.id == found.known)?;
        let corrects = found.relation == Relation::Correction;
        let Judged { verdict, closes } = judged(one, other, corrects)?;
        // An older statement does not say of a newer one that it was never true.
        if corrects && verdict.newer != one.id {
            return None;
        }
        let id = ConflictId::of(one.id, other.id);
        let mut conflict = self.judge.conflict(id, verdict, by);
        if found.relation == Relation::Contradiction || !closes {
            conflict.status = Status::Open;
        }
        Some(conflict)
    }
}

fn by_subject(facts: Vec<Derivation>) -> BTreeMap<String, Vec<Derivation>> {
    let mut subjects: BTreeMap<String, Vec<Derivation>> = BTreeMap::new();
    for derivation in facts {
        if let Some(fact) = derivation.fact() {
            let subject = fact.claim.subject.clone();
            subjects.entry(subject).or_default().push(derivation);
        }
    }
    subjects
}

/// Those of the attributes of new ones first, the latest before others.
fn nearest(mut known: Vec<Derivation>, new: &[Derivation]) -> Vec<Derivation> {
    let attribute = |derivation: &Derivation| {
        let fact = derivation.fact();
        fact.map(|fact| fact.claim.attribute.clone())
    };
    let asked: Vec<_> = new.iter().map(attribute).collect();
    known.sort_by_cached_key(|known| {
        let is_other = !asked.contains(&attribute(known));
        (is_other, std::cmp::Reverse(known.valid.start))
    });
    known.truncate(SHOWN);
    known
}
