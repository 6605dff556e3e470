//! The part of a session that is bound anew: what changed, and the fragment before it, which may go on.

use std::collections::{HashMap, HashSet};

use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Question;

use super::run::Run;
use crate::LocalConsolidator;

/// Runs that follow each other, and the fragments of their turns. What is settled is none of them.
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
                let sorted = self.sorted(scope, known, &there).await?;
                let (gone, fragments): (Vec<_>, Vec<_>) =
                    sorted.open.into_iter().partition(Derivation::is_withdrawn);
                return Ok(Part {
                    runs: self.runs(scope, &episodes, &sorted.settled).await?,
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
}

pub(super) fn turns_of(derivations: &[Derivation]) -> impl Iterator<Item = TurnId> {
    derivations.iter().flat_map(|it| &it.turns).copied()
}
