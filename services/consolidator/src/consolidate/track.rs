//! Which narratives of a space are spoken of, counted in turns. Read once and kept while nobody else works there.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::narrative::Momentum;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Question;

use super::Plotter;

/// Spaces that are kept; some 50 bytes for each fragment.
const KEPT: usize = 16;

/// The narratives of a space that may go inactive.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// Turns that are in fragments.
    said: u64,
    /// The narrative and the turns of every fragment.
    fragments: HashMap<DerivationId, (DerivationId, usize)>,
    /// What was said by the time of the last word on each narrative that is not inactive.
    open: HashMap<DerivationId, u64>,
}

impl Track {
    /// Takes fragments, new or grown; the narratives of those that have no subplot yet.
    pub(super) fn hear(&mut self, fragments: &[Derivation]) -> HashSet<DerivationId> {
        let mut news = HashSet::new();
        for derivation in fragments {
            let Some(fragment) = derivation.fragment() else {
                continue;
            };
            let (narrative, turns) = (fragment.narrative, derivation.turns.len());
            let before = self.fragments.insert(derivation.id, (narrative, turns));
            let is_new = before.is_none_or(|(of, _)| of != narrative);
            let known = before.map_or(0, |(_, turns)| turns);
            self.said += turns.saturating_sub(known) as u64;
            if fragment.subplot.is_none() {
                news.insert(narrative);
            }
            if is_new && fragment.subplot.is_none() {
                self.open.insert(narrative, self.said);
            } else if turns > known
                && let Some(last) = self.open.get_mut(&narrative)
            {
                *last = self.said;
            }
        }
        news
    }

    /// The narratives of which nothing was said for a span of turns.
    pub(super) fn quiet(&self, span: u64) -> HashSet<DerivationId> {
        let is_quiet = |(_, last): &(_, &u64)| self.said - **last >= span;
        let quiet = self.open.iter().filter(is_quiet);
        quiet.map(|(id, _)| *id).collect()
    }

    /// These are inactive.
    pub(super) fn settle(&mut self, quiet: &HashSet<DerivationId>) {
        self.open.retain(|id, _| !quiet.contains(id));
    }
}

impl Plotter {
    /// The track of a space as it is now.
    pub(super) async fn track(&self, scope: &Scope) -> Result<Track, Fault> {
        let all = |kind| {
            let question = Question::default();
            self.consolidator.of_kind(scope, kind, question)
        };
        let (mut track, mut pending) = (Track::default(), HashSet::new());
        for fragment in all(Kind::Fragment).await? {
            track.hear(std::slice::from_ref(&fragment));
            if let Some(told) = fragment.fragment() {
                track.open.insert(told.narrative, track.said);
                match told.subplot {
                    Some(_) => pending.remove(&told.narrative),
                    None => pending.insert(told.narrative),
                };
            }
        }
        for derivation in all(Kind::Narrative).await? {
            let momentum = derivation.narrative().map(|it| it.momentum);
            if momentum == Some(Momentum::Inactive) && !pending.contains(&derivation.id) {
                track.open.remove(&derivation.id);
            }
        }
        Ok(track)
    }
}

/// The tracks of some spaces, those that were worked on last at the end.
#[derive(Debug, Default)]
pub(super) struct Tracks(Mutex<VecDeque<Kept>>);

/// The track of a space as of a change sequence.
#[derive(Debug)]
struct Kept {
    scope: Scope,
    reached: u64,
    track: Track,
}

impl Tracks {
    /// That of a space, if it is of this change sequence. It is taken: who writes puts it back.
    pub(super) fn take(&self, scope: &Scope, reached: u64) -> Option<Track> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|kept| kept.scope == *scope)?;
        let kept = all.remove(at)?;
        (kept.reached == reached).then_some(kept.track)
    }

    pub(super) fn put(&self, scope: &Scope, reached: u64, track: Track) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|kept| kept.scope != *scope);
        if all.len() >= KEPT {
            all.pop_front();
        }
        all.push_back(Kept {
            scope: scope.clone(),
            reached,
            track,
        });
    }
}
