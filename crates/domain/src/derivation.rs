//! Derived memory: facts, episodes and narratives in versions. A derivation names the turns that it comes from; it changes by a new version
//! only, each written by a change that can be listed and undone, so that any past state can be read on both time axes (when it
//! was true, when we knew it).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::episode::Episode;
use crate::fact::Draft;
use crate::graph::Identity;
use crate::ids::{ChangeId, ConflictId, DerivationId, TurnId};
use crate::narrative::{Fragment, Narrative};
use crate::time::{TimeRange, Timestamp};

/// What a derivation says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// An atomic sentence.
    Fact(Box<Draft>),
    /// A summary of a range of turns.
    Episode(Box<Episode>),
    /// What was said of a story at a stretch.
    Fragment(Box<Fragment>),
    /// A story.
    Narrative(Box<Narrative>),
    /// That two names are of one entity, or are not.
    Identity(Box<Identity>),
}

impl Body {
    /// The text that it is found by.
    pub fn found_by(&self) -> String {
        match self {
            Self::Fact(fact) => fact.text.clone(),
            Self::Episode(episode) => episode.title.clone(),
            Self::Fragment(fragment) => fragment.headline.clone(),
            Self::Narrative(narrative) => narrative.headline.clone(),
            Self::Identity(identity) => {
                format!("{}, {}", identity.entity.name, identity.other.name)
            }
        }
    }
}

/// The kinds of derivations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// [`Body::Fact`].
    Fact,
    /// [`Body::Episode`].
    Episode,
    /// [`Body::Fragment`].
    Fragment,
    /// [`Body::Narrative`].
    Narrative,
    /// [`Body::Identity`].
    Identity,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Fact,
        Self::Episode,
        Self::Fragment,
        Self::Narrative,
        Self::Identity,
    ];
}

/// Who made a version what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// An extractor, by name and version (`reader-7`, or a model and the version of its prompt).
    Extracted(String),
    /// A caller's correction, which no extraction overwrites.
    Corrected,
}

/// A derivation in one of its versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Derivation {
    /// The same through all its versions.
    pub id: DerivationId,
    /// From 1.
    pub version: u32,
    /// What it says.
    pub body: Body,
    /// The turns that it comes from: of a fact first the one that states it, of an episode or a fragment all in order, of a narrative those that
    /// its headlines are words of, of an identity one that names each. Never empty.
    pub turns: Vec<TurnId>,
    /// When it holds. An interval that ends where it starts holds at no instant: the derivation was withdrawn.
    pub valid: TimeRange,
    /// When this version was what memory knew; open at the end while it is the current one.
    pub known: TimeRange,
    /// Who made it so.
    pub origin: Origin,
    /// The change that wrote it.
    pub change: ChangeId,
    /// What took its place in time, where a conflict closed its interval.
    pub succeeded_by: Option<DerivationId>,
}

impl Derivation {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self.body {
            Body::Fact(_) => Kind::Fact,
            Body::Episode(_) => Kind::Episode,
            Body::Fragment(_) => Kind::Fragment,
            Body::Narrative(_) => Kind::Narrative,
            Body::Identity(_) => Kind::Identity,
        }
    }

    /// The fact, if it is one.
    pub fn fact(&self) -> Option<&Draft> {
        match &self.body {
            Body::Fact(fact) => Some(fact),
            _ => None,
        }
    }

    /// The episode, if it is one.
    pub fn episode(&self) -> Option<&Episode> {
        match &self.body {
            Body::Episode(episode) => Some(episode),
            _ => None,
        }
    }

    /// The fragment, if it is one.
    pub fn fragment(&self) -> Option<&Fragment> {
        match &self.body {
            Body::Fragment(fragment) => Some(fragment),
            _ => None,
        }
    }

    /// The narrative, if it is one.
    pub fn narrative(&self) -> Option<&Narrative> {
        match &self.body {
            Body::Narrative(narrative) => Some(narrative),
            _ => None,
        }
    }

    /// What is said of two names, if it is that.
    pub fn identity(&self) -> Option<&Identity> {
        match &self.body {
            Body::Identity(identity) => Some(identity),
            _ => None,
        }
    }

    /// True for a fact that is a statement in its own words ([`Draft::is_statement`]).
    pub fn is_statement(&self) -> bool {
        self.fact().is_some_and(Draft::is_statement)
    }

    /// Where it stands in a chronicle: when it begins to hold or, where that is not known, when memory learned of this version.
    pub fn begins(&self) -> Option<Timestamp> {
        self.valid.start.or(self.known.start)
    }

    /// Whether it holds at no instant.
    pub fn is_withdrawn(&self) -> bool {
        let TimeRange { start, end } = self.valid;
        end.is_some_and(|end| start.is_some_and(|start| end <= start))
    }

    /// Worth for a profile of its subject, 0 to 1: 1 for a fact that a caller corrected, for a
    /// statement in its own words the probability that it is worth remembering, none for anything
    /// else.
    pub fn worth(&self) -> Option<f32> {
        let fact = self.fact()?;
        match self.origin {
            Origin::Corrected => Some(1.0),
            Origin::Extracted(_) => Some(fact.statement?.keep),
        }
    }

    /// The version after this one, to be changed and written by `change`.
    #[must_use]
    pub fn next(&self, change: ChangeId) -> Self {
        Self {
            version: self.version + 1,
            change,
            ..self.clone()
        }
    }

    /// What the version after this one holds where nothing is left of it.
    #[must_use]
    pub fn withdrawn(mut self) -> Self {
        let start = self.valid.start.unwrap_or(Timestamp::UNIX_EPOCH);
        self.valid = TimeRange {
            start: Some(start),
            end: Some(start),
        };
        self
    }
}

/// What kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The constructor derived it from turns.
    Derived,
    /// The refresher settled a conflict: an older interval was closed (AMA section 3.4, update).
    Updated,
    /// A caller corrected it.
    Corrected,
    /// An earlier change was undone: by a caller, or since both facts hold after all.
    Reverted,
    /// A newer extractor says something else.
    Rebuilt,
}

/// One change of derived memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Made twice, it is the same change.
    pub id: ChangeId,
    /// What it is.
    pub kind: ChangeKind,
    /// When: recorded time.
    pub at: Timestamp,
    /// Why, in a few words, without anything that was said.
    pub reason: String,
    /// The conflict that it settles.
    pub conflict: Option<ConflictId>,
    /// The change that it undoes.
    pub reverts: Option<ChangeId>,
}

impl ChangeKind {
    /// True for a decision of somebody, which no derivation from the turns brings back.
    pub fn is_decided(self) -> bool {
        matches!(self, Self::Corrected | Self::Reverted)
    }
}

/// Why two facts cannot both hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contradiction {
    /// The attribute has one value at a time, and they name two.
    Functional,
    /// One denies what the other states.
    Negation,
    /// They count or measure the same differently.
    Number,
    /// The newer says that the older was wrong.
    Correction,
}

/// What became of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits for the refresher.
    Found,
    /// The refresher settled it.
    Settled,
    /// It waits for a caller: rules may not decide it.
    Open,
    /// It is none: a caller undid what settled it, or both can hold. It is not settled again.
    Dismissed,
    /// It is not certain: both hold, and recall may put the newer one first.
    Possible,
}

/// Two facts that cannot both hold, or cannot with some probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conflict {
    /// The same, whoever finds it and however often.
    pub id: ConflictId,
    /// The one that was true first.
    pub older: DerivationId,
    /// The one that speaks against it.
    pub newer: DerivationId,
    /// Why.
    pub contradiction: Contradiction,
    /// From when the older one does not hold; absent: it never did.
    pub ends: Option<Timestamp>,
    /// When it was found: recorded time.
    pub found_at: Timestamp,
    /// What became of it.
    pub status: Status,
    /// Who judged (the reader of turns, or a model and the version of its prompt).
    pub judge: String,
    /// Probability that they cannot both hold, from 0 to 1. Absent where the judge gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f32>,
}

/// A version of a derivation with the change that wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WrittenVersion {
    /// The version.
    pub derivation: Derivation,
    /// The change.
    pub change: Change,
}

/// A fact or a naming that callers decided about, with its whole history: what an export carries of
/// it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecidedMemory {
    /// Every version that is kept, oldest first.
    pub versions: Vec<WrittenVersion>,
    /// Conflicts that it is in, by id, without those that wait for the refresher.
    pub conflicts: Vec<Conflict>,
}

/// Highest number of a version that an import takes, so that there are numbers left after it.
const MAX_VERSION: u32 = 1 << 30;

impl DecidedMemory {
    /// The id of the derivation. Absent where there is no version.
    pub fn id(&self) -> Option<DerivationId> {
        self.versions.first().map(|first| first.derivation.id)
    }

    /// Every turn that a version draws on.
    pub fn turns(&self) -> BTreeSet<TurnId> {
        let versions = self.versions.iter();
        let turns = versions.flat_map(|version| version.derivation.turns.iter().copied());
        turns.collect()
    }

    /// The changes by which somebody decided.
    pub fn decisions(&self) -> BTreeSet<ChangeId> {
        let changes = self.versions.iter().map(|version| &version.change);
        let decided = changes.filter(|change| change.kind.is_decided());
        decided.map(|change| change.id).collect()
    }

    /// True where this history has decisions that `known` lacks, and all that it has.
    pub fn adds_to(&self, known: &Self) -> bool {
        let (known, told) = (known.decisions(), self.decisions());
        known.is_subset(&told) && known.len() < told.len()
    }

    /// The reason why this cannot be the history of a fact or a naming, if there is one. Versions
    /// may be missing: a forget removes those that were made because of what is forgotten. A change
    /// that wrote other derivations too may have been made again here at another time.
    pub fn problem(&self) -> Option<&'static str> {
        let Some(id) = self.id() else {
            return Some("has no version");
        };
        let is_sound = |version: &WrittenVersion| {
            let WrittenVersion { derivation, change } = version;
            derivation.id == id
                && matches!(derivation.kind(), Kind::Fact | Kind::Identity)
                && !derivation.turns.is_empty()
                && derivation.change == change.id
                && derivation.known.start.is_some()
                && (1..=MAX_VERSION).contains(&derivation.version)
        };
        let follows = |pair: &[WrittenVersion]| {
            let [one, next] = [&pair[0].derivation, &pair[1].derivation];
            one.version < next.version && one.kind() == next.kind() && one.known.end.is_some()
        };
        let is_its_own = |conflict: &Conflict| {
            let Conflict { older, newer, .. } = *conflict;
            (older == id || newer == id) && conflict.id == ConflictId::of(older, newer)
        };
        if !self.versions.iter().all(is_sound) {
            return Some("has a version of something else, or one that its change did not write");
        }
        let is_open = |last: &WrittenVersion| last.derivation.known.end.is_none();
        if !self.versions.windows(2).all(follows) || !self.versions.last().is_some_and(is_open) {
            return Some("has versions out of their order");
        }
        let mut known = BTreeSet::new();
        let mut conflicts = self.conflicts.iter();
        let are_sound = conflicts.all(|it| is_its_own(it) && known.insert(it.id));
        (!are_sound).then_some("has a conflict of something else, or one twice")
    }
}
