//! Turns of the days that a query names: like turns of other days may match its words better.

use super::Place;
use crate::plan::Plan;
use crate::searched::Searched;
use crate::signals::date::{is_on_named_day, named_days};

/// Turns that are added, at most.
const MAX_TURNS: usize = 200;

/// First rows of turns that were said on a single day that the query names; at most [`MAX_TURNS`].
pub(super) fn said_on_named_days(spaces: &[Searched<'_>], plan: &Plan) -> Vec<Place> {
    if named_days(&plan.dates).next().is_none() {
        return Vec::new();
    }
    let all = spaces.iter().enumerate().flat_map(|(space, searched)| {
        let turns = searched.index.turns_passing(&searched.eligible);
        turns.map(move |turn| (space, turn))
    });
    let said = all.filter(|(_, turn)| is_on_named_day(&plan.dates, turn.event_time));
    let places = said.map(|(space, turn)| (space, turn.first_row));
    places.take(MAX_TURNS).collect()
}
