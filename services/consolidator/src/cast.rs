//! Who takes part in a story. A narrative draws on a turn of each: where it is forgotten, no version says any more that they were there.

use std::collections::HashMap;

use memfleet_domain::ids::{Speaker, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};

use crate::LocalConsolidator;

/// Turns in the order in which they were said, and who said them.
pub(crate) struct Cast(Vec<(Speaker, TurnId)>);

impl Cast {
    pub(crate) fn of<'t>(said: impl IntoIterator<Item = &'t Turn>) -> Self {
        let said = said.into_iter().map(|turn| &turn.accepted);
        let said = said.map(|turn| (turn.speaker.clone(), turn.id));
        Self(said.collect())
    }

    /// Who spoke first.
    pub(crate) fn first(&self) -> Option<&Speaker> {
        self.0.first().map(|(speaker, _)| speaker)
    }

    /// Adds those who are not known yet, each with the first turn unless what is drawn on has one already.
    pub(crate) fn join(&self, characters: &mut Vec<Speaker>, drawn_from: &mut Vec<TurnId>) {
        for (speaker, first) in &self.0 {
            if characters.contains(speaker) {
                continue;
            }
            characters.push(speaker.clone());
            let mut own = self.0.iter().filter(|(by, _)| by == speaker);
            if !own.any(|(_, turn)| drawn_from.contains(turn)) {
                drawn_from.push(*first);
            }
        }
    }
}

impl LocalConsolidator {
    /// Who said these.
    pub(crate) async fn cast(&self, scope: &Scope, turns: &[TurnId]) -> Result<Cast, Fault> {
        let said = self.ledger.turns(scope, turns).await?;
        let said = said.iter().map(|turn| (turn.accepted.id, turn));
        let said: HashMap<TurnId, &Turn> = said.collect();
        Ok(Cast::of(
            turns.iter().filter_map(|turn| said.get(turn).copied()),
        ))
    }
}
