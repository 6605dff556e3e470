//! Ranks of every candidate by source and stage, for an explanation. Nothing of this is computed
//! without one.

use memfleet_ports::retriever::StageRank;

use super::Turn;
use crate::candidates::{Candidates, SourceList, by_turn};
use crate::searched::Searched;
use crate::signal::Signal;
use crate::signals::Evidence;
use crate::standard::Standard;

/// Ranks by candidate, in the order of the candidates.
pub(super) struct Traces {
    sources: Vec<Vec<StageRank>>,
    stages: Vec<Vec<StageRank>>,
}

impl Traces {
    /// Ranks in the sources of the first stage. Where every turn is a candidate there was none:
    /// turns rank by what it would have looked at.
    pub(super) fn new(
        spaces: &[Searched<'_>],
        turns: &[Turn<'_>],
        candidates: &Candidates,
        evidence: &Evidence<'_>,
    ) -> Self {
        let mut sources = vec![Vec::new(); turns.len()];
        let mut add = |source: &SourceList| {
            for ((score, turn), rank) in by_turn(source, spaces).into_iter().zip(1..) {
                // Turns that are no candidates cannot be named: the candidates are made of these
                // lists.
                if let Ok(at) = candidates.turns.binary_search(&turn) {
                    let stage = source.name.into();
                    sources[at].push(StageRank { stage, rank, score });
                }
            }
        };
        if candidates.is_exhaustive() {
            let lists = exhaustive(turns, candidates, evidence);
            lists.iter().for_each(&mut add);
        } else {
            candidates.sources.iter().for_each(&mut add);
        }
        Self {
            sources,
            stages: vec![Vec::new(); turns.len()],
        }
    }

    /// Adds the ranks after a stage: its scores, and the candidates by them, best first.
    pub(super) fn add_stage(&mut self, name: &'static str, scores: &[f32], order: &[usize]) {
        for (&at, rank) in order.iter().zip(1..) {
            self.stages[at].push(StageRank {
                stage: name.into(),
                rank,
                score: Some(scores[at]),
            });
        }
    }

    /// The sources that name a candidate.
    pub(super) fn sources(&self, at: usize) -> Vec<StageRank> {
        self.sources[at].clone()
    }

    /// Its ranks after the stages.
    pub(super) fn stages(&self, at: usize) -> Vec<StageRank> {
        self.stages[at].clone()
    }
}

/// The sources of a search without a first stage.
fn exhaustive(
    turns: &[Turn<'_>],
    candidates: &Candidates,
    evidence: &Evidence<'_>,
) -> [SourceList; 3] {
    let places = || turns.iter().flat_map(Turn::places);
    let values = |signal: Signal| places().map(move |place| evidence.value(signal, place));
    let keys = places().map(|place| (place.space, place.row));
    let words: Vec<f32> = values(Signal::Bm25Window).collect();
    let cosines: Vec<f32> = values(Signal::Cosine).collect();
    let standard = Standard::of(cosines.iter().copied());
    let rows = words.into_iter().zip(cosines).zip(keys);
    let rows: Vec<((f32, f32), (usize, u32))> = rows.collect();
    let with = |score: &dyn Fn(f32, f32) -> Option<f32>| -> Vec<(f32, (usize, u32))> {
        let scored = |&((words, cosine), key)| Some((score(words, cosine)?, key));
        rows.iter().filter_map(scored).collect()
    };
    let sum = |words, cosine| candidates.lexical.windows.score(words) + standard.score(cosine);
    [
        SourceList::words(with(&|words, _| (words > 0.0).then_some(words))),
        SourceList::vectors(with(&|_, cosine| cosine.is_finite().then_some(cosine))),
        SourceList::both(with(&|words, cosine| {
            let is_known = words > 0.0 || cosine.is_finite();
            is_known.then(|| sum(words, cosine))
        })),
    ]
}
