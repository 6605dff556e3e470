//! Removing turns for good: from the ledger, its indexes and vectors, the queue and its dead letters; and versions of what is
//! derived from them. Of a space on legal hold nothing is removed: the hold is looked at in the transaction that would do it.

use std::ops::AddAssign;

use async_trait::async_trait;
use chrono::Days;
use memfleet_domain::Scope;
use memfleet_domain::derivation::Kind;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::time::Timestamp;

use crate::filter::TurnFilter;
use crate::store::Result;

/// Counts of what is made from turns and goes with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DependentCounts {
    /// Facts with all their versions.
    pub facts: u64,
    /// Episodes. The turns of theirs that stay are summed up again.
    pub episodes: u64,
    /// Fragments of narratives. The turns of theirs that stay are read again.
    pub fragments: u64,
    /// Narratives whose headlines hold words of the turns. They are told again from the fragments
    /// that stay.
    pub narratives: u64,
    /// Statements of callers about names in the turns.
    pub identities: u64,
    /// Blocks that entered prompts. Each record stays, without the block.
    pub blocks: u64,
    /// Exchanges under way. Each stays, without what was kept for its next step.
    pub exchanges: u64,
}

impl DependentCounts {
    /// The counts of derivations, from numbers by kind.
    pub fn of_kinds(numbers: impl IntoIterator<Item = (Kind, u64)>) -> Self {
        let mut dependents = Self::default();
        for (kind, number) in numbers {
            *match kind {
                Kind::Fact => &mut dependents.facts,
                Kind::Episode => &mut dependents.episodes,
                Kind::Fragment => &mut dependents.fragments,
                Kind::Narrative => &mut dependents.narratives,
                Kind::Identity => &mut dependents.identities,
            } += number;
        }
        dependents
    }
}

impl AddAssign for DependentCounts {
    fn add_assign(&mut self, other: Self) {
        self.facts += other.facts;
        self.episodes += other.episodes;
        self.fragments += other.fragments;
        self.narratives += other.narratives;
        self.identities += other.identities;
        self.blocks += other.blocks;
        self.exchanges += other.exchanges;
    }
}

/// What is gone, or what would go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erased {
    /// The turns.
    pub turns: Vec<TurnId>,
    /// Sessions that have no turn left.
    pub emptied_sessions: Vec<SessionId>,
    /// Passages with their terms and vectors.
    pub passages: u64,
    /// Turns waiting in the queue or among the dead letters.
    pub undelivered: u64,
    /// Batches among these that cannot be read: they go with any forget of their space, since nothing tells what they hold.
    pub unreadable: u64,
    /// Versions of facts and episodes that held no longer; those that go with their turns are not counted.
    pub versions: u64,
    /// Counts of derived memory and blocks that go with the turns. Retention leaves them at zero.
    pub dependents: DependentCounts,
    /// Whether the space itself is gone.
    pub space: bool,
}

/// What retention removes of a space at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cutoff {
    /// Turns from before this instant, by event time, else recorded time.
    pub turns_before: Option<Timestamp>,
    /// All turns but so many, the newest by the same time, then by the order of acceptance.
    pub turns_kept: Option<u32>,
    /// Versions of facts and episodes that ceased to be current before this instant.
    pub versions_before: Option<Timestamp>,
}

impl Cutoff {
    /// What the settings of a space mean at `now`.
    pub fn of(settings: &SpaceSettings, now: Timestamp) -> Self {
        let before = |days: Option<u32>| now.checked_sub_days(Days::new(days?.into()));
        Self {
            turns_before: before(settings.retention_days),
            turns_kept: settings.retention_turns,
            versions_before: before(settings.retention_superseded_days),
        }
    }

    /// Whether it may mean turns.
    pub fn has_turns(&self) -> bool {
        self.turns_before.is_some() || self.turns_kept.is_some()
    }

    /// Those that go of the first turns of a space, each with its time in microseconds: `excess` are more than are kept.
    pub fn doomed<Id>(&self, first: Vec<(Id, i64)>, excess: i64) -> impl Iterator<Item = Id> {
        let before = self.turns_before.map(|before| before.timestamp_micros());
        let is_past = move |time: i64| before.is_some_and(|before| time < before);
        let going = first.into_iter().zip(0_i64..);
        going
            .take_while(move |((_, time), place)| is_past(*time) || *place < excess)
            .map(|((id, _), _)| id)
    }
}

/// What the refresher asks of storage.
#[async_trait]
pub trait Erasure: Send + Sync {
    /// What [`Erasure::remove`] would remove. Replaced turns are always included, and with a turn go all the versions that
    /// it replaced: otherwise the older words would come up again. A newer version of it stays.
    async fn plan(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased>;

    /// Removes every turn that matches, and the space itself when the filter means everything: no read finds them any more.
    /// What stays are ids without content: tombstones, so that indexes let go of the turns and a delivery under way does
    /// not bring them back, and the receipts of their batches, unless the space goes: then its batches may be sent again as new.
    /// A caller may tell single turns anew. Their text may be left in unused bytes of the files until the next
    /// [`Erasure::scrub`]. [`StoreError::Held`](crate::store::StoreError::Held) of a space on hold, as of its plan.
    async fn remove(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased>;

    /// One step of what the retention that the space has now means at `now`: about `most` turns, the oldest first, as
    /// [`Erasure::remove`] would, and about `most` versions of facts and episodes that hold no longer. All is gone when a step removes
    /// nothing. Nobody named what cannot be read, so of that goes only what came before the instant of the period itself. Of a space on
    /// hold nothing goes.
    ///
    /// A version ceased to be current when the next one came, or, where it is the last one, when it was withdrawn or its interval ended;
    /// what was told as past from the beginning did not cease. These stay however old they are: a current
    /// version that a caller's correction or undoing wrote; the version before one that a conflict closed, and what closed it, since a forget of the latter opens the
    /// former again. A change whose versions are all gone is gone too.
    async fn expire(&self, scope: &Scope, now: Timestamp, most: u32) -> Result<Erased>;

    /// When it returns, no file of the store holds text of what was removed before. It may take long, as it may have to
    /// rewrite the store, and is nothing when nothing was removed since the last time. What was begun is finished also when the caller leaves.
    async fn scrub(&self) -> Result<()>;

    /// [`Erasure::remove`] and [`Erasure::scrub`].
    async fn erase(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        let erased = self.remove(scope, filter).await?;
        // Also when nothing matched: an erase that was cut short by a crash is tried again by its caller.
        self.scrub().await?;
        Ok(erased)
    }

    /// Spaces that have something to remove at `now`; those with a period and dead letters, or with a period for versions, may be
    /// among them without. Those on hold are not.
    async fn expired(&self, now: Timestamp) -> Result<Vec<Scope>>;
}
