//! The part of a session that is bound anew: what changed, and the fragment before it, which may go on.

use std::collections::{HashMap, HashSet};

use memfleet_agents::narratives::{FILLER, Opening};
use memfleet_domain::derivation::{Body, Derivation, Kind};
use memfleet_domain::episode::Episode;
use memfleet_domain::ids::{DerivationId, Speaker, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Question;

use crate::LocalConsolidator;
use crate::stories::opening;

/// An episode as it is bound.
pub(super) struct Run {
    pub(super) episode: Episode,
    pub(super) begun: Option<Timestamp>,
    pub(super) opening: Opening,
    /// Who opens it.
    pub(super) speaker: Speaker,
    /// Its turns without filler, the opening one first.
    pub(super) turns: Vec<TurnId>,
}

impl Run {
    /// The turn that opens it.
    pub(super) fn first(&self) -> TurnId {
        self.turns[0]
    }
}

/// Runs that follow each other, and the fragments of their turns.
pub(super) struct Part {
    /// In the order in which they were said.
    pub(super) runs: Vec<Run>,
    /// Those that stand.
    pub(super) fragments: Vec<Derivation>,
    /// The versions of those that were withdrawn.
    pub(super) withdrawn: HashMap<DerivationId, u32>,
}

impl LocalConsolidator {
    /// The part of a session that these turns are in.
    pub(super) async fn part(
        &self,
        scope: &Scope,
        touched: HashSet<TurnId>,
    ) -> Result<Part, Fault> {
        let mut turns = self.with_preceding(scope, touched).await?;
        loop {
            let question = || Question {
                turns: turns.iter().copied().collect(),
                ..Question::default()
            };
            let episodes = self.of_kind(scope, Kind::Episode, question()).await?;
            let known = Question {
                withdrawn: true,
                ..question()
            };
            let known = self.of_kind(scope, Kind::Fragment, known).await?;
            let (gone, fragments): (Vec<_>, Vec<_>) =
                known.into_iter().partition(Derivation::is_withdrawn);
            let before = turns.len();
            let drawn = episodes.iter().chain(&fragments);
            turns.extend(drawn.flat_map(|derivation| &derivation.turns));
            if turns.len() == before {
                return Ok(Part {
                    runs: self.runs(scope, episodes).await?,
                    fragments,
                    withdrawn: gone.iter().map(|it| (it.id, it.version)).collect(),
                });
            }
        }
    }

    /// With the turn that was said before the first of these.
    async fn with_preceding(
        &self,
        scope: &Scope,
        mut turns: HashSet<TurnId>,
    ) -> Result<HashSet<TurnId>, Fault> {
        let ids: Vec<TurnId> = turns.iter().copied().collect();
        let there = self.ledger.turns(scope, &ids).await?;
        if let Some(first) = there.iter().min_by_key(|turn| turn.position) {
            let before = self.ledger.preceding(scope, first.accepted.id, 1).await?;
            turns.extend(before.iter().map(|turn| turn.accepted.id));
        }
        Ok(turns)
    }

    /// Episodes in the order in which they were said, with what binding looks at.
    async fn runs(&self, scope: &Scope, episodes: Vec<Derivation>) -> Result<Vec<Run>, Fault> {
        let turns = episodes.iter().flat_map(|episode| &episode.turns);
        let turns: Vec<TurnId> = turns.copied().collect();
        let indexed = self.indexed(scope, &turns).await?;
        let openings: Vec<TurnId> = episodes.iter().map(|episode| episode.turns[0]).collect();
        let openings = self.ledger.turns(scope, &openings).await?;
        let openings: HashMap<TurnId, Turn> = openings
            .into_iter()
            .map(|turn| (turn.accepted.id, turn))
            .collect();
        let mut runs: Vec<(u32, Run)> = Vec::with_capacity(episodes.len());
        for derivation in episodes {
            let first = derivation.turns[0];
            let (Some(turn), Some(entry), Body::Episode(episode)) =
                (openings.get(&first), indexed.get(&first), derivation.body)
            else {
                // What was forgotten meanwhile is bound by the next round.
                continue;
            };
            let is_told = |turn: &&TurnId| {
                let words = indexed.get(*turn).map_or(0, |it| opening(it).words);
                **turn == first || words >= FILLER
            };
            let run = Run {
                turns: derivation.turns.iter().filter(is_told).copied().collect(),
                begun: derivation.valid.start,
                opening: opening(entry),
                speaker: turn.accepted.speaker.clone(),
                episode: *episode,
            };
            runs.push((turn.position, run));
        }
        runs.sort_by_key(|(position, _)| *position);
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }
}
