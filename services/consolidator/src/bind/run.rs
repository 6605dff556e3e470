//! An episode, or what is left of it, as it is bound.

use std::collections::{HashMap, HashSet};

use memfleet_agents::episodes::{head, title};
use memfleet_agents::narratives::{FILLER, Opening};
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};

use super::part::turns_of;
use crate::LocalConsolidator;
use crate::stories::opening;

/// What was said of one thing at one stretch.
pub(super) struct Run {
    pub(super) session: SessionId,
    pub(super) begun: Option<Timestamp>,
    /// Event time of its first and last turn, where known.
    pub(super) span: TimeRange,
    pub(super) opening: Opening,
    /// What it is about, in the words of its opening turn: those of the episode may be a model's, about all of it.
    pub(super) headline: String,
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

/// What the turns of a part of a session are bound by.
struct Said<'p> {
    turns: HashMap<TurnId, Turn>,
    openings: HashMap<TurnId, Opening>,
    settled: &'p HashSet<TurnId>,
}

impl LocalConsolidator {
    /// Episodes in the order in which they were said, with what binding looks at.
    pub(super) async fn runs(
        &self,
        scope: &Scope,
        episodes: &[Derivation],
        settled: &HashSet<TurnId>,
    ) -> Result<Vec<Run>, Fault> {
        let ids: Vec<TurnId> = turns_of(episodes).collect();
        let indexed = self.indexed(scope, &ids).await?;
        let turns = self.ledger.turns(scope, &ids).await?;
        let said = Said {
            turns: turns.into_iter().map(|it| (it.accepted.id, it)).collect(),
            openings: indexed.iter().map(|(id, it)| (*id, opening(it))).collect(),
            settled,
        };
        let mut runs: Vec<(u32, Run)> = episodes.iter().filter_map(|it| said.run(it)).collect();
        runs.sort_by_key(|(position, _)| *position);
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }
}

impl Said<'_> {
    /// What is left of an episode, and where it begins; none where nothing is.
    fn run(&self, derivation: &Derivation) -> Option<(u32, Run)> {
        let told = derivation.turns.iter().enumerate();
        let told = told.filter(|(at, turn)| self.is_told(turn, *at == 0));
        let turns: Vec<TurnId> = told.map(|(_, turn)| *turn).collect();
        let first = self.turns.get(turns.first()?)?;
        let last = self.turns.get(turns.last()?)?;
        let episode = derivation.episode()?;
        let (mut begun, mut span) = (derivation.valid.start, episode.span);
        if derivation.turns.iter().any(|it| self.settled.contains(it)) {
            begun = Some(first.accepted.effective_time());
            span = TimeRange {
                start: first.accepted.event_time,
                end: last.accepted.event_time,
            };
        }
        let run = Run {
            session: episode.session.clone(),
            begun,
            span,
            opening: self.openings.get(&first.accepted.id)?.clone(),
            headline: headline(first),
            speaker: first.accepted.speaker.clone(),
            turns,
        };
        Some((first.position, run))
    }

    fn is_told(&self, turn: &TurnId, opens: bool) -> bool {
        // What was forgotten meanwhile is bound by the next round.
        let Some(said) = self
            .turns
            .get(turn)
            .filter(|_| !self.settled.contains(turn))
        else {
            return false;
        };
        // What opens an episode is told however short it is, but for a picture without a word.
        let words = self.openings.get(turn).map_or(0, |it| it.words);
        words >= FILLER || opens && !headline(said).is_empty()
    }
}

fn headline(turn: &Turn) -> String {
    title(&head(&turn.accepted.content.searchable_text()))
}
