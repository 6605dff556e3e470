//! Which episode each candidate is part of. Episodes count in sessions with an assistant only: there the user's opening turn
//! names the matter. Among people a matter seldom has a head, and windows say as much (docs/benchmarks.md).

use std::collections::HashMap;

use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::Role;

use crate::candidates::Candidates;
use crate::index::SpaceIndex;
use crate::searched::Searched;
use crate::signal::Signal;
use crate::weights::{Part, Weights};

/// The episodes of the candidates.
pub(crate) struct Episodes(HashMap<(usize, TurnId), InEpisode>);

/// A turn's place in its episode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InEpisode {
    /// Row of the episode.
    pub(crate) row: u32,
    pub(crate) part: Part,
}

impl Episodes {
    pub(crate) fn of(spaces: &[Searched<'_>], candidates: &Candidates, weights: &Weights) -> Self {
        let mut episodes = HashMap::new();
        if !weights.use_any(&[
            Signal::EpisodeMaxsim,
            Signal::EpisodeBm25,
            Signal::EpisodeCosine,
        ]) {
            return Self(episodes);
        }
        for (space, derived) in candidates.derived.iter().enumerate() {
            let index = spaces[space].index;
            for &row in &derived.episodes {
                let turns = parts(index, &index.episodes().at(row).turns);
                let keyed = turns.map(|(turn, part)| ((space, turn), InEpisode { row, part }));
                episodes.extend(keyed);
            }
        }
        Self(episodes)
    }

    pub(crate) fn get(&self, space: usize, turn: TurnId) -> Option<InEpisode> {
        self.0.get(&(space, turn)).copied()
    }
}

/// The parts that the turns of an episode play; none where no assistant takes part.
fn parts(index: &SpaceIndex, turns: &[TurnId]) -> impl Iterator<Item = (TurnId, Part)> {
    let roles: Vec<(TurnId, Role)> = turns
        .iter()
        .filter_map(|&turn| Some((turn, index.turn_named(turn)?.role)))
        .collect();
    let is_answered = roles.iter().any(|&(_, role)| role == Role::Assistant);
    let part = |(at, (turn, role)): (usize, (TurnId, Role))| {
        let part = match (at, role) {
            (0, _) => Part::Opening,
            (1, Role::Assistant) => Part::Reply,
            (_, Role::Assistant) => Part::LaterReply,
            _ => Part::Later,
        };
        (turn, part)
    };
    let answered = if is_answered { roles } else { Vec::new() };
    answered.into_iter().enumerate().map(part)
}
