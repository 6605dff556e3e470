//! A story that rules begin, in the words of one turn.

use memfleet_agents::narratives::BINDER;
use memfleet_domain::ids::{DerivationId, Speaker, TurnId};
use memfleet_domain::narrative::{Momentum, Narrative};
use memfleet_domain::time::Timestamp;

use crate::cast::Cast;
use crate::news::News;

/// What it is known by.
pub(super) struct Story {
    pub(super) id: DerivationId,
    pub(super) headline: String,
    pub(super) owner: Speaker,
    /// The turn that the headline is words of.
    pub(super) opening: TurnId,
}

impl Story {
    /// Writes it as the version after this one, told by these.
    pub(super) fn begin(
        self,
        before: Option<u32>,
        cast: &Cast,
        begun: Option<Timestamp>,
        news: &mut News,
    ) {
        let (mut characters, mut turns) = (Vec::new(), vec![self.opening]);
        cast.join(&mut characters, &mut turns);
        let narrative = Narrative {
            headline: self.headline,
            owner: self.owner,
            characters,
            subplots: Vec::new(),
            momentum: Momentum::Active,
            author: BINDER.to_owned(),
        };
        news.begin(self.id, before, narrative, turns, begun);
    }
}
