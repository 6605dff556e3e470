//! The first stage: some hundred turns by window BM25, by sentence vectors, and by the sum of both, a third each; what stands with the
//! best of them; and what was said on a day that the query names.

mod companions;
mod dated;
mod nearest;
mod sources;

use std::collections::BTreeSet;

use memfleet_domain::ids::TurnId;

use crate::lexical::Lexical;
use crate::plan::Plan;
use crate::searched::Searched;
use crate::signal::Signal;
use crate::walk::Walk;
use crate::weights::Weights;
use companions::companions;
use dated::said_on_named_days;
use nearest::{EFFORT, nearest};
pub(crate) use sources::{SourceList, by_turn};

/// Passages up to which a search may look at all: token vectors of so many are read at once.
const EXHAUSTIVE_ROWS: usize = 4_096;
/// Of turns of more passages only the chosen ones are read. A turn may have a hundred.
const WHOLE_ROWS: usize = 8;

/// Turns that the graph reaches which become candidates.
const REACHED: usize = 50;

/// A row and its space.
pub(crate) type Place = (usize, u32);

/// The turns that go into the second stage.
#[derive(Debug)]
pub struct Candidates {
    /// (space, turn slot), in a fixed order.
    pub(crate) turns: Vec<(usize, u32)>,
    /// By space: the candidates' rows and their neighbours, ascending.
    pub(crate) rows: Vec<Vec<u32>>,
    /// By space: the facts and episodes of the candidates, as rows of theirs, ascending.
    pub(crate) derived: Vec<Derived>,
    pub(crate) lexical: Lexical,
    /// What the graph reaches from what the query names.
    pub(crate) walk: Walk,
    /// True where every turn that may be found is one.
    is_exhaustive: bool,
    /// Lists of the first stage, by source; empty where the plan is not explained.
    pub(crate) sources: Vec<SourceList>,
    numbers: Vec<Vec<u32>>,
}

/// Rows of derivations of one space.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    pub(crate) episodes: Vec<u32>,
    pub(crate) facts: Vec<u32>,
}

impl Candidates {
    /// The passages, and after them the derivations, whose token vectors [`crate::rank()`] reads, by space in the order of the search: the store's numbers.
    pub fn needed(&self) -> &[Vec<u32>] {
        &self.numbers
    }

    /// How many turns there are.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// True where every turn that may be found is one.
    pub fn is_exhaustive(&self) -> bool {
        self.is_exhaustive
    }

    /// Whether nothing may be found.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

/// Picks the candidates: all turns where there are no more than [`Weights::exhaustive`], of few enough passages. `lexical` are
/// the words of the plan, looked up by [`crate::lexical()`].
pub fn candidates(
    spaces: &[Searched<'_>],
    plan: &Plan,
    lexical: Lexical,
    weights: &Weights,
) -> Candidates {
    let route = plan.route(weights);
    let walk = match weights.routed(Signal::Graph, &route) {
        0.0 => Walk::default(),
        _ => Walk::of(spaces, plan),
    };
    let is_exhaustive = is_exhaustive(spaces, weights);
    let (chosen, sources): (Vec<Place>, _) = if is_exhaustive {
        (places(spaces).collect(), Vec::new())
    } else {
        let vector = plan.vectors.as_ref().map(|vectors| &*vectors.sentence);
        let near = nearest(spaces, vector, &lexical, weights.share(), &EFFORT);
        let mut chosen: Vec<Place> = near.places().chain(lexical.best.iter().copied()).collect();
        let fragments = match route.coherence {
            0.0 => Vec::new(),
            _ => companions(spaces, plan, &lexical, &chosen),
        };
        let reached = reached(spaces, &walk);
        let days = said_on_named_days(spaces, plan);
        chosen.extend(fragments.iter().chain(&reached).chain(&days));
        let sources = match plan.is_explained {
            true => sources::of(&lexical, near, &walk, spaces, [fragments, reached, days]),
            false => Vec::new(),
        };
        (chosen, sources)
    };
    let needed = needed(spaces, &chosen, weights.window.len());
    let turn = |(space, row): Place| (space, spaces[space].index.passages().turn(row));
    let turns: BTreeSet<(usize, u32)> = chosen.into_iter().map(turn).collect();
    let derived = derived(spaces, &turns, weights);
    let numbers = spaces.iter().zip(&needed).zip(&derived);
    let numbers = numbers.map(|((space, rows), derived)| numbers_of(space, rows, derived));
    let numbers = numbers.collect();
    Candidates {
        turns: turns.into_iter().collect(),
        rows: needed,
        derived,
        lexical,
        walk,
        is_exhaustive,
        sources,
        numbers,
    }
}

/// First rows of the turns that most walkers reach.
fn reached(spaces: &[Searched<'_>], walk: &Walk) -> Vec<Place> {
    let entry = |(space, turn): (usize, TurnId)| {
        let entry = spaces[space].index.turn_named(turn)?;
        Some((space, entry.first_row))
    };
    walk.best(REACHED).into_iter().filter_map(entry).collect()
}

/// How many passages near the query's vector a store names of a space that is not in memory; none where the search looks at every
/// turn anyway.
pub fn wanted(spaces: &[Searched<'_>], space: usize, weights: &Weights) -> usize {
    if is_exhaustive(spaces, weights) {
        return 0;
    }
    EFFORT.of_store(spaces[space].eligible.rows(), weights.share())
}

/// Whether a search looks at every turn that may be found.
pub(crate) fn is_exhaustive(spaces: &[Searched<'_>], weights: &Weights) -> bool {
    let turns: usize = spaces.iter().map(|space| space.eligible.turns()).sum();
    let rows: usize = spaces.iter().map(|space| space.eligible.rows()).sum();
    turns <= weights.exhaustive && rows <= EXHAUSTIVE_ROWS
}

/// The store's numbers of passages, episodes and facts.
fn numbers_of(space: &Searched<'_>, rows: &[u32], derived: &Derived) -> Vec<u32> {
    let (episodes, facts) = (space.index.episodes(), space.index.facts());
    let passages = rows.iter().map(|&row| space.index.passage_number(row));
    let episodes = derived.episodes.iter().map(|&row| episodes.at(row).number);
    let facts = derived.facts.iter().map(|&row| facts.at(row).number);
    passages.chain(episodes).chain(facts).collect()
}

/// What comes from the candidates, as far as a weight asks for it.
fn derived(
    spaces: &[Searched<'_>],
    turns: &BTreeSet<(usize, u32)>,
    weights: &Weights,
) -> Vec<Derived> {
    let mut derived: Vec<Derived> = spaces.iter().map(|_| Derived::default()).collect();
    for &(space, slot) in turns {
        let index = spaces[space].index;
        let turn = index.turn(slot).id;
        if weights.use_any(&[Signal::EpisodeMaxsim]) {
            let rows = index.episodes().of(turn).map(|episode| episode.row);
            derived[space].episodes.extend(rows);
        }
        if weights.again.facts != 0.0 {
            let rows = index.facts().of(turn).map(|fact| fact.row);
            derived[space].facts.extend(rows);
        }
    }
    for rows in derived
        .iter_mut()
        .flat_map(|derived| [&mut derived.episodes, &mut derived.facts])
    {
        rows.sort_unstable();
        rows.dedup();
    }
    derived
}

/// Every row that may be found.
fn places(spaces: &[Searched<'_>]) -> impl Iterator<Item = Place> {
    spaces
        .iter()
        .enumerate()
        .flat_map(|(space, searched)| searched.eligible.iter().map(move |row| (space, row)))
}

/// The rows whose token vectors are read, by space, ascending: those of the turn, or of a long turn the chosen ones, and up to
/// `reach` linked rows on either side.
fn needed(spaces: &[Searched<'_>], chosen: &[Place], reach: usize) -> Vec<Vec<u32>> {
    let mut needed = vec![Vec::new(); spaces.len()];
    for &(space, row) in chosen {
        let passages = spaces[space].index.passages();
        let turn = spaces[space].index.turn(passages.turn(row)).rows();
        let own = if turn.len() <= WHOLE_ROWS {
            turn
        } else {
            row..row + 1
        };
        let rows = &mut needed[space];
        rows.extend(passages.before(own.start).take(reach));
        rows.extend(passages.after(own.end - 1).take(reach));
        rows.extend(own);
    }
    for rows in &mut needed {
        rows.sort_unstable();
        rows.dedup();
    }
    needed
}

#[cfg(test)]
mod tests;
