//! Lineage: what was derived from memories that are shown says nothing new (AMP item 85).

use super::{Chosen, Selection};
use crate::block::{Extent, Reason};
use crate::candidate::Candidate;

impl Selection<'_> {
    /// One of the chosen that this was derived from, if all of them are shown as a whole.
    pub(super) fn derived_from_shown(&self, candidate: &Candidate<'_>) -> Option<usize> {
        let shown = |id: &&str| {
            self.chosen.iter().position(|chosen| {
                let is_it = !id.is_empty() && self.candidates[chosen.candidate].id == *id;
                is_it && chosen.extent == Extent::Whole
            })
        };
        let sources: Option<Vec<usize>> = candidate.lineage.iter().map(shown).collect();
        sources?.first().copied()
    }

    /// Gives up what was chosen before all that it was derived from was chosen, too. Its room goes to excerpts.
    pub(super) fn absorb(&mut self) {
        // From the back, so that the places of those before stay. Each is asked anew: two that name each other do not both go.
        for at in (0..self.chosen.len()).rev() {
            let candidate = &self.candidates[self.chosen[at].candidate];
            let Some(of) = self.derived_from_shown(candidate).filter(|of| *of != at) else {
                continue;
            };
            let source = self.chosen[of].candidate;
            let gone = self.chosen.remove(at);
            self.room += gone.tokens;
            self.leave_out(gone.candidate, Reason::DerivedFromIncluded);
            let is_source = |chosen: &&mut Chosen| chosen.candidate == source;
            if let Some(of) = self.chosen.iter_mut().find(is_source) {
                of.merged.push(gone.candidate);
                of.merged.extend(gone.merged);
            }
        }
    }
}
