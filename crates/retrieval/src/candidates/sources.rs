//! Lists of the first stage for an explanation: which turns each source names, and in which order.

use std::collections::BTreeSet;

use super::Place;
use super::nearest::NearestRows;
use crate::lexical::Lexical;
use crate::searched::Searched;
use crate::walk::Walk;

/// Cosine of two sentence vectors that point the same way: their components are × 127.
const UNIT: f32 = 127.0 * 127.0;

/// Rows that one source names.
#[derive(Debug)]
pub(crate) struct SourceList {
    /// Name in an explanation.
    pub(crate) name: &'static str,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    /// With what they rank by.
    Scored(Vec<(f32, Place)>),
    /// In their order.
    Listed(Vec<Place>),
}

impl SourceList {
    /// Rows by window BM25, which must be above 0.
    pub(crate) fn words(rows: Vec<(f32, Place)>) -> Self {
        Self::scored("words", rows)
    }

    /// Rows by the product of their sentence vector with the query's.
    pub(crate) fn vectors(mut rows: Vec<(f32, Place)>) -> Self {
        rows.iter_mut().for_each(|(product, _)| *product /= UNIT);
        Self::scored("vectors", rows)
    }

    /// Rows by the sum of the z-scores of both.
    pub(crate) fn both(rows: Vec<(f32, Place)>) -> Self {
        Self::scored("both", rows)
    }

    fn scored(name: &'static str, rows: Vec<(f32, Place)>) -> Self {
        let rows = Rows::Scored(rows);
        Self { name, rows }
    }

    fn listed(name: &'static str, rows: Vec<Place>) -> Self {
        let rows = Rows::Listed(rows);
        Self { name, rows }
    }

    /// The rows, best first, with their scores where they have any.
    fn ordered(&self) -> Vec<(Option<f32>, Place)> {
        match &self.rows {
            Rows::Scored(rows) => {
                let mut rows = rows.clone();
                rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
                let rows = rows.into_iter();
                rows.map(|(score, place)| (Some(score), place)).collect()
            }
            Rows::Listed(rows) => rows.iter().map(|&place| (None, place)).collect(),
        }
    }
}

/// Every source of a first stage. `listed` are fragments, what the graph reaches, and named days.
pub(super) fn of(
    lexical: &Lexical,
    near: NearestRows,
    walk: &Walk,
    spaces: &[Searched<'_>],
    [fragments, reached, days]: [Vec<Place>; 3],
) -> Vec<SourceList> {
    let window = |&(space, row): &Place| {
        let score = lexical.scores[space].window[row as usize];
        (score, (space, row))
    };
    let share = |(space, row): Place| {
        let index = spaces[space].index;
        let turn = index.turn(index.passages().turn(row)).id;
        (walk.value(space, turn), (space, row))
    };
    vec![
        SourceList::words(lexical.best.iter().map(window).collect()),
        SourceList::vectors(near.by_cosine),
        SourceList::both(near.by_both),
        SourceList::listed("fragment", fragments),
        SourceList::scored("graph", reached.into_iter().map(share).collect()),
        SourceList::listed("day", days),
    ]
}

/// The turns of a source, (space, slot), best first; a turn stands where its best row does.
pub(crate) fn by_turn(
    source: &SourceList,
    spaces: &[Searched<'_>],
) -> Vec<(Option<f32>, (usize, u32))> {
    let mut seen = BTreeSet::new();
    let rows = source.ordered().into_iter();
    let turns = rows.map(|(score, (space, row))| {
        let slot = spaces[space].index.passages().turn(row);
        (score, (space, slot))
    });
    turns.filter(|(_, turn)| seen.insert(*turn)).collect()
}
