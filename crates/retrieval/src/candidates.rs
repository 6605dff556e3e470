//! The first stage: some hundred turns by window BM25, by sentence vectors, and by the sum of both, a third each.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::dot::Query;
use crate::index::{Eligible, SpaceIndex};
use crate::lexical::{self, Lexical};
use crate::plan::Plan;
use crate::standard::Moments;
use crate::top::Top;
use crate::weights::Weights;

/// Rows that a thread compares at a time.
const PART: u32 = 8_192;

/// A space in a search. Several spaces are searched as one: document frequencies and z-scores are those of all together.
#[derive(Debug)]
pub struct Searched<'a> {
    /// The space.
    pub index: &'a SpaceIndex,
    /// Which of its turns may be found.
    pub eligible: Eligible,
}

/// The turns that go into the second stage.
#[derive(Debug)]
pub struct Candidates {
    /// (space, turn slot), in a fixed order.
    pub(crate) turns: Vec<(usize, u32)>,
    /// By space: the candidates' rows and their neighbours, ascending.
    pub(crate) rows: Vec<Vec<u32>>,
    pub(crate) lexical: Vec<Lexical>,
    numbers: Vec<Vec<u32>>,
}

impl Candidates {
    /// The passages whose token vectors [`crate::rank()`] reads, by space in the order of the search: the store's numbers.
    pub fn needed(&self) -> &[Vec<u32>] {
        &self.numbers
    }

    /// How many turns there are.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether nothing may be found.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

/// Picks the candidates: all turns where there are no more than [`Weights::exhaustive`].
pub fn candidates(spaces: &[Searched<'_>], plan: &Plan, weights: &Weights) -> Candidates {
    let lexical = lexical::score(spaces, plan, weights);
    let eligible = spaces
        .iter()
        .map(|space| space.eligible.turns())
        .sum::<usize>();
    let rows: Vec<(usize, u32)> = if eligible <= weights.exhaustive {
        places(spaces).collect()
    } else {
        best(spaces, plan, &lexical, weights.candidates / 3)
    };
    let turn = |(space, row): (usize, u32)| (space, spaces[space].index.passages().turn(row));
    let turns: BTreeSet<(usize, u32)> = rows.into_iter().map(turn).collect();
    let turns: Vec<(usize, u32)> = turns.into_iter().collect();
    let needed = needed(spaces, &turns, weights.window.len());
    let number = |(space, rows): (&Searched<'_>, &Vec<u32>)| {
        rows.iter()
            .map(|&row| space.index.passage_number(row))
            .collect()
    };
    let numbers = spaces.iter().zip(&needed).map(number).collect();
    Candidates {
        turns,
        rows: needed,
        lexical,
        numbers,
    }
}

/// Every row that may be found.
fn places(spaces: &[Searched<'_>]) -> impl Iterator<Item = (usize, u32)> {
    spaces
        .iter()
        .enumerate()
        .flat_map(|(space, searched)| searched.eligible.rows().map(move |row| (space, row)))
}

/// A row and its space.
type Place = (usize, u32);

/// The `share` best rows each by window BM25, by sentence vector, and by the sum of both. One pass over all rows; the sum needs
/// only rows that hold a term, and the best by sentence vector: no other row can be among its best.
fn best(spaces: &[Searched<'_>], plan: &Plan, lexical: &[Lexical], share: usize) -> Vec<Place> {
    let mut all = Pass::new(share);
    for (space, searched) in spaces.iter().enumerate() {
        for part in passes(space, searched, plan, &lexical[space], share) {
            all.absorb(part);
        }
    }
    let by_words = all.lexical.standard(all.count);
    let by_cosine = all.cosines.standard(all.cosines.count());
    let sum = |score: f32, cosine: f32| by_words.score(score) + by_cosine.score(cosine);
    let mut by_both = Top::new(share);
    for &(score, cosine, place) in &all.matched {
        by_both.push(sum(score, cosine), place);
    }
    let near: Vec<(f32, Place)> = all.by_cosine.into_entries().collect();
    for &(cosine, place) in &near {
        if lexical[place.0].window[place.1 as usize] == 0.0 {
            by_both.push(sum(0.0, cosine), place);
        }
    }
    let others = all.by_words.into_keys().chain(by_both.into_keys());
    others
        .chain(near.into_iter().map(|(_, place)| place))
        .collect()
}

/// What one pass over some rows finds.
struct Pass {
    /// Rows that may be found.
    count: usize,
    lexical: Moments,
    cosines: Moments,
    by_words: Top<Place>,
    by_cosine: Top<Place>,
    /// Rows that hold a term, with BM25 and cosine.
    matched: Vec<(f32, f32, Place)>,
}

impl Pass {
    fn new(share: usize) -> Self {
        Self {
            count: 0,
            lexical: Moments::default(),
            cosines: Moments::default(),
            by_words: Top::new(share),
            by_cosine: Top::new(share),
            matched: Vec::new(),
        }
    }

    fn add(&mut self, score: f32, cosine: f32, place: Place) {
        self.count += 1;
        if cosine.is_finite() {
            self.cosines.add(cosine);
            self.by_cosine.push(cosine, place);
        }
        if score > 0.0 {
            self.lexical.add(score);
            self.by_words.push(score, place);
            self.matched.push((score, cosine, place));
        }
    }

    fn absorb(&mut self, other: Self) {
        self.count += other.count;
        self.lexical.absorb(other.lexical);
        self.cosines.absorb(other.cosines);
        for (score, place) in other.by_words.into_entries() {
            self.by_words.push(score, place);
        }
        for (cosine, place) in other.by_cosine.into_entries() {
            self.by_cosine.push(cosine, place);
        }
        self.matched.extend(other.matched);
    }
}

/// The rows of a space that may be found, part by part, by as many threads as there are.
fn passes(
    space: usize,
    Searched { index, eligible }: &Searched<'_>,
    plan: &Plan,
    lexical: &Lexical,
    share: usize,
) -> Vec<Pass> {
    let sentences = &index.passages().sentences;
    let vector = plan.vectors.as_ref().map(|vectors| &vectors.sentence);
    let vector = vector.filter(|vector| vector.len() == sentences.dimensions());
    let query = vector.map(|vector| Query::new(vector));
    let pass = |rows: std::ops::Range<u32>| {
        let mut pass = Pass::new(share);
        for row in rows.filter(|&row| eligible.contains(row)) {
            let cosine = query.as_ref().zip(sentences.get(row));
            let cosine = cosine.map_or(f32::NAN, |(query, row)| query.dot(row) as f32);
            pass.add(lexical.window[row as usize], cosine, (space, row));
        }
        pass
    };
    let rows = index.passages().rows() as u32;
    let parts = (0..rows.div_ceil(PART)).into_par_iter();
    parts
        .map(|part| pass(part * PART..rows.min((part + 1) * PART)))
        .collect()
}

/// The rows of the turns and up to `reach` linked rows on either side, by space, ascending.
fn needed(spaces: &[Searched<'_>], turns: &[(usize, u32)], reach: usize) -> Vec<Vec<u32>> {
    let mut needed = vec![Vec::new(); spaces.len()];
    for &(space, slot) in turns {
        let (index, rows) = (spaces[space].index, &mut needed[space]);
        let own = index.turn(slot).rows();
        rows.extend(index.passages().before(own.start).take(reach));
        rows.extend(index.passages().after(own.end - 1).take(reach));
        rows.extend(own);
    }
    for rows in &mut needed {
        rows.sort_unstable();
        rows.dedup();
    }
    needed
}
