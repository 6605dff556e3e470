//! The part of a session that is cut anew: what changed, and enough before it that the cuts find their places again.

use std::collections::HashSet;

use memfleet_domain::derivation::{Derivation, Kind, Origin};
use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};

use super::Summariser;

/// Turns before the first one that changed: two full windows, since a cut may move the one before the last.
const BEFORE: u32 = 80;

/// What is cut, and what is known of it.
pub(super) struct Stretch {
    /// Turns that follow each other, in order, without those that were replaced.
    pub(super) segments: Vec<Vec<Turn>>,
    /// Episodes of these turns and those beside them, withdrawn or not.
    pub(super) known: Vec<Derivation>,
    /// Turns that are cut, replaced ones among them.
    turns: HashSet<TurnId>,
}

impl Stretch {
    /// The episodes that go where they are not cut out again.
    pub(super) fn replaceable(&self) -> impl Iterator<Item = &Derivation> {
        self.known.iter().filter(|episode| {
            !episode.is_withdrawn()
                && episode.origin != Origin::Corrected
                && self.turns.contains(&episode.turns[0])
        })
    }
}

impl Summariser {
    /// `changed` are turns of one session.
    pub(super) async fn stretch(
        &self,
        scope: &Scope,
        changed: Vec<Turn>,
    ) -> Result<Stretch, Fault> {
        let deriver = &self.0;
        let first = changed
            .iter()
            .min_by_key(|turn| turn.position)
            .expect("a session is looked at where a turn of it changed");
        let (first, begun) = (first.accepted.id, first.position);
        let mut turns = deriver.ledger.preceding(scope, first, BEFORE).await?;
        turns.extend(changed);
        let known = deriver.known(scope, Kind::Episode, &turns).await?;
        turns.extend(self.beside(scope, &turns, &known).await?);
        turns.sort_unstable_by_key(|turn| turn.position);
        let from = beginning(&turns, &known, begun);
        turns.retain(|turn| turn.position >= from);
        Ok(Stretch {
            turns: turns.iter().map(|turn| turn.accepted.id).collect(),
            segments: segments(turns),
            known,
        })
    }

    /// The turns of these episodes that are not among `turns`.
    async fn beside(
        &self,
        scope: &Scope,
        turns: &[Turn],
        known: &[Derivation],
    ) -> Result<Vec<Turn>, Fault> {
        let have: HashSet<TurnId> = turns.iter().map(|turn| turn.accepted.id).collect();
        let standing = known.iter().filter(|episode| !episode.is_withdrawn());
        let missing: HashSet<TurnId> = standing
            .flat_map(|episode| &episode.turns)
            .filter(|turn| !have.contains(turn))
            .copied()
            .collect();
        let missing: Vec<TurnId> = missing.into_iter().collect();
        Ok(self.0.ledger.turns(scope, &missing).await?)
    }
}

/// Where the cutting begins: with the last but one of the episodes that began before the first change.
fn beginning(turns: &[Turn], known: &[Derivation], changed: u32) -> u32 {
    let openings: HashSet<TurnId> = known
        .iter()
        .filter(|episode| !episode.is_withdrawn())
        .map(|episode| episode.turns[0])
        .collect();
    let before = turns
        .iter()
        .rev()
        .filter(|turn| turn.position < changed && openings.contains(&turn.accepted.id));
    let last_two = before.take(2).last();
    last_two
        .or(turns.first())
        .map_or(changed, |turn| turn.position)
}

/// Parted where turns are missing; replaced ones are left out.
fn segments(turns: Vec<Turn>) -> Vec<Vec<Turn>> {
    let mut segments: Vec<Vec<Turn>> = Vec::new();
    let mut last = None;
    for turn in turns {
        let follows = last.is_some_and(|last| turn.position == last + 1);
        last = Some(turn.position);
        if !follows {
            segments.push(Vec::new());
        }
        if turn.replaced.is_none()
            && let Some(segment) = segments.last_mut()
        {
            segment.push(turn);
        }
    }
    segments
}
