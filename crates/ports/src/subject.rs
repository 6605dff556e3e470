//! One person in every space of a tenant: who is meant, and how far a forget of them has come.

use memfleet_domain::ids::{SpaceId, Speaker};
use memfleet_domain::space::LegalHold;

use crate::erasure::DependentCounts;
use crate::filter::TurnFilter;
use crate::refresher::ForgetReceipt;

/// A speaker, under all the names that their turns bear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The name.
    pub name: Speaker,
    /// Other names of the same person.
    pub aliases: Vec<Speaker>,
}

impl Subject {
    /// Every turn of theirs, replaced ones too.
    pub fn filter(&self) -> TurnFilter {
        let mut speakers = vec![self.name.clone()];
        speakers.extend(self.aliases.iter().cloned());
        TurnFilter {
            speakers,
            include_replaced: true,
            ..TurnFilter::default()
        }
    }
}

/// A forget of one person in every space of the tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectForget {
    /// The person.
    pub subject: Subject,
    /// Only say what would go.
    pub dry_run: bool,
}

/// Outcome of a forget of one person in one space.
#[derive(Debug, Clone, PartialEq)]
pub enum InSpace {
    /// They are gone, or would go.
    Forgotten(ForgetReceipt),
    /// They stay, as the space is on legal hold.
    Held {
        /// The hold.
        hold: LegalHold,
        /// How many turns of theirs it keeps.
        turns: u64,
    },
}

/// Sums of a forget of one person over all spaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubjectTotal {
    /// Spaces that were looked at, those on hold too.
    pub spaces: u64,
    /// Spaces from which something is gone, or would go.
    pub changed_spaces: u64,
    /// Turns.
    pub turns: u64,
    /// Sessions that have no turn left.
    pub sessions: u64,
    /// Passages with their terms and vectors.
    pub passages: u64,
    /// Turns that waited in the queue or among the dead letters.
    pub undelivered: u64,
    /// Dead letters that could not be read.
    pub unreadable: u64,
    /// Counts of derived memory and blocks that went with the turns.
    pub dependents: DependentCounts,
    /// Spaces on legal hold.
    pub held_spaces: u64,
    /// Turns of the person that stay in them.
    pub held_turns: u64,
    /// True where nothing was touched.
    pub dry_run: bool,
}

impl SubjectTotal {
    /// Counts one more space.
    pub fn add(&mut self, space: &InSpace) {
        self.spaces += 1;
        match space {
            InSpace::Forgotten(receipt) => {
                self.changed_spaces += u64::from(!receipt.is_empty());
                self.turns += receipt.turns;
                self.sessions += receipt.sessions;
                self.passages += receipt.erased.passages;
                self.undelivered += receipt.erased.undelivered;
                self.unreadable += receipt.erased.unreadable;
                self.dependents += receipt.erased.dependents;
            }
            InSpace::Held { turns, .. } => {
                self.held_spaces += 1;
                self.held_turns += turns;
            }
        }
    }
}

/// How far a forget of a person has come. The total comes last, and once: without it the forget did
/// not reach its end.
#[derive(Debug, Clone, PartialEq)]
pub enum SubjectProgress {
    /// One space is done; they come in the order of their names.
    Space(SpaceId, InSpace),
    /// All are.
    Total(SubjectTotal),
}
