//! Lineage: what was derived from memories that are shown says nothing new (AMP item 85).

use super::Selection;
use crate::block::{Extent, Reason};
use crate::candidate::Candidate;
use std::collections::HashSet;

impl Selection<'_> {
    /// One of the chosen that this was derived from, if all of them are shown as a whole.
    pub(super) fn derived_from_shown(&self, candidate: &Candidate<'_>) -> Option<usize> {
        let shown = |id: &&str| {
            let at = self.ids.get(id).copied();
            at.filter(|&at| self.chosen[at].extent == Extent::Whole)
        };
        let mut sources = candidate.lineage.iter().map(shown);
        let first = sources.next()??;
        sources.all(|at| at.is_some()).then_some(first)
    }

    /// Gives up what was chosen before all that it was derived from was chosen, too. Its room goes to excerpts.
    pub(super) fn absorb(&mut self) {
        let mut gone = HashSet::new();
        // Each is asked without those that went: two that name each other do not both go.
        for at in (0..self.chosen.len()).rev() {
            let index = self.chosen[at].candidate;
            let candidate = &self.candidates[index];
            let Some(of) = self.derived_from_shown(candidate).filter(|of| *of != at) else {
                continue;
            };
            self.ids.remove(candidate.id);
            self.room += self.chosen[at].tokens;
            self.leave_out(index, Reason::DerivedFromIncluded);
            let merged = std::mem::take(&mut self.chosen[at].merged);
            self.chosen[of].merged.push(index);
            self.chosen[of].merged.extend(merged);
            gone.insert(index);
        }
        // Places are of no use from here on.
        self.chosen
            .retain(|chosen| !gone.contains(&chosen.candidate));
    }
}
