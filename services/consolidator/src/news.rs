//! What the stages of the consolidator write: versions of fragments and narratives, each round one transaction.

use std::collections::HashSet;

use memfleet_agents::narratives::BINDER;
use memfleet_domain::derivation::{Body, Change, ChangeKind, Derivation, Kind, Origin};
use memfleet_domain::ids::{ChangeId, DerivationId, TurnId};
use memfleet_domain::narrative::Narrative;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::{Applied, Progress, Question, Revision, Rewrite, Stage, Work};

use crate::LocalConsolidator;

/// New versions of fragments and narratives.
pub(crate) struct News {
    /// Who writes them.
    pub(crate) by: String,
    /// Each with its headline, where that is what it is found by from now on.
    pub(crate) written: Vec<(Derivation, Option<String>)>,
    /// Those that hold no more.
    pub(crate) withdrawn: Vec<Derivation>,
    /// Narratives to which something is bound.
    pub(crate) kept: HashSet<DerivationId>,
    /// Fragments that are bound to another narrative than before, with that one.
    pub(crate) moved: Vec<(DerivationId, DerivationId)>,
}

impl Default for News {
    fn default() -> Self {
        Self::by(BINDER)
    }
}

impl News {
    /// Nothing yet, by the rules or by a model.
    pub(crate) fn by(author: &str) -> Self {
        Self {
            by: author.to_owned(),
            written: Vec::new(),
            withdrawn: Vec::new(),
            kept: HashSet::new(),
            moved: Vec::new(),
        }
    }

    pub(crate) fn withdraws_nothing(&self) -> bool {
        self.withdrawn.is_empty()
    }

    /// The version after this one. What changes is found by what it was found by, its opening turn: it is the same.
    pub(crate) fn write(
        &mut self,
        id: DerivationId,
        before: Option<u32>,
        body: Body,
        turns: Vec<TurnId>,
        begun: Option<Timestamp>,
        headline: String,
    ) {
        let version = before.unwrap_or(0) + 1;
        // When and by which change it is known is filled in by `LocalConsolidator::rewrite`.
        let derivation = Derivation {
            id,
            version,
            body,
            turns,
            valid: since(begun),
            known: TimeRange::default(),
            origin: Origin::Extracted(self.by.clone()),
            change: ChangeId::of("bound", &[]),
            succeeded_by: None,
        };
        let found_by = (version == 1).then_some(headline);
        self.written.push((derivation, found_by));
    }

    /// What is there in its next version, from the same turns.
    pub(crate) fn amend(&mut self, before: &Derivation, body: Body) {
        self.retell(before, body, before.turns.clone(), None);
    }

    /// The same from other turns; `headline` where it is found by another one.
    pub(crate) fn retell(
        &mut self,
        before: &Derivation,
        body: Body,
        turns: Vec<TurnId>,
        headline: Option<String>,
    ) {
        let next = Derivation {
            body,
            turns,
            origin: Origin::Extracted(self.by.clone()),
            ..before.next(before.change)
        };
        self.written.push((next, headline));
    }

    /// The same fragment, of another story.
    pub(crate) fn bind_anew(&mut self, orphan: &Derivation, narrative: DerivationId) {
        if let Body::Fragment(mut fragment) = orphan.body.clone() {
            fragment.narrative = narrative;
            fragment.subplot = None;
            self.amend(orphan, Body::Fragment(fragment));
        }
    }

    /// A story that begins, told by these turns; or begins anew, in other words.
    pub(crate) fn begin(
        &mut self,
        id: DerivationId,
        version: Option<u32>,
        narrative: Narrative,
        turns: Vec<TurnId>,
        begun: Option<Timestamp>,
    ) {
        let headline = narrative.headline.clone();
        let body = Body::Narrative(Box::new(narrative));
        self.write(id, version, body, turns, begun, headline.clone());
        if let Some((_, found_by)) = self.written.last_mut() {
            *found_by = Some(headline);
        }
    }
}

impl LocalConsolidator {
    /// The change that brings this; none where nothing is new. `what` tells the changes of different stages apart.
    pub(crate) async fn rewrite(
        &self,
        scope: &Scope,
        News {
            written, withdrawn, ..
        }: News,
        (what, reason): (&str, &str),
    ) -> Result<Option<Rewrite>, Fault> {
        if written.is_empty() && withdrawn.is_empty() {
            return Ok(None);
        }
        let now = self.clock.now();
        let all = written.iter().map(|(it, _)| it).chain(&withdrawn);
        let parts = all.map(|it| [&it.id.as_bytes()[..], &it.version.to_be_bytes()].concat());
        let parts: Vec<Vec<u8>> = parts.collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let change = Change {
            id: ChangeId::of(what, &parts),
            kind: ChangeKind::Derived,
            at: now,
            reason: reason.to_owned(),
            conflict: None,
            reverts: None,
        };
        let headlines = written.iter().filter_map(|(_, headline)| headline.clone());
        let headlines: Vec<String> = headlines.collect();
        let language = self.indexer.language(scope).await?;
        let passages = self.indexer.passages(scope, headlines, language).await?;
        let mut passages = passages.into_iter();
        let known = since(Some(now));
        let mut revisions: Vec<Revision> = Vec::with_capacity(written.len() + withdrawn.len());
        for (derivation, headline) in written {
            let passage = headline.and_then(|_| passages.next());
            let derivation = Derivation {
                known,
                change: change.id,
                ..derivation
            };
            revisions.push(Revision {
                derivation,
                passage,
            });
        }
        revisions.extend(withdrawn.iter().map(|gone| Revision {
            derivation: Derivation {
                known,
                ..gone.next(change.id).withdrawn()
            },
            passage: None,
        }));
        Ok(Some(Rewrite { change, revisions }))
    }

    /// Writes what a round of a stage came to and how far it is, from and to; how many versions that are. Absent where turns were
    /// forgotten meanwhile, or another worker was here: the next look decides anew.
    pub(crate) async fn write(
        &self,
        scope: &Scope,
        stage: Stage,
        rewrites: Vec<Rewrite>,
        (from, to): (u64, u64),
    ) -> Result<Option<usize>, Fault> {
        let written: usize = rewrites.iter().map(|rewrite| rewrite.revisions.len()).sum();
        let told = Told::of(&rewrites);
        let work = Work {
            rewrites,
            progress: Some(Progress { stage, from, to }),
            ..Work::default()
        };
        if self.knowledge.apply(scope, work).await? == Applied::Stale {
            return Ok(None);
        }
        told.count(stage);
        if written > 0 {
            self.events.announce(Event::Derived {
                scope: scope.clone(),
            });
        }
        Ok(Some(written))
    }

    /// All that matches, of one kind.
    pub(crate) async fn of_kind(
        &self,
        scope: &Scope,
        kind: Kind,
        question: Question,
    ) -> Result<Vec<Derivation>, Fault> {
        let question = Question {
            kind: Some(kind),
            ..question
        };
        Ok(self.knowledge.all_derivations(scope, &question).await?)
    }
}

/// What a write does to fragments and narratives, as it is counted.
struct Told {
    fragments: u64,
    /// By what becomes of them.
    narratives: [(&'static str, u64); 3],
}

impl Told {
    fn of(rewrites: &[Rewrite]) -> Self {
        let revisions = rewrites.iter().flat_map(|rewrite| &rewrite.revisions);
        let all = || revisions.clone().map(|revision| &revision.derivation);
        let of_kind = |kind: Kind| all().filter(move |it| it.kind() == kind);
        let narratives = |is: fn(&Derivation) -> bool| {
            let counted = of_kind(Kind::Narrative).filter(|it| is(it));
            counted.count() as u64
        };
        let begins = |it: &Derivation| it.version == 1 && !it.is_withdrawn();
        Self {
            fragments: of_kind(Kind::Fragment).count() as u64,
            narratives: [
                ("begun", narratives(begins)),
                ("withdrawn", narratives(Derivation::is_withdrawn)),
                (
                    "told_on",
                    narratives(|it| it.version > 1 && !it.is_withdrawn()),
                ),
            ],
        }
    }

    fn count(&self, stage: Stage) {
        let stage = stage.name();
        metrics::counter!("memfleet_fragments_written_total", "stage" => stage)
            .increment(self.fragments);
        for (what, times) in self.narratives {
            metrics::counter!("memfleet_narratives_written_total", "stage" => stage, "what" => what)
                .increment(times);
        }
    }
}

/// The first of numbered ids that is not taken.
pub(crate) fn first_free(
    among: impl Fn(u32) -> DerivationId,
    is_taken: impl Fn(&DerivationId) -> bool,
) -> DerivationId {
    let mut ids = (0..).map(among);
    ids.find(|id| !is_taken(id))
        .unwrap_or_else(|| unreachable!("numbers do not end"))
}

fn since(start: Option<Timestamp>) -> TimeRange {
    TimeRange { start, end: None }
}
