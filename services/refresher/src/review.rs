//! Settlements, looked at once more by a language model (AMA appendix C.6), behind the refresher
//! and with a position of its own: the refresher closes the older fact at once, the model reads the
//! turn and says whether that was right, and since when. What it undoes or moves is a new version
//! like any other. Each settlement is reviewed once; one that a caller touched meanwhile is the
//! caller's.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_agents::facts::{Times, takes_back};
use memfleet_domain::derivation::{Change, ChangeKind, Derivation, Origin, Status};
use memfleet_domain::ids::{ChangeId, ConflictId, DerivationId, TurnId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, Scope, turn};
use memfleet_ports::events::Event;
use memfleet_ports::feed;
use memfleet_ports::knowledge::{Applied, Progress, Question, Revision, Rewrite, Stage, Work};
use memfleet_ports::language_model;
use memfleet_ports::ledger::Ledger;
use memfleet_prompts::Adviser;
use memfleet_prompts::conflicts::Sentence;
use memfleet_prompts::handles::Turn;
use memfleet_prompts::refresh::{Action, Settlement, Settling};
use memfleet_prompts::{Asked, refresh};
use memfleet_workers::{Agent, Outcome};
use tracing::instrument;

use crate::LocalRefresher;
use crate::settle::settling;

/// Changes that are looked at together, and so most conflicts of one question.
const ROUND: u32 = 16;

/// Reviews behind the refresher.
#[derive(Clone)]
pub struct Reviewer {
    /// The refresher.
    pub refresher: LocalRefresher,
    /// What was said.
    pub ledger: Arc<dyn Ledger>,
    /// What reviews.
    pub adviser: Adviser,
}

/// A settlement.
struct Settled {
    conflict: ConflictId,
    /// The fact before it was closed …
    before: Derivation,
    /// … and as it is now.
    closed: Derivation,
    /// What took its place.
    newer: Derivation,
    /// The change that closed it.
    by: ChangeId,
}

#[async_trait]
impl Agent for Reviewer {
    #[instrument(name = "review", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let refresher = &self.refresher;
        let changes = refresher.feed.changes_after(scope, reached, ROUND).await?;
        let ids = changes.changes.iter().filter_map(|change| match change {
            feed::Change::Derived(derived) => Some(derived.id),
            feed::Change::Withdrawn(id) => Some(*id),
            _ => None,
        });
        let settled = self.settled(scope, ids.collect()).await?;
        let (rewrites, dismissed) = self.reviewed(scope, &settled).await?;
        let is_news = !rewrites.is_empty();
        let work = Work {
            rewrites,
            settled: dismissed,
            progress: Some(Progress {
                stage: Stage::Review,
                from: reached,
                to: changes.reached,
            }),
            ..Work::default()
        };
        if refresher.knowledge.apply(scope, work).await? == Applied::Stale {
            return Ok(Outcome::More);
        }
        if is_news {
            refresher.events.announce(Event::Derived {
                scope: scope.clone(),
            });
        }
        Ok(Outcome::more_if(changes.more || is_news))
    }
}

impl Reviewer {
    /// Derivations among these that a settlement closed, and that hold as long as it left them.
    async fn settled(&self, scope: &Scope, ids: Vec<DerivationId>) -> Result<Vec<Settled>, Fault> {
        let mut settled = Vec::new();
        for closed in self.derivations(scope, ids).await? {
            let Some(newer) = closed.succeeded_by else {
                continue;
            };
            if closed.origin == Origin::Corrected {
                continue;
            }
            let conflict = ConflictId::of(closed.id, newer);
            let versions = self.refresher.knowledge.versions(scope, closed.id).await?;
            let before = before_settlement(&versions, conflict).cloned();
            let newer = self.derivations(scope, vec![newer]).await?.pop();
            // What retention removed since cannot be brought back.
            let Some((before, newer)) = before.zip(newer) else {
                continue;
            };
            // What a caller says is not in a turn.
            if newer.origin == Origin::Corrected {
                continue;
            }
            settled.push(Settled {
                conflict,
                by: settling(conflict, before.version),
                before,
                closed,
                newer,
            });
        }
        Ok(settled)
    }

    async fn derivations(
        &self,
        scope: &Scope,
        ids: Vec<DerivationId>,
    ) -> Result<Vec<Derivation>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            ids,
            withdrawn: true,
            ..Question::default()
        };
        let knowledge = &self.refresher.knowledge;
        Ok(knowledge.all_derivations(scope, &question).await?)
    }

    /// What is to change of them, and which conflicts are none.
    async fn reviewed(
        &self,
        scope: &Scope,
        settled: &[Settled],
    ) -> Result<(Vec<Rewrite>, Vec<(ConflictId, Status)>), Fault> {
        let (mut rewrites, mut dismissed) = (Vec::new(), Vec::new());
        let Some(asked) = self.asked(scope, settled).await? else {
            return Ok((rewrites, dismissed));
        };
        asked.meant.dropped.report(language_model::Agent::Refresher);
        for made in &asked.meant.made {
            let reviewed = settled
                .iter()
                .find(|settled| settled.conflict == made.conflict);
            let rewrite = reviewed.and_then(|settled| self.rewrite(settled, made, &asked.by));
            if rewrite.is_some() && made.action == Action::KeepBoth {
                dismissed.push((made.conflict, Status::Dismissed));
            }
            rewrites.extend(rewrite);
        }
        Ok((rewrites, dismissed))
    }

    async fn asked(
        &self,
        scope: &Scope,
        settled: &[Settled],
    ) -> Result<Option<Asked<refresh::Settlements>>, Fault> {
        let turns = settled.iter().flat_map(stated_in);
        let turns: Vec<_> = turns.copied().collect();
        let said = self.ledger.turns(scope, &turns).await?;
        let told = self.told(scope, settled, &said).await?;
        let conflicts = settled.iter().filter_map(|settled| {
            let turn = settled.newer.turns.first()?;
            let evidence = said.iter().find(|said| said.accepted.id == *turn)?;
            Some(refresh::Conflict {
                id: settled.conflict,
                known: Sentence::of(&settled.before)?,
                new: Sentence::of(&settled.newer)?,
                evidence: Turn::from(evidence),
            })
        });
        let conflicts: Vec<_> = conflicts.collect();
        if conflicts.is_empty() {
            return Ok(None);
        }
        let prompt = Settling {
            conflicts: &conflicts,
            is_told: &|conflict, since| {
                let told = told.get(&conflict.id);
                told.is_some_and(|told| told.iter().any(|times| times.begun(since).is_some()))
            },
            takes_back: &|turn| takes_back(&turn.text),
        };
        self.adviser.ask(&scope.tenant, &prompt).await
    }

    /// The times that the turns of both facts tell of.
    async fn told(
        &self,
        scope: &Scope,
        settled: &[Settled],
        said: &[turn::Turn],
    ) -> Result<HashMap<ConflictId, Vec<Times>>, Fault> {
        let spaces = &self.refresher.indexer.spaces;
        let locale = spaces.locale(scope).await?.unwrap_or_default();
        let times = |said: &turn::Turn| {
            let text = said.accepted.content.searchable_text();
            Times::of(&text, said.accepted.effective_time(), &locale)
        };
        let told = settled.iter().map(|settled| {
            let stated: Vec<_> = stated_in(settled).collect();
            let turns = said
                .iter()
                .filter(|said| stated.contains(&&said.accepted.id));
            (settled.conflict, turns.map(times).collect())
        });
        Ok(told.collect())
    }

    /// The change that a review makes; none where the settlement was right.
    fn rewrite(&self, settled: &Settled, made: &Settlement, by: &str) -> Option<Rewrite> {
        let Settled {
            before,
            closed,
            newer,
            by: settlement,
            ..
        } = settled;
        let version = closed.version.to_be_bytes();
        let id = ChangeId::of("reviewed", &[made.conflict.as_bytes(), &version]);
        let start = before.valid.start;
        let since = made
            .since
            .filter(|since| start.is_none_or(|start| *since > start));
        let mut reviewed = closed.next(id);
        match made.action {
            Action::Update => reviewed.valid.end = since.or(newer.valid.start),
            Action::Correct => reviewed = reviewed.withdrawn(),
            Action::KeepBoth => {
                reviewed.valid = before.valid;
                reviewed.succeeded_by = before.succeeded_by;
            }
        }
        if reviewed.valid == closed.valid {
            return None;
        }
        let mut revisions = vec![reviewed];
        // What took its place holds since then too.
        let follows = !newer.is_withdrawn();
        if made.action == Action::Update
            && let Some(since) = since.filter(|since| follows && newer.valid.start != Some(*since))
            && newer.valid.end.is_none_or(|end| since < end)
        {
            let mut moved = newer.next(id);
            moved.valid.start = Some(since);
            revisions.push(moved);
        }
        let now = self.refresher.clock.now();
        let both_hold = made.action == Action::KeepBoth;
        Some(Rewrite {
            revisions: revisions
                .into_iter()
                .map(|revision| at(revision, now))
                .collect(),
            change: Change {
                id,
                kind: if both_hold {
                    ChangeKind::Reverted
                } else {
                    ChangeKind::Updated
                },
                at: now,
                reason: format!("{by}: {}", reason(made.action)),
                conflict: Some(made.conflict),
                reverts: both_hold.then_some(*settlement),
            },
        })
    }
}

/// The version that a conflict closed, where all versions since hold as long as the one that it
/// wrote: a statement may have a clause since.
fn before_settlement(versions: &[Derivation], conflict: ConflictId) -> Option<&Derivation> {
    let mut pairs = versions.windows(2).enumerate();
    let is_settlement =
        |(_, pair): &(usize, &[Derivation])| pair[1].change == settling(conflict, pair[0].version);
    let (place, pair) = pairs.rfind(is_settlement)?;
    let holds = |version: &Derivation| (version.valid, version.succeeded_by);
    let mut since = versions[place + 1..].iter();
    since
        .all(|it| holds(it) == holds(&pair[1]))
        .then_some(&pair[0])
}

/// The turns that state the two facts.
fn stated_in(settled: &Settled) -> impl Iterator<Item = &TurnId> {
    let turns = [&settled.before, &settled.newer].map(|fact| fact.turns.first());
    turns.into_iter().flatten()
}

fn at(mut derivation: Derivation, now: memfleet_domain::Timestamp) -> Revision {
    derivation.known = TimeRange {
        start: Some(now),
        end: None,
    };
    Revision {
        derivation,
        passage: None,
    }
}

fn reason(action: Action) -> &'static str {
    match action {
        Action::Update => "the turn says since when the newer fact holds",
        Action::Correct => "the turn says that the older fact was never true",
        Action::KeepBoth => "both hold",
    }
}
