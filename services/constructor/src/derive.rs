//! From stored turns to facts (AMA section 3.1), after they are searchable: the constructor follows every space and derives from
//! what was stored since. Ids are derived from what a fact claims, so that a round that is done twice writes nothing twice; one
//! transaction writes the facts of a round and how far it came.

mod clauses;
mod episodes;
mod reading;
mod rebuild;
mod refine;
mod semanticize;

pub use episodes::{Reteller, Summariser};
pub use rebuild::Rebuilder;
pub use refine::Refiner;
pub use semanticize::Semanticizer;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::derivation::{Body, Change, ChangeKind, Derivation, Kind, Origin};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::{ChangeId, DerivationId, TurnId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Clock, Fault, Scope};
use memfleet_ports::events::{Event, Events};
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::knowledge::{Applied, Knowledge, Progress, Revision, Rewrite, Stage, Work};
use memfleet_ports::ledger::{Ledger, Passage};
use memfleet_workers::{Agent, Indexer, Outcome};
use tracing::instrument;

use crate::extract::{ExtractedFacts, Extractor};
use crate::topics::TopicFilter;

/// Changes that are looked at together.
const ROUND: u32 = 64;

/// Derives facts from turns.
#[derive(Clone)]
pub struct Deriver {
    /// The turns.
    pub ledger: Arc<dyn Ledger>,
    /// What changed.
    pub feed: Arc<dyn IndexFeed>,
    /// The facts.
    pub knowledge: Arc<dyn Knowledge>,
    /// Makes facts findable.
    pub indexer: Indexer,
    /// Finds facts in turns.
    pub extractor: Arc<dyn Extractor>,
    /// Leaves facts out, keeps or tags them, whoever found them.
    pub topics: Arc<TopicFilter>,
    /// Tells who follows.
    pub events: Events,
    /// Recorded time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Agent for Deriver {
    #[instrument(name = "derive", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let changes = self.feed.changes_after(scope, reached, ROUND).await?;
        let turns = self.changed(scope, &changes).await?;
        let rewrites = self.rewrites(scope, &turns).await?;
        let progress = Progress {
            stage: Stage::Derive,
            from: reached,
            to: changes.reached,
        };
        let Some(facts) = self.write(scope, rewrites, progress).await? else {
            return Ok(Outcome::More);
        };
        metrics::counter!("memfleet_facts_derived_total").increment(facts as u64);
        // What was written is a change of the space too, which is looked at once more.
        Ok(Outcome::more_if(changes.more || facts > 0))
    }
}

impl Deriver {
    /// Writes what a round found and how far it came, and announces it; how many versions that are. Absent where turns were forgotten meanwhile, or
    /// another worker was here: the next look decides anew.
    async fn write(
        &self,
        scope: &Scope,
        rewrites: Vec<Rewrite>,
        progress: Progress,
    ) -> Result<Option<usize>, Fault> {
        let written: usize = rewrites.iter().map(|rewrite| rewrite.revisions.len()).sum();
        let work = Work {
            rewrites,
            progress: Some(progress),
            ..Work::default()
        };
        if self.knowledge.apply(scope, work).await? == Applied::Stale {
            return Ok(None);
        }
        // Whoever follows the space is behind by it now, whether it is theirs or not.
        if written > 0 {
            self.events.announce(Event::Derived {
                scope: scope.clone(),
            });
        }
        Ok(Some(written))
    }

    /// One change a turn that states something new, and one a turn that was replaced.
    async fn rewrites(&self, scope: &Scope, turns: &[Turn]) -> Result<Vec<Rewrite>, Fault> {
        let known = self.known(scope, Kind::Fact, turns).await?;
        let (replaced, standing): (Vec<_>, Vec<_>) =
            turns.iter().partition(|turn| turn.replaced.is_some());
        let mut rewrites = self.withdrawals(&replaced, &known);
        let ExtractedFacts { by, drafts } = self.drafts(scope, &standing).await?;
        let stated = self.statements(scope, &standing, drafts, &known, &by);
        rewrites.extend(stated.await?);
        Ok(rewrites)
    }

    /// The changes that what turns state anew, as somebody found, comes with.
    async fn statements(
        &self,
        scope: &Scope,
        turns: &[&Turn],
        drafts: Vec<Vec<Draft>>,
        known: &[Derivation],
        by: &str,
    ) -> Result<Vec<Rewrite>, Fault> {
        let mut new = Vec::new();
        for (turn, drafts) in turns.iter().zip(drafts) {
            let of_turn = known
                .iter()
                .filter(|fact| fact.turns[0] == turn.accepted.id);
            let stated = news(turn, drafts, &of_turn.collect::<Vec<_>>());
            if !stated.is_empty() {
                new.push((turn.accepted.id, stated));
            }
        }
        let stated = new.iter().flat_map(|(_, stated)| stated);
        let texts = stated.map(|new| new.draft.text.clone());
        let language = self.indexer.language(scope).await?;
        let passages = self
            .indexer
            .passages(scope, texts.collect(), language)
            .await?;
        let mut passages = passages.into_iter();
        let rewrites = new
            .into_iter()
            .map(|(turn, stated)| self.statement(turn, stated, by, &mut passages));
        Ok(rewrites.collect())
    }

    /// The change that a turn's new facts come with.
    fn statement(
        &self,
        turn: TurnId,
        stated: Vec<New>,
        by: &str,
        passages: &mut impl Iterator<Item = Passage>,
    ) -> Rewrite {
        let now = self.clock.now();
        let parts = stated.iter().map(|new| &new.id.as_bytes()[..]);
        let id = ChangeId::of("derived", &parts.collect::<Vec<_>>());
        let revisions = stated.into_iter().map(|new| Revision {
            derivation: first_version(turn, new, by, (id, now)),
            passage: passages.next(),
        });
        Rewrite {
            revisions: revisions.collect(),
            change: change(id, ChangeKind::Derived, now, "a turn states it"),
        }
    }

    /// What replaced turns stated was never so.
    fn withdrawals(&self, replaced: &[&Turn], known: &[Derivation]) -> Vec<Rewrite> {
        let mut by_turn: HashMap<TurnId, Vec<&Derivation>> = HashMap::new();
        for derivation in known.iter().filter(|derivation| !derivation.is_withdrawn()) {
            if matches!(derivation.origin, Origin::Extracted(_)) {
                by_turn
                    .entry(derivation.turns[0])
                    .or_default()
                    .push(derivation);
            }
        }
        let withdrawal = |turn: &&Turn| {
            let stated = by_turn.get(&turn.accepted.id)?;
            let id = ChangeId::of("replaced", &[turn.accepted.id.as_bytes()]);
            self.withdrawal(id, stated, "its turn was replaced")
        };
        replaced.iter().filter_map(withdrawal).collect()
    }

    /// The change that says of facts that they were never so.
    fn withdrawal(&self, id: ChangeId, facts: &[&Derivation], reason: &str) -> Option<Rewrite> {
        let now = self.clock.now();
        let revisions = facts.iter().map(|fact| {
            let mut withdrawn = fact.next(id).withdrawn();
            // It is not reopened with what took its place.
            withdrawn.succeeded_by = None;
            withdrawn.known = TimeRange {
                start: Some(now),
                end: None,
            };
            Revision {
                derivation: withdrawn,
                passage: None,
            }
        });
        (!facts.is_empty()).then(|| Rewrite {
            revisions: revisions.collect(),
            change: change(id, ChangeKind::Derived, now, reason),
        })
    }
}

/// A fact that is not known yet.
struct New {
    id: DerivationId,
    draft: Draft,
    valid: TimeRange,
}

/// Facts of a turn that are not among those known of it, each claim once. Words that a model copied
/// from memory are no news: they would stand for two who say so, and for the later time. Nor is a
/// fact that a known statement or a correction tells: cut otherwise, it would be there twice.
fn news(turn: &Turn, drafts: Vec<Draft>, known: &[&Derivation]) -> Vec<New> {
    let mut seen: HashSet<_> = known.iter().map(|known| known.id).collect();
    let drafts = drafts.into_iter();
    let is_told = |draft: &Draft| {
        turn.accepted.is_copied(&draft.evidence) || known.iter().any(|known| tells(known, draft))
    };
    let said = drafts.filter(|draft| !is_told(draft));
    let stated = said.map(|draft| New {
        id: DerivationId::of_fact(turn.accepted.id, &draft.claim, draft.is_negated()),
        valid: valid(turn, &draft),
        draft,
    });
    stated.filter(|new| seen.insert(new.id)).collect()
}

/// True where two passages of a text share a byte.
fn overlap(one: &Range<u32>, other: &Range<u32>) -> bool {
    one.start < other.end && other.start < one.end
}

/// True where a known statement, or a fact that a caller corrected, rests on words of a new
/// statement, or a corrected statement on all words of a new fact with a clause.
fn tells(known: &Derivation, new: &Draft) -> bool {
    let is_decided = known.origin == Origin::Corrected;
    known.fact().is_some_and(|told| {
        let (old, own) = (&told.evidence, &new.evidence);
        if new.is_statement() {
            return (is_decided || told.is_statement()) && overlap(old, own);
        }
        is_decided && told.is_statement() && old.start <= own.start && own.end <= old.end
    })
}

/// A fact as somebody found it first.
fn first_version(
    turn: TurnId,
    new: New,
    by: &str,
    (change, now): (ChangeId, Timestamp),
) -> Derivation {
    Derivation {
        id: new.id,
        version: 1,
        turns: lineage(turn, &new.draft),
        valid: new.valid,
        known: TimeRange {
            start: Some(now),
            end: None,
        },
        origin: Origin::Extracted(by.to_owned()),
        change,
        succeeded_by: None,
        body: Body::Fact(Box::new(new.draft)),
    }
}

/// A fact holds from when it was said on, unless it says when; one of the past from who knows when.
fn valid(turn: &Turn, draft: &Draft) -> TimeRange {
    let TimeRange { start, end } = draft.valid;
    let said = turn.accepted.effective_time();
    TimeRange {
        start: start.or(end.is_none().then_some(said)),
        end,
    }
}

fn lineage(turn: TurnId, draft: &Draft) -> Vec<TurnId> {
    let mut turns = vec![turn];
    for related in &draft.related {
        if !turns.contains(related) {
            turns.push(*related);
        }
    }
    turns
}

fn change(id: ChangeId, kind: ChangeKind, at: Timestamp, reason: &str) -> Change {
    Change {
        id,
        kind,
        at,
        reason: reason.to_owned(),
        conflict: None,
        reverts: None,
    }
}
