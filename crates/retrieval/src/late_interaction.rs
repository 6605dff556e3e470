//! Late interaction (MaxSim, Khattab & Zaharia 2020): each word piece of the query looks for its best match in a passage; a
//! piece that is rare in the space counts more. The window form also accepts a match in a neighbouring passage, at a discount.

use std::sync::Arc;

use hashbrown::HashMap;
use memfleet_domain::embedding::TokenVectors;
use rayon::prelude::*;

use crate::candidates::Candidates;
use crate::dot::Tiles;
use crate::lexical::inverse_frequency;
use crate::plan::Plan;
use crate::searched::Searched;

/// Components of stored token vectors are those of unit vectors × 200.
const UNIT: f32 = 200.0 * 200.0;

/// Passages that a thread compares at a time.
const PART: usize = 256;

/// What the caller read for [`Candidates::needed`].
pub(crate) type TokensBySpace = [Vec<Option<Arc<TokenVectors>>>];

/// Highest cosine of each query piece with any piece of each needed passage.
pub(crate) struct LateInteraction<'a> {
    candidates: &'a Candidates,
    /// Weight of each query piece; their sum is 1.
    weights: Vec<f32>,
    /// By space: a row of cosines a needed passage, then an episode, then a fact; NaN where its token vectors are missing.
    similarities: Vec<Vec<f32>>,
    /// By (space, session): MaxSim over all rows that were read.
    sessions: HashMap<(usize, u32), f32>,
}

impl<'a> LateInteraction<'a> {
    /// Compares the query with every passage that the candidates need; absent when the query has no token vectors.
    pub(crate) fn new(
        spaces: &[Searched<'_>],
        plan: &Plan,
        candidates: &'a Candidates,
        tokens: &TokensBySpace,
    ) -> Option<Self> {
        let query = &plan.vectors.as_ref()?.tokens;
        if query.pieces.is_empty() {
            return None;
        }
        let tiles = Tiles::new(&query.values, query.dimensions);
        let similarities = tokens
            .iter()
            .map(|passages| compare(&tiles, passages))
            .collect();
        let weights = piece_weights(spaces, &query.pieces);
        let mut late = Self {
            candidates,
            weights,
            similarities,
            sessions: HashMap::new(),
        };
        late.read_sessions(spaces);
        Some(late)
    }

    /// MaxSim of a whole session, as far as it was read; NaN without token vectors.
    pub(crate) fn session(&self, space: usize, session: u32) -> f32 {
        self.sessions
            .get(&(space, session))
            .copied()
            .unwrap_or(f32::NAN)
    }

    fn read_sessions(&mut self, spaces: &[Searched<'_>]) {
        let width = self.weights.len();
        let mut best: HashMap<(usize, u32), Vec<f32>> = HashMap::new();
        for (space, rows) in self.candidates.rows.iter().enumerate() {
            for (&row, similarities) in rows
                .iter()
                .zip(self.similarities[space].chunks_exact(width))
            {
                let session = spaces[space].index.passages().session(row);
                let best = best
                    .entry((space, session))
                    .or_insert_with(|| vec![f32::NAN; width]);
                best.iter_mut()
                    .zip(similarities)
                    .for_each(|(best, &x)| *best = best.max(x));
            }
        }
        self.sessions = best
            .into_iter()
            .map(|(key, best)| (key, self.weighted(best.into_iter())))
            .collect();
    }

    /// MaxSim of a candidate's row; NaN without token vectors, or where they were not read.
    pub(crate) fn passage(&self, space: usize, row: u32) -> f32 {
        self.row(space, row)
            .map_or(f32::NAN, |row| self.weighted(row.iter().copied()))
    }

    /// MaxSim of an episode's head; NaN without token vectors, or where they were not read.
    pub(crate) fn episode(&self, space: usize, row: u32) -> f32 {
        let at = self.candidates.derived[space].episodes.binary_search(&row);
        let before = self.candidates.rows[space].len();
        at.map_or(f32::NAN, |at| self.nth(space, before + at))
    }

    /// MaxSim of a fact; NaN without token vectors, or where they were not read.
    pub(crate) fn fact(&self, space: usize, row: u32) -> f32 {
        let derived = &self.candidates.derived[space];
        let before = self.candidates.rows[space].len() + derived.episodes.len();
        let at = derived.facts.binary_search(&row);
        at.map_or(f32::NAN, |at| self.nth(space, before + at))
    }

    fn nth(&self, space: usize, at: usize) -> f32 {
        let width = self.weights.len();
        let row = &self.similarities[space][at * width..(at + 1) * width];
        self.weighted(row.iter().copied())
    }

    /// MaxSim of a candidate's row and its neighbours, discounted by distance; NaN where the row was not read.
    pub(crate) fn window(
        &self,
        searched: &Searched<'_>,
        space: usize,
        row: u32,
        discounts: &[f32],
    ) -> f32 {
        let Some(own) = self.row(space, row) else {
            return f32::NAN;
        };
        let mut best = own.to_vec();
        let passages = searched.index.passages();
        let before = passages.before(row).zip(discounts);
        let after = passages.after(row).zip(discounts);
        for (row, discount) in before.chain(after) {
            let neighbour = self.row(space, row).unwrap_or_default();
            // `max` passes over what is missing on one side.
            best.iter_mut()
                .zip(neighbour)
                .for_each(|(best, &x)| *best = best.max(discount * x));
        }
        self.weighted(best.into_iter())
    }

    fn weighted(&self, similarities: impl Iterator<Item = f32>) -> f32 {
        self.weights
            .iter()
            .zip(similarities)
            .map(|(weight, similarity)| weight * similarity)
            .sum()
    }

    fn row(&self, space: usize, row: u32) -> Option<&[f32]> {
        let at = self.candidates.rows[space].binary_search(&row).ok()?;
        let width = self.weights.len();
        Some(&self.similarities[space][at * width..(at + 1) * width])
    }
}

/// A row of cosines a passage. Token vectors lie all over memory, and two threads wait for it side by side.
fn compare(tiles: &Tiles, passages: &[Option<Arc<TokenVectors>>]) -> Vec<f32> {
    let width = tiles.tokens();
    let mut similarities = vec![f32::NAN; passages.len() * width];
    similarities
        .par_chunks_mut(width * PART)
        .zip(passages.par_chunks(PART))
        .for_each(|(similarities, passages)| compare_part(tiles, passages, similarities));
    similarities
}

fn compare_part(tiles: &Tiles, passages: &[Option<Arc<TokenVectors>>], similarities: &mut [f32]) {
    let mut best = vec![0; tiles.tokens()];
    let rows = similarities.chunks_exact_mut(tiles.tokens());
    for (passage, row) in passages.iter().zip(rows) {
        let comparable = |tokens: &&Arc<TokenVectors>| {
            tokens.dimensions == tiles.dimensions() && !tokens.values.is_empty()
        };
        if let Some(tokens) = passage.as_ref().filter(comparable) {
            tiles.highest(&tokens.values, &mut best);
            row.iter_mut()
                .zip(&best)
                .for_each(|(cosine, &product)| *cosine = product as f32 / UNIT);
        }
    }
}

/// IDF of each query piece over the passages of all spaces, scaled to a sum of 1.
fn piece_weights(spaces: &[Searched<'_>], pieces: &[u32]) -> Vec<f32> {
    let count = spaces
        .iter()
        .map(|space| space.index.passages().alive())
        .sum::<usize>() as f32;
    let frequency = |piece| {
        spaces
            .iter()
            .map(|space| space.piece_frequency(piece))
            .sum::<f32>()
    };
    let mut weights: Vec<f32> = pieces
        .iter()
        .map(|&piece| inverse_frequency(count, frequency(piece)))
        .collect();
    let sum = weights.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}
