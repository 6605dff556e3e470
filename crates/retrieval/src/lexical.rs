//! BM25 over passages, windows (a passage with the one before and the one after) and sessions. Only rows that hold a term of
//! the query are touched; document frequencies are those of all spaces together.

use crate::candidates::Searched;
use crate::index::NONE;
use crate::plan::Plan;
use crate::signal::Signal;
use crate::weights::{Bm25, Weights};

/// How often a term occurs in a unit: (unit, count), each unit once.
type Matches = Vec<(u32, u32)>;

/// Lexical scores of one space; 0 where nothing matches.
#[derive(Debug, Default)]
pub(crate) struct Lexical {
    /// By row.
    pub(crate) window: Vec<f32>,
    /// By row.
    pub(crate) passage: Vec<f32>,
    /// By session.
    pub(crate) session: Vec<f32>,
    /// By session, for the names of mentioned speakers.
    pub(crate) session_names: Vec<f32>,
}

/// Scores every space.
pub(crate) fn score(spaces: &[Searched<'_>], plan: &Plan, weights: &Weights) -> Vec<Lexical> {
    let mut scores: Vec<Lexical> = spaces.iter().map(Lexical::of).collect();
    let units = Units::of(spaces);
    for term in plan.plain_terms() {
        let matches: Vec<Matches> = spaces.iter().map(|space| windows(space, term)).collect();
        let length = |space: usize, row| window_length(&spaces[space], row);
        units.window.add(
            &matches,
            weights.bm25,
            length,
            scores.iter_mut().map(|score| &mut score.window),
        );
        if weights.use_any(&[Signal::Bm25]) {
            let matches: Vec<Matches> = spaces.iter().map(|space| passages(space, term)).collect();
            let length = |space: usize, row| spaces[space].index.passages().length(row);
            units.passage.add(
                &matches,
                weights.bm25,
                length,
                scores.iter_mut().map(|score| &mut score.passage),
            );
        }
    }
    let session_length = |space: usize, session| spaces[space].index.session_length(session);
    if weights.use_any(&[Signal::Bm25Session]) {
        for term in &plan.terms {
            let matches: Vec<Matches> = spaces.iter().map(|space| sessions(space, term)).collect();
            let scores = scores.iter_mut().map(|score| &mut score.session);
            units
                .session
                .add(&matches, weights.bm25, session_length, scores);
        }
    }
    if weights.use_any(&[Signal::Bm25SessionNames]) {
        for term in &plan.names {
            let matches: Vec<Matches> = spaces.iter().map(|space| sessions(space, term)).collect();
            let scores = scores.iter_mut().map(|score| &mut score.session_names);
            units
                .session
                .add(&matches, weights.bm25, session_length, scores);
        }
    }
    scores
}

impl Lexical {
    fn of(space: &Searched<'_>) -> Self {
        let rows = space.index.passages().rows();
        let sessions = space.index.session_slots();
        Self {
            window: vec![0.0; rows],
            passage: vec![0.0; rows],
            session: vec![0.0; sessions],
            session_names: vec![0.0; sessions],
        }
    }
}

/// How many units of a kind there are, and how long they are on average.
struct Collection {
    count: f32,
    average_length: f32,
}

/// The collections of every kind of unit.
struct Units {
    passage: Collection,
    window: Collection,
    session: Collection,
}

impl Units {
    fn of(spaces: &[Searched<'_>]) -> Self {
        let (mut rows, mut sessions, mut length, mut window_length) = (0, 0, 0, 0);
        for space in spaces {
            let passages = space.index.passages();
            rows += passages.alive();
            sessions += space.index.sessions();
            length += passages.total_length();
            window_length += passages.window_length();
        }
        Self {
            passage: Collection::new(rows, length),
            window: Collection::new(rows, window_length),
            session: Collection::new(sessions, length),
        }
    }
}

impl Collection {
    fn new(count: usize, length: u64) -> Self {
        let count = count.max(1) as f32;
        Self {
            count,
            average_length: (length as f32 / count).max(1.0),
        }
    }

    /// Adds one term's BM25 to the scores of each space.
    fn add<'a>(
        &self,
        matches: &[Matches],
        Bm25 { k1, b }: Bm25,
        length: impl Fn(usize, u32) -> u32,
        scores: impl Iterator<Item = &'a mut Vec<f32>>,
    ) {
        let frequency = matches.iter().map(Vec::len).sum::<usize>() as f32;
        let idf = inverse_frequency(self.count, frequency);
        for (space, (matches, scores)) in matches.iter().zip(scores).enumerate() {
            for &(unit, count) in matches {
                let relative = length(space, unit) as f32 / self.average_length;
                let saturation = k1 * (1.0 - b + b * relative);
                let count = count as f32;
                scores[unit as usize] += idf * count * (k1 + 1.0) / (count + saturation);
            }
        }
    }
}

/// ln(1 + (N − df + ½) / (df + ½)): never negative.
pub(crate) fn inverse_frequency(count: f32, frequency: f32) -> f32 {
    (1.0 + (count - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
}

fn passages(space: &Searched<'_>, term: &str) -> Matches {
    let postings = space.index.passages().terms.postings(term);
    postings.map_or_else(Vec::new, |postings| {
        postings
            .iter()
            .map(|(row, count)| (row, u32::from(count)))
            .collect()
    })
}

fn windows(space: &Searched<'_>, term: &str) -> Matches {
    let passages = space.index.passages();
    let Some(postings) = passages.terms.postings(term) else {
        return Vec::new();
    };
    let mut counts = vec![0_u16; passages.rows()];
    let mut touched = Vec::new();
    for (row, count) in postings.iter() {
        for row in [passages.previous(row), row, passages.next(row)] {
            if row == NONE {
                continue;
            }
            let slot = &mut counts[row as usize];
            if *slot == 0 {
                touched.push(row);
            }
            *slot += u16::from(count);
        }
    }
    touched
        .into_iter()
        .map(|row| (row, u32::from(counts[row as usize])))
        .collect()
}

fn sessions(space: &Searched<'_>, term: &str) -> Matches {
    let Some(postings) = space.index.passages().terms.postings(term) else {
        return Vec::new();
    };
    let mut counts = vec![0_u32; space.index.session_slots()];
    for (row, count) in postings.iter() {
        counts[space.index.session_of(row) as usize] += u32::from(count);
    }
    (0..).zip(counts).filter(|&(_, count)| count > 0).collect()
}

fn window_length(space: &Searched<'_>, row: u32) -> u32 {
    let passages = space.index.passages();
    passages.length(passages.previous(row))
        + passages.length(row)
        + passages.length(passages.next(row))
}
