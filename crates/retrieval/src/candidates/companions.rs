//! What stands with the best candidates in a fragment: it may answer without a word of the query in it, so nothing else names it.

use std::collections::BTreeSet;

use super::Place;
use crate::dot::Query;
use crate::lexical::Lexical;
use crate::plan::Plan;
use crate::searched::Searched;
use crate::top::Top;

/// Rows by words, and as many by sentence vectors, whose fragments are added.
const SEEDS: usize = 20;
/// Turns that are added, at most.
const MOST: usize = 200;

/// First rows of the turns in the fragments of the best of `chosen`.
pub(super) fn companions(
    spaces: &[Searched<'_>],
    plan: &Plan,
    lexical: &Lexical,
    chosen: &[Place],
) -> Vec<Place> {
    let query = plan.vectors.as_ref().map(|it| Query::new(&it.sentence));
    let (mut by_words, mut by_cosine) = (Top::new(SEEDS), Top::new(SEEDS));
    for &(space, row) in chosen {
        let words = lexical.scores[space].window.get(row as usize);
        by_words.push(words.copied().unwrap_or(f32::NAN), (space, row));
        let sentence = spaces[space].sentence(row);
        if let Some((query, sentence)) = query.as_ref().zip(sentence)
            && query.len() == sentence.len()
        {
            by_cosine.push(query.dot(sentence) as f32, (space, row));
        }
    }
    let seeds: BTreeSet<Place> = by_words.into_keys().chain(by_cosine.into_keys()).collect();
    let mut turns = BTreeSet::new();
    for (space, row) in seeds {
        let index = spaces[space].index;
        let seed = index.turn(index.passages().turn(row)).id;
        let fragments = index.fragments().of(seed);
        let together = fragments.flat_map(|fragment| &fragment.turns);
        let rows = together.filter_map(|turn| Some(index.turn_named(*turn)?.first_row));
        let rows = rows.filter(|row| spaces[space].eligible.contains(*row));
        turns.extend(rows.map(|row| (space, row)));
    }
    turns.into_iter().take(MOST).collect()
}
