//! The part of a session that is bound anew: what changed, and the fragment before it, which may go on.

use std::collections::{HashMap, HashSet};

use memfleet_agents::episodes::{head, title};
use memfleet_agents::narratives::{BINDER, FILLER, Opening};
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

/// Runs that follow each other, and the fragments of their turns. What a model bound, or found to be filler, is none of them: it stays.
pub(super) struct Part {
    /// In the order in which they were said.
    pub(super) runs: Vec<Run>,
    /// Those that the rules bound and that stand.
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
            let before = turns.len();
            let standing = known.iter().filter(|it| !it.is_withdrawn());
            let drawn = episodes.iter().chain(standing);
            turns.extend(drawn.flat_map(|derivation| &derivation.turns));
            if turns.len() == before {
                let there: HashSet<TurnId> = turns_of(&episodes).collect();
                let (settled, open): (Vec<_>, Vec<_>) = known
                    .into_iter()
                    .partition(|fragment| is_settled(fragment, &there));
                let (gone, fragments): (Vec<_>, Vec<_>) =
                    open.into_iter().partition(Derivation::is_withdrawn);
                let settled = turns_of(&settled).collect();
                return Ok(Part {
                    runs: self.runs(scope, episodes, &settled).await?,
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

    /// Episodes in the order in which they were said, with what binding looks at: what comes after the last turn that is settled.
    async fn runs(
        &self,
        scope: &Scope,
        mut episodes: Vec<Derivation>,
        settled: &HashSet<TurnId>,
    ) -> Result<Vec<Run>, Fault> {
        let turns: Vec<TurnId> = turns_of(&episodes).collect();
        let indexed = self.indexed(scope, &turns).await?;
        let openings = indexed.iter().map(|(id, turn)| (*id, opening(turn)));
        let openings: HashMap<TurnId, Opening> = openings.collect();
        for episode in &mut episodes {
            let last = episode.turns.iter().rposition(|it| settled.contains(it));
            let rest = episode.turns.split_off(last.map_or(0, |last| last + 1));
            // What opens an episode is told however short it is.
            let is_told = |turn: &TurnId| openings.get(turn).is_some_and(|it| it.words >= FILLER);
            let told = rest.into_iter().enumerate();
            let told = told.filter(|(at, turn)| (last.is_none() && *at == 0) || is_told(turn));
            episode.turns = told.map(|(_, turn)| turn).collect();
            if last.is_some() {
                // What is left of it has no words of its own yet.
                if let Body::Episode(episode) = &mut episode.body {
                    episode.title.clear();
                }
            }
        }
        let first: Vec<TurnId> = episodes
            .iter()
            .filter_map(|it| it.turns.first().copied())
            .collect();
        let mut runs: Vec<(u32, Run)> = Vec::with_capacity(episodes.len());
        let first = self.ledger.turns(scope, &first).await?;
        let first: HashMap<TurnId, Turn> =
            first.into_iter().map(|it| (it.accepted.id, it)).collect();
        for episode in episodes {
            // What was forgotten meanwhile is bound by the next round.
            let opens = episode.turns.first().and_then(|it| first.get(it));
            let run = opens.and_then(|turn| Some((turn.position, run(episode, turn, &openings)?)));
            runs.extend(run);
        }
        runs.sort_by_key(|(position, _)| *position);
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }
}

/// The run of an episode, or of what is left of it, that this turn opens.
fn run(derivation: Derivation, first: &Turn, openings: &HashMap<TurnId, Opening>) -> Option<Run> {
    let Body::Episode(mut episode) = derivation.body else {
        return None;
    };
    let mut begun = derivation.valid.start;
    if episode.title.is_empty() {
        begun = Some(first.accepted.effective_time());
        episode.title = title(&head(&first.accepted.content.searchable_text()));
        episode.span.start = first.accepted.event_time;
    }
    Some(Run {
        opening: openings.get(&first.accepted.id)?.clone(),
        begun,
        speaker: first.accepted.speaker.clone(),
        episode: *episode,
        turns: derivation.turns,
    })
}

/// Whether a model looked at these turns, and they are still there: a turn that was replaced is in no episode.
fn is_settled(fragment: &Derivation, there: &HashSet<TurnId>) -> bool {
    let binder = fragment.fragment().map(|it| it.binder.as_str());
    binder != Some(BINDER) && fragment.turns.iter().all(|turn| there.contains(turn))
}

fn turns_of(derivations: &[Derivation]) -> impl Iterator<Item = TurnId> {
    derivations.iter().flat_map(|it| &it.turns).copied()
}
