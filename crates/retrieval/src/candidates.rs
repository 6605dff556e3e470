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
const PART: u32 = 4_096;

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

/// The `share` best rows each by window BM25, by sentence vector, and by the sum of both. One pass over all rows; the sum needs
/// only rows that hold a term, and the best by sentence vector: no other row can be among its best.
fn best(
    spaces: &[Searched<'_>],
    plan: &Plan,
    lexical: &[Lexical],
    share: usize,
) -> Vec<(usize, u32)> {
    let cosines: Vec<Vec<f32>> = spaces.iter().map(|space| cosines(space, plan)).collect();
    let (mut matched, mut count) = (Vec::new(), 0);
    let mut cosine_moments = Moments::default();
    let mut by_cosine = Top::new(share);
    for (space, row) in places(spaces) {
        count += 1;
        let cosine = cosines[space].get(row as usize).copied();
        if let Some(cosine) = cosine.filter(|cosine| cosine.is_finite()) {
            cosine_moments.add(cosine);
            by_cosine.push(cosine, (space, row));
        }
        let score = lexical[space].window[row as usize];
        if score > 0.0 {
            matched.push((score, (space, row)));
        }
    }
    let mut lexical_moments = Moments::default();
    matched
        .iter()
        .for_each(|&(score, _)| lexical_moments.add(score));
    let lexical_standard = lexical_moments.standard(count);
    let cosine_standard = cosine_moments.standard(cosine_moments.count());
    let sum = |score: f32, (space, row): (usize, u32)| {
        let cosine = cosines[space].get(row as usize).copied();
        lexical_standard.score(score) + cosine_standard.score(cosine.unwrap_or(f32::NAN))
    };
    let (mut by_words, mut by_both) = (Top::new(share), Top::new(share));
    for (score, place) in matched {
        by_words.push(score, place);
        by_both.push(sum(score, place), place);
    }
    let by_cosine: Vec<(usize, u32)> = by_cosine.into_keys().collect();
    for &place in &by_cosine {
        if lexical[place.0].window[place.1 as usize] == 0.0 {
            by_both.push(sum(0.0, place), place);
        }
    }
    let others = by_words.into_keys().chain(by_both.into_keys());
    others.chain(by_cosine).collect()
}

/// Cosine of every eligible row with the query, by row; empty without vectors.
fn cosines(space: &Searched<'_>, plan: &Plan) -> Vec<f32> {
    let sentences = &space.index.passages().sentences;
    let Some(vectors) = plan
        .vectors
        .as_ref()
        .filter(|vectors| vectors.sentence.len() == sentences.dimensions())
    else {
        return Vec::new();
    };
    let query = Query::new(&vectors.sentence);
    let mut cosines = vec![f32::NAN; space.index.passages().rows()];
    let fill = |(part, cosines): (usize, &mut [f32])| {
        for (row, cosine) in (part as u32 * PART..).zip(cosines) {
            let eligible = space.eligible.contains(row);
            if let Some(sentence) = sentences.get(row).filter(|_| eligible) {
                *cosine = query.dot(sentence) as f32;
            }
        }
    };
    cosines
        .par_chunks_mut(PART as usize)
        .enumerate()
        .for_each(fill);
    cosines
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
