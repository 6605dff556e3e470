//! BM25 over passages, windows (a passage with the one before and the one after) and sessions. Only rows that hold a term of
//! the query are touched; document frequencies are those of all spaces together.

use crate::candidates::Place;
use crate::index::{NONE, Postings};
use crate::plan::Plan;
use crate::searched::Searched;
use crate::signal::Signal;
use crate::standard::{Moments, Standard};
use crate::top::Top;
use crate::weights::{Bm25, Weights};

/// How often a term occurs in a unit: (unit, count), each unit once.
type Matches = Vec<(u32, u32)>;

/// The words of a query, looked up: the half of the first stage that needs no vectors.
#[derive(Debug)]
pub struct Lexical {
    /// By space.
    pub(crate) scores: Vec<Scores>,
    /// The BM25 of a session that says every term without end; 0 where the query has no terms, or no weight asks.
    pub(crate) attainable_session: f32,
    /// What a window score is worth among those of all rows that may be found.
    pub(crate) windows: Standard,
    /// The rows with the highest window scores.
    pub(crate) best: Vec<Place>,
}

impl Lexical {
    /// The store's numbers of the passages of a space that words find best.
    pub fn best(&self, spaces: &[Searched<'_>], space: usize) -> Vec<u32> {
        let rows = self.best.iter().filter(|&&(other, _)| other == space);
        rows.map(|&(_, row)| spaces[space].index.passage_number(row))
            .collect()
    }
}

/// Lexical scores of one space; 0 where nothing matches, empty where no weight asks.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    /// By row.
    pub(crate) window: Vec<f32>,
    /// By row.
    pub(crate) passage: Vec<f32>,
    /// By session.
    pub(crate) session: Vec<f32>,
    /// By session, for the names of mentioned speakers.
    pub(crate) session_names: Vec<f32>,
    /// By row of an episode.
    pub(crate) episode: Vec<f32>,
}

/// Looks up the words of the plan in every space.
pub fn lexical(spaces: &[Searched<'_>], plan: &Plan, weights: &Weights) -> Lexical {
    let (scores, attainable_session) = score(spaces, plan, weights);
    let mut moments = Moments::default();
    let mut best = Top::new(weights.share());
    for (space, (searched, scores)) in spaces.iter().zip(&scores).enumerate() {
        for (row, &score) in (0..).zip(&scores.window) {
            if score > 0.0 && searched.eligible.contains(row) {
                moments.add(score);
                best.push(score, (space, row));
            }
        }
    }
    let rows = spaces.iter().map(|space| space.eligible.rows()).sum();
    Lexical {
        scores,
        attainable_session,
        windows: moments.standard(rows),
        best: best.into_keys().collect(),
    }
}

/// Scores every space, the kinds of units side by side; and what no session's score exceeds.
fn score(spaces: &[Searched<'_>], plan: &Plan, weights: &Weights) -> (Vec<Scores>, f32) {
    let units = Units::of(spaces);
    let (plain, bm25) = (|| plan.plain_terms(), weights.bm25);
    let scored = |signal: Signal, score: &dyn Fn() -> Scored| {
        if weights.use_any(&[signal]) {
            score()
        } else {
            Scored {
                units: vec![Vec::new(); spaces.len()],
                attainable: 0.0,
            }
        }
    };
    let of_windows = || {
        let length = |space: &Searched<'_>, row| window_length(space, row);
        units.window.score(spaces, plain(), bm25, windows, length)
    };
    let of_passages = || {
        let length = |space: &Searched<'_>, row| space.index.passages().length(row);
        units.passage.score(spaces, plain(), bm25, passages, length)
    };
    let of_sessions = |terms: &[String]| {
        let length = |space: &Searched<'_>, session| space.index.session_length(session);
        let terms = terms.iter();
        units.session.score(spaces, terms, bm25, sessions, length)
    };
    let of_episodes = || {
        let length = |space: &Searched<'_>, row| space.index.episodes().passages().length(row);
        units.episode.score(spaces, plain(), bm25, episodes, length)
    };
    let ((window, passage), (session, session_names)) = rayon::join(
        || rayon::join(of_windows, || scored(Signal::Bm25, &of_passages)),
        || {
            rayon::join(
                || scored(Signal::Bm25Session, &|| of_sessions(&plan.terms)),
                || scored(Signal::Bm25SessionNames, &|| of_sessions(&plan.names)),
            )
        },
    );
    let attainable_session = session.attainable;
    let rows = window.units.into_iter().zip(passage.units);
    let sessions = session.units.into_iter().zip(session_names.units);
    let episodes = scored(Signal::EpisodeBm25, &of_episodes).units;
    let scores = rows
        .zip(sessions)
        .zip(episodes)
        .map(
            |(((window, passage), (session, session_names)), episode)| Scores {
                window,
                passage,
                session,
                session_names,
                episode,
            },
        )
        .collect();
    (scores, attainable_session)
}

/// The BM25 of one kind of unit.
struct Scored {
    /// By space and unit.
    units: Vec<Vec<f32>>,
    /// Of a unit that says every term without end.
    attainable: f32,
}

/// How many units of a kind there are, and how long they are on average.
struct Collection {
    count: f32,
    average_length: f32,
    /// By space: one more than the highest number of a unit.
    slots: Vec<usize>,
}

/// The collections of every kind of unit.
struct Units {
    passage: Collection,
    window: Collection,
    session: Collection,
    episode: Collection,
}

impl Units {
    fn of(spaces: &[Searched<'_>]) -> Self {
        let (mut rows, mut sessions, mut length, mut window_length) = (0, 0, 0, 0);
        let (mut episodes, mut episode_length) = (0, 0);
        for space in spaces {
            let passages = space.index.passages();
            rows += passages.alive();
            sessions += space.index.sessions();
            length += passages.total_length();
            window_length += passages.window_length();
            episodes += space.index.episodes().passages().alive();
            episode_length += space.index.episodes().passages().total_length();
        }
        let row_slots = || spaces.iter().map(|space| space.index.passages().rows());
        let episode_slots = spaces
            .iter()
            .map(|space| space.index.episodes().passages().rows());
        let session_slots = spaces.iter().map(|space| space.index.session_slots());
        Self {
            passage: Collection::new(rows, length, row_slots().collect()),
            window: Collection::new(rows, window_length, row_slots().collect()),
            session: Collection::new(sessions, length, session_slots.collect()),
            episode: Collection::new(episodes, episode_length, episode_slots.collect()),
        }
    }
}

impl Collection {
    fn new(count: usize, length: u64, slots: Vec<usize>) -> Self {
        let count = count.max(1) as f32;
        Self {
            count,
            average_length: (length as f32 / count).max(1.0),
            slots,
        }
    }

    /// BM25 of every unit.
    fn score<'t>(
        &self,
        spaces: &[Searched<'_>],
        terms: impl Iterator<Item = &'t String>,
        Bm25 { k1, b }: Bm25,
        matches: impl Fn(&Searched<'_>, &str) -> Matches,
        length: impl Fn(&Searched<'_>, u32) -> u32,
    ) -> Scored {
        let mut attainable = 0.0;
        let mut scores: Vec<Vec<f32>> = self.slots.iter().map(|&slots| vec![0.0; slots]).collect();
        for term in terms {
            let matches: Vec<Matches> = spaces.iter().map(|space| matches(space, term)).collect();
            let frequency = matches.iter().map(Vec::len).sum::<usize>() as f32;
            let idf = inverse_frequency(self.count, frequency);
            attainable += idf * (k1 + 1.0);
            for ((space, matches), scores) in spaces.iter().zip(matches).zip(&mut scores) {
                for (unit, count) in matches {
                    let relative = length(space, unit) as f32 / self.average_length;
                    let saturation = k1 * (1.0 - b + b * relative);
                    let count = count as f32;
                    scores[unit as usize] += idf * count * (k1 + 1.0) / (count + saturation);
                }
            }
        }
        Scored {
            units: scores,
            attainable,
        }
    }
}

/// ln(1 + (N − df + ½) / (df + ½)): never negative.
pub(crate) fn inverse_frequency(count: f32, frequency: f32) -> f32 {
    (1.0 + (count - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
}

fn passages(space: &Searched<'_>, term: &str) -> Matches {
    counted(space.postings(term))
}

fn episodes(space: &Searched<'_>, term: &str) -> Matches {
    counted(space.index.episodes().passages().terms.postings(term))
}

fn counted(postings: Option<&Postings>) -> Matches {
    postings.map_or_else(Vec::new, |postings| {
        postings
            .iter()
            .map(|(row, count)| (row, u32::from(count)))
            .collect()
    })
}

fn windows(space: &Searched<'_>, term: &str) -> Matches {
    let passages = space.index.passages();
    let Some(postings) = space.postings(term) else {
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
    let passages = space.index.passages();
    let Some(postings) = space.postings(term) else {
        return Vec::new();
    };
    let mut counts = vec![0_u32; space.index.session_slots()];
    for (row, count) in postings.iter() {
        counts[passages.session(row) as usize] += u32::from(count);
    }
    (0..).zip(counts).filter(|&(_, count)| count > 0).collect()
}

fn window_length(space: &Searched<'_>, row: u32) -> u32 {
    let passages = space.index.passages();
    passages.length(passages.previous(row))
        + passages.length(row)
        + passages.length(passages.next(row))
}
