//! The first stage: some hundred turns by window BM25, by sentence vectors, and by the sum of both, a third each.

use std::collections::BTreeSet;

use crate::dot::Query;
use crate::index::{Eligible, SpaceIndex};
use crate::lexical::{self, Lexical};
use crate::plan::Plan;
use crate::standard::Standard;
use crate::top::Top;
use crate::weights::Weights;

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

/// The `share` best rows each by window BM25, by sentence vector, and by the sum of both.
fn best(
    spaces: &[Searched<'_>],
    plan: &Plan,
    lexical: &[Lexical],
    share: usize,
) -> Vec<(usize, u32)> {
    let cosines: Vec<Vec<f32>> = spaces.iter().map(|space| cosines(space, plan)).collect();
    let lexical = |(space, row): (usize, u32)| lexical[space].window[row as usize];
    let cosine = |(space, row): (usize, u32)| {
        cosines[space]
            .get(row as usize)
            .copied()
            .unwrap_or(f32::NAN)
    };
    let lexical_standard = Standard::of(places(spaces).map(lexical));
    let cosine_standard = Standard::of(places(spaces).map(cosine));
    let mut tops = [(); 3].map(|()| Top::new(share));
    for place in places(spaces) {
        let (lexical, cosine) = (lexical(place), cosine(place));
        let sum = lexical_standard.score(lexical) + cosine_standard.score(cosine);
        for (top, score) in tops.iter_mut().zip([lexical, cosine, sum]) {
            top.push(score, place);
        }
    }
    tops.into_iter().flat_map(Top::into_keys).collect()
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
    for row in space.eligible.rows() {
        if let Some(sentence) = sentences.get(row) {
            cosines[row as usize] = query.dot(sentence) as f32;
        }
    }
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
