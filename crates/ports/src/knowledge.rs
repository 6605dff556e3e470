//! Derived memory in the store: versions of facts, episodes and narratives, the changes that wrote
//! them, the conflicts between them, and how far each agent has come in each space. Everything that
//! changes it is one call, [`Knowledge::apply`]: idempotent, and refused where it rests on a state
//! that is gone.

use std::cmp::Ordering;
use std::collections::HashMap;

use async_trait::async_trait;
use chrono::TimeDelta;
use memfleet_domain::Scope;
use memfleet_domain::derivation::{
    Change, Conflict, DecidedMemory, Derivation, Kind, Status, WrittenVersion,
};
use memfleet_domain::ids::{ChangeId, ConflictId, DerivationId, TurnId};
use memfleet_domain::time::{AsOf, TimeRange, Timestamp};

use crate::ledger::{Page, PageToken, Passage};
use crate::store::Result;

/// An agent that follows the changes of every space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// The constructor: turns to facts.
    Derive,
    /// The constructor: sessions to episodes.
    Episodes,
    /// The constructor: the same once more by a language model, where there is one.
    Refine,
    /// The constructor: episodes in the words of a language model, where there is one.
    Retell,
    /// The consolidator: episodes to fragments of narratives.
    Bind,
    /// The consolidator: fragments to subplots, where nothing was said of a narrative for a while.
    Consolidate,
    /// The consolidator: fragments to narratives once more by a language model, where there is one.
    Rebind,
    /// The consolidator: subplots and headlines once more by a language model, where there is one.
    Replot,
    /// The constructor: what is peripheral in the stories that a language model put together to
    /// facts, where there is one.
    Semanticize,
    /// The consolidator: facts to triplets of the semantic graph, where there is one.
    Relate,
    /// The judge: new facts against current ones.
    Judge,
    /// The judge: the same once more by a language model, where there is one.
    Compare,
    /// The refresher: conflicts that were found.
    Settle,
    /// The refresher: what was settled, once more by a language model, where there is one.
    Review,
    /// The constructor: turns to facts once more, where a rebuild was asked for.
    Rebuild,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 15] = [
        Self::Derive,
        Self::Episodes,
        Self::Refine,
        Self::Retell,
        Self::Bind,
        Self::Consolidate,
        Self::Rebind,
        Self::Replot,
        Self::Semanticize,
        Self::Relate,
        Self::Judge,
        Self::Compare,
        Self::Settle,
        Self::Review,
        Self::Rebuild,
    ];

    /// Whether it stands still where there is no language model.
    pub fn asks_model(self) -> bool {
        matches!(
            self,
            Self::Refine
                | Self::Retell
                | Self::Rebind
                | Self::Replot
                | Self::Semanticize
                | Self::Compare
                | Self::Review
        )
    }

    /// As it stands in tables and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Derive => "derive",
            Self::Episodes => "episodes",
            Self::Refine => "refine",
            Self::Retell => "retell",
            Self::Bind => "bind",
            Self::Consolidate => "consolidate",
            Self::Rebind => "rebind",
            Self::Replot => "replot",
            Self::Semanticize => "semanticize",
            Self::Relate => "relate",
            Self::Judge => "judge",
            Self::Compare => "compare",
            Self::Settle => "settle",
            Self::Review => "review",
            Self::Rebuild => "rebuild",
        }
    }
}

/// A stage has worked through the changes of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Whose.
    pub stage: Stage,
    /// The change sequence where it stood …
    pub from: u64,
    /// … and where it stands now.
    pub to: u64,
}

/// Number of lost claims after which a space is left alone for a while. A claim is lost if its
/// lease ends and nobody gave it back: the process ended, and the work may be the cause.
pub const LOST_CLAIMS: u32 = 3;

/// Pause after [`LOST_CLAIMS`]; twice as long after each further one.
pub const LOST_PAUSE: TimeDelta = TimeDelta::minutes(1);

/// The longest pause after lost claims.
pub const LONGEST_LOST_PAUSE: TimeDelta = TimeDelta::hours(6);

/// Says in the log that a space was claimed whose last claims, this many, were lost.
pub fn note_lost_claims(scope: &Scope, stage: Stage, lost: i64) {
    if lost >= i64::from(LOST_CLAIMS) {
        let stage = stage.name();
        tracing::error!(%scope, stage, lost, "who worked on a space never gave it back, as if the work ended the process: the cause may be among its newest turns; it is tried ever less often");
    }
}

/// Where a stage stands in a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The change sequence that it has worked through.
    pub reached: u64,
    /// The space's change sequence.
    pub head: u64,
}

/// A new version of a derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// As it is now. Its version is one more than the current one (1: there is none yet); the start
    /// of `known` is the change's time.
    pub derivation: Derivation,
    /// What it is found by; absent where that stays as it was.
    pub passage: Option<Passage>,
}

impl Revision {
    /// The turn that states a fact which is new. One that was replaced meanwhile states nothing.
    pub fn stating(&self) -> Option<&TurnId> {
        let is_new = self.derivation.version == 1 && self.derivation.kind() == Kind::Fact;
        self.derivation.turns.first().filter(|_| is_new)
    }
}

/// A change and what it writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewrite {
    /// The change.
    pub change: Change,
    /// New versions, each derivation at most once.
    pub revisions: Vec<Revision>,
}

/// A rebuild: what a space holds derived once more, beside what is in use until all of it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rebuilding {
    /// The change sequence that it has reached …
    pub reached: u64,
    /// … of that which the space had when it began. What came later is derived like anything new.
    pub goal: u64,
    /// Facts that are ready and not in use yet.
    pub staged: u64,
}

/// What a rebuild notes of some turns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Staging {
    /// New facts in their first version, in use from [`Work::publish`] on. Those that are staged or
    /// in use already are left out.
    pub new: Vec<Revision>,
    /// Facts in use that are derived again.
    pub confirmed: Vec<DerivationId>,
}

/// What one transaction does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Work {
    /// Changes that were not made yet; those that were are left out.
    pub rewrites: Vec<Rewrite>,
    /// What a rebuild found.
    pub staging: Staging,
    /// Ends the rebuild of the space: what is staged is in use, written by this change.
    pub publish: Option<Change>,
    /// Conflicts that were found. One that is open or dismissed stays as it is, and one that was
    /// settled where it is only possible now. One that was settled and is found again is to be
    /// settled again; that and another one is a change of the space.
    pub found: Vec<Conflict>,
    /// Conflicts whose status changes. The work is stale where one that was dismissed would be
    /// settled or opened.
    pub settled: Vec<(ConflictId, Status)>,
    /// How far the worker is with it.
    pub progress: Option<Progress>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It is done; the space's change sequence after it.
    Done(u64),
    /// The work was not done, since a version, a turn, a conflict or the progress that it rests
    /// on has changed, or the space is gone. The caller reads again and decides anew.
    Stale,
}

/// A history that takes the place of what is known of its derivation, its changes and its
/// conflicts.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredHistory {
    /// The history; it has no [problem](DecidedMemory::problem).
    pub memory: DecidedMemory,
    /// For each version what it is found by; absent where that stays as it was before. Present for
    /// the first.
    pub passages: Vec<Option<Passage>>,
    /// The version that it takes the place of; 0: there is none.
    pub instead_of: u32,
}

/// Which derivations. An empty list and an absent value do not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Of this kind.
    pub kind: Option<Kind>,
    /// These.
    pub ids: Vec<DerivationId>,
    /// Facts with this subject key …
    pub subject: Option<String>,
    /// … and this attribute key.
    pub attribute: Option<String>,
    /// Fragments of this narrative.
    pub narrative: Option<DerivationId>,
    /// Those that come from one of these turns.
    pub turns: Vec<TurnId>,
    /// Written after this change sequence.
    pub after: u64,
    /// As they were known (default: now) and only those that held (default: whether or not they
    /// do).
    pub as_of: AsOf,
    /// Whether those that hold at no instant are among them.
    pub withdrawn: bool,
}

/// Which derivations of a chronicle. An empty list and an absent value do not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chronicle {
    /// Of these kinds.
    pub kinds: Vec<Kind>,
    /// Facts with one of these subject keys; `kinds` is then [`Kind::Fact`].
    pub subjects: Vec<String>,
    /// Those that come from one of these turns.
    pub turns: Vec<TurnId>,
    /// Those that begin in this interval ([`Derivation::begins`]).
    pub begins: TimeRange,
    /// As they were known (default: now) and only those that held (default: whether or not they
    /// do).
    pub as_of: AsOf,
}

/// Order of facts by worth, the most worth first; ties by when they begin, then by id.
pub fn by_worth(one: &Derivation, other: &Derivation) -> Ordering {
    let worth = |fact: &Derivation| fact.worth().unwrap_or_default();
    worth(other)
        .total_cmp(&worth(one))
        .then_with(|| one.begins().cmp(&other.begins()))
        .then_with(|| one.id.cmp(&other.id))
}

/// Which changes. An absent value does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    /// Those that wrote a version of it.
    pub derivation: Option<DerivationId>,
    /// These.
    pub ids: Vec<ChangeId>,
}

/// A change as `History` lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The change.
    pub change: Change,
    /// The versions that it wrote.
    pub wrote: Vec<Derivation>,
    /// The change that undid it.
    pub reverted_by: Option<ChangeId>,
}

/// Standing turns before one in its session that it is read in the light of: the window W of AMA
/// section 3.1. Where one of them is forgotten the turn is read again.
pub const WINDOW: u32 = 6;

/// Derivations that are read at a time where all are wanted.
const PAGE: u32 = 1_000;

/// What the agents ask of storage.
#[async_trait]
pub trait Knowledge: Send + Sync {
    /// Does all of the work in one transaction, or nothing. A space or a turn that was forgotten
    /// makes it stale.
    async fn apply(&self, scope: &Scope, work: Work) -> Result<Applied>;

    /// Replaces all that is known of a derivation by a history, with its conflicts, in one
    /// transaction; its turns are read again. A change that is known and wrote other derivations
    /// too takes on what the history says of it, unless callers decided about one of these or one
    /// was known before a legal hold began. Stale where one of its turns is not stored, or where it
    /// takes the place of another version than it says. `Held` where it would take the place of
    /// something that was known before a legal hold began.
    async fn restore(&self, scope: &Scope, restoration: RestoredHistory) -> Result<Applied>;

    /// Up to `limit` facts and namings behind `after` of which a decision wrote a version
    /// (`ChangeKind::is_decided`), by id.
    async fn decided(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<DerivationId>,
    ) -> Result<Vec<DerivationId>>;

    /// Up to `limit` spaces of any tenant with changes that the stage has not worked through; the
    /// second of a tenant after the first of each.
    async fn pending(&self, stage: Stage, limit: u32) -> Result<Vec<Scope>>;

    /// Where a stage stands. Absent where there is no such space.
    async fn position(&self, scope: &Scope, stage: Stage) -> Result<Option<Position>>;

    /// Takes the space's next work for one worker until an instant, unless another has it. The
    /// answer is the change sequence that the stage has reached; absent where it is taken, or where
    /// there is no such space, unless it [is left over](Knowledge::is_left_over).
    /// [`Knowledge::apply`] with progress keeps it, [`Knowledge::release`] or the instant ends it.
    /// Where the last [`LOST_CLAIMS`] were ended by their instants alone, the space counts as taken
    /// for [`LOST_PAUSE`] and longer, so that what ends processes leaves time to the other spaces.
    async fn claim(
        &self,
        scope: &Scope,
        stage: Stage,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<u64>>;

    /// Gives back what was claimed until this instant. Who came too late, and whose claim another
    /// has by now, gives nothing back.
    async fn release(&self, scope: &Scope, stage: Stage, until: Timestamp) -> Result<()>;

    /// True where the space was forgotten, and a graph beside the store may still hold something of
    /// it. Such a space is pending for [`Stage::Relate`], and can be claimed for it, though it is
    /// gone; written anew before that, it is left over all the same. Never where the graph is in
    /// the store itself: there it went along.
    async fn is_left_over(&self, scope: &Scope) -> Result<bool>;

    /// The graph holds nothing of the space any more. Whoever says so has claimed it.
    async fn cleared(&self, scope: &Scope) -> Result<()>;

    /// Begins a rebuild; one that is under way goes on. Absent where there is no such space.
    async fn begin_rebuild(&self, scope: &Scope) -> Result<Option<Rebuilding>>;

    /// The rebuild that is under way.
    async fn rebuilding(&self, scope: &Scope) -> Result<Option<Rebuilding>>;

    /// Up to `limit` facts in use that an extractor made and the rebuild under way did not derive
    /// again.
    async fn unconfirmed(&self, scope: &Scope, limit: u32) -> Result<Vec<Derivation>>;

    /// The derivations, in the order in which their first versions were written.
    async fn derivations(
        &self,
        scope: &Scope,
        question: &Question,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Derivation>>;

    /// All of them, for questions whose answers are few: those about some turns, or one subject.
    async fn all_derivations(&self, scope: &Scope, question: &Question) -> Result<Vec<Derivation>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.derivations(scope, question, PAGE, after.as_ref());
            let page = page.await?;
            all.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// The derivations that hold at some instant, in the order in which they begin
    /// ([`Derivation::begins`]).
    async fn chronicle(
        &self,
        scope: &Scope,
        chronicle: &Chronicle,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Derivation>>;

    /// Up to `limit` facts of one subject that have a [worth](Derivation::worth), as they were
    /// known (default: now) and that held at an instant (default: at any). In the order of
    /// [`by_worth`]. A store answers without reading every fact of the subject into memory.
    async fn worthiest(
        &self,
        scope: &Scope,
        subject: &str,
        as_of: AsOf,
        limit: u32,
    ) -> Result<Vec<Derivation>> {
        let chronicle = Chronicle {
            kinds: vec![Kind::Fact],
            subjects: vec![subject.to_owned()],
            as_of,
            ..Chronicle::default()
        };
        let (mut facts, mut after) = (Vec::new(), None);
        loop {
            let page = self.chronicle(scope, &chronicle, PAGE, after.as_ref());
            let page = page.await?;
            let worthy = page.items.into_iter().filter(|it| it.worth().is_some());
            facts.extend(worthy);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        facts.sort_by(by_worth);
        facts.truncate(limit as usize);
        Ok(facts)
    }

    /// Every version of a derivation, oldest first.
    async fn versions(&self, scope: &Scope, id: DerivationId) -> Result<Vec<Derivation>>;

    /// The history of a derivation with its conflicts, as an export carries it.
    async fn decided_memory(&self, scope: &Scope, id: DerivationId) -> Result<DecidedMemory> {
        // Before the changes: each version that is read has its change then.
        let versions = self.versions(scope, id).await?.into_iter();
        let mut changes = HashMap::new();
        let (filter, mut after) = (
            ChangeFilter {
                derivation: Some(id),
                ..ChangeFilter::default()
            },
            None,
        );
        loop {
            let page = self.changes(scope, &filter, PAGE, after.as_ref()).await?;
            let recorded = page.items.into_iter();
            changes.extend(recorded.map(|recorded| (recorded.change.id, recorded.change)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let versions = versions.filter_map(|derivation| {
            let change = changes.get(&derivation.change)?.clone();
            Some(WrittenVersion { derivation, change })
        });
        let decided = [Status::Settled, Status::Open, Status::Dismissed];
        let mut conflicts = self.conflicts_of(scope, &[id], &decided).await?;
        conflicts.sort_by_key(|conflict| conflict.id);
        Ok(DecidedMemory {
            versions: versions.collect(),
            conflicts,
        })
    }

    /// What changed, newest first.
    async fn changes(
        &self,
        scope: &Scope,
        filter: &ChangeFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Recorded>>;

    /// The conflicts with one of these statuses (none: with any), oldest first.
    async fn conflicts(
        &self,
        scope: &Scope,
        statuses: &[Status],
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Conflict>>;

    /// The conflicts with one of these statuses (none: with any) in which one of these facts is,
    /// oldest first.
    async fn conflicts_of(
        &self,
        scope: &Scope,
        facts: &[DerivationId],
        statuses: &[Status],
    ) -> Result<Vec<Conflict>>;
}
