//! Narratives in rule form (Amory section 3.1, momentum-aware binding): whether a run goes on with what was said just before, and which story a
//! new fragment belongs to. A story is known by the openings of its fragments, as a spike showed that what follows an opening says
//! less of it. What was calibrated, and on what: docs/benchmarks.md, "Requirements of many tasks".

use std::collections::{HashMap, VecDeque};

use memfleet_domain::ids::DerivationId;

mod plot;
mod vector;

#[cfg(test)]
mod tests;

pub use plot::{Member, Plot, plot};
use vector::Sum;
pub use vector::Vector;

/// Who binds.
pub const BINDER: &str = "rules-1";
/// Runs of a fragment, at most.
pub const LONGEST: usize = 32;
/// Terms below which a turn that opens nothing is filler: it is in the ledger, and in no narrative.
pub const FILLER: u32 = 3;
/// Fragments that are remembered of a space, the latest.
pub const REMEMBERED: usize = 2_000;

/// How alike a fragment's opening and a story are at least, as cosine: below it opens a new one.
const SAME_STORY: f32 = 0.5;
/// How alike the nearest of other openings is taken to be at least: where few are known, chance did not have its say yet.
const CHANCE: f32 = 0.25;
/// What likeness weighs …
const LIKENESS: f32 = 6.0;
/// … and what length does, in units of its logarithm: what goes on leaves out what is known.
const LENGTH: f32 = 8.4;
/// What speaks for something new where nothing else does.
const BIAS: f32 = 1.3;

/// The turn that opens a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// Its sentence vector, where known.
    pub vector: Option<Vector>,
    /// Its terms, with repeats.
    pub words: u32,
}

/// The fragment that a run may go on with: the openings of its runs so far.
#[derive(Debug, Clone, Default)]
pub struct Stretch {
    first: Option<Vector>,
    centre: Sum,
    runs: usize,
}

impl Stretch {
    /// Takes a run.
    pub fn push(&mut self, opening: &Opening) {
        self.runs += 1;
        if let Some(vector) = &opening.vector {
            self.centre.add(vector);
            self.first.get_or_insert_with(|| vector.clone());
        }
    }
}

/// A fragment as the others are told apart from it.
#[derive(Debug, Clone)]
struct Remembered {
    id: DerivationId,
    narrative: DerivationId,
    vector: Option<Vector>,
    length: f32,
}

/// What is remembered of the stories of a space.
#[derive(Debug, Clone, Default)]
pub struct Stories {
    fragments: VecDeque<Remembered>,
    /// Sum of the lengths of these.
    lengths: f32,
    centres: HashMap<DerivationId, Sum>,
}

impl Stories {
    /// Remembers a fragment, bound to a story.
    pub fn bind(&mut self, fragment: DerivationId, narrative: DerivationId, opening: &Opening) {
        if let Some(vector) = &opening.vector {
            self.centres.entry(narrative).or_default().add(vector);
        }
        let length = length(opening);
        self.lengths += length;
        self.fragments.push_back(Remembered {
            id: fragment,
            narrative,
            vector: opening.vector.clone(),
            length,
        });
        if self.fragments.len() > REMEMBERED
            && let Some(oldest) = self.fragments.pop_front()
        {
            self.lengths -= oldest.length;
        }
    }

    /// Whether a run goes on with the fragment before it in its session, rather than with another one or something new. Without vectors it does.
    pub fn goes_on(&self, opening: &Opening, id: DerivationId, stretch: &Stretch) -> bool {
        if stretch.runs >= LONGEST {
            return false;
        }
        let (Some(vector), Some(first)) = (&opening.vector, &stretch.first) else {
            return true;
        };
        let others = self.fragments.iter().filter(|other| other.id != id);
        let others = others.filter_map(|other| other.vector.as_ref());
        let nearest = others
            .map(|other| vector.cosine(other))
            .fold(CHANCE, f32::max);
        let likeness = stretch.centre.cosine(vector) + first.cosine(vector) - nearest;
        let usual = self.lengths / self.fragments.len().max(1) as f32;
        let surplus = if self.fragments.is_empty() {
            0.0
        } else {
            length(opening) - usual
        };
        LIKENESS * likeness - LENGTH * surplus - BIAS >= 0.0
    }

    /// Whether one of these fragments, each with its story, is remembered as one of another story: somebody bound it anew.
    pub fn differ(&self, bound: &HashMap<DerivationId, DerivationId>) -> bool {
        let is_other = |it: &Remembered| bound.get(&it.id).is_some_and(|of| *of != it.narrative);
        self.fragments.iter().any(is_other)
    }

    /// Whether this is a fragment that is remembered, or the story of one.
    pub fn holds(&self, id: DerivationId) -> bool {
        let mut fragments = self.fragments.iter();
        self.centres.contains_key(&id) || fragments.any(|it| it.id == id || it.narrative == id)
    }

    /// The story that a fragment with this opening is part of; none where it begins one.
    pub fn story(&self, opening: &Opening) -> Option<DerivationId> {
        let scored = self.scored(opening).into_iter();
        let best = scored.max_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        best.filter(|(likeness, _)| *likeness >= SAME_STORY)
            .map(|(_, id)| id)
    }

    /// The stories that are nearest to an opening, so many at most, the nearest first.
    pub fn nearest(&self, opening: &Opening, most: usize) -> Vec<DerivationId> {
        let mut scored = self.scored(opening);
        scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
        scored.into_iter().take(most).map(|(_, id)| id).collect()
    }

    /// Every story with how alike it is. Equally near ones are told apart by their ids: what is done twice is the same.
    fn scored(&self, opening: &Opening) -> Vec<(f32, DerivationId)> {
        let Some(vector) = &opening.vector else {
            return Vec::new();
        };
        let centres = self.centres.iter();
        centres
            .map(|(id, centre)| (centre.cosine(vector), *id))
            .collect()
    }
}

fn length(opening: &Opening) -> f32 {
    (opening.words as f32).ln_1p()
}
