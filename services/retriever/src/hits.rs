//! From ranked ids to turns as the caller sees them, with their neighbours.

use std::collections::{BTreeMap, HashMap};

use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::retriever::{Hit, Query};
use memfleet_retrieval::{Ranked, ScoredTurn};

use crate::LocalRetriever;
use crate::search::Target;
use crate::stages::Stage;

/// Turns that are read at once.
pub(crate) const TURNS_AT_ONCE: usize = 256;

impl LocalRetriever {
    /// The hits in rank order. A turn that was forgotten since it was ranked is left out.
    pub(crate) async fn hits(
        &self,
        query: &Query,
        targets: &[Target],
        stage: &Stage,
        scored: Vec<ScoredTurn>,
    ) -> Result<Vec<Hit>, Fault> {
        let reach = query.neighbours as usize;
        let neighbours = |hit: &Ranked| {
            stage.readings[hit.space]
                .index
                .neighbours(hit.turn, reach, &stage.eligible[hit.space])
        };
        let around = scored.iter().map(|scored| neighbours(&scored.ranked));
        let around = around.collect::<Vec<_>>();
        let turns = self.turns(targets, &scored, &around).await?;
        let hits = scored
            .into_iter()
            .zip(around)
            .filter_map(|(scored, around)| {
                let ScoredTurn {
                    ranked: hit,
                    relevance,
                } = scored;
                let turn = turns[hit.space].get(&hit.turn)?.clone();
                let neighbours = around
                    .iter()
                    .filter_map(|id| turns[hit.space].get(id).cloned())
                    .collect();
                Some(Hit {
                    space: targets[hit.space].scope.space.clone(),
                    turn,
                    score: hit.score,
                    relevance,
                    passage: hit.passage,
                    signals: if query.explain {
                        let clues = hit.clues.explain();
                        hit.signals.into_iter().chain(clues).collect()
                    } else {
                        Vec::new()
                    },
                    neighbours,
                    // The gateway knows them.
                    facts: Vec::new(),
                    outdated: None,
                })
            });
        Ok(hits.collect())
    }

    /// Every turn that the answer shows, by space. An answer that would be too large is refused before it is whole.
    async fn turns(
        &self,
        targets: &[Target],
        scored: &[ScoredTurn],
        around: &[Vec<TurnId>],
    ) -> Result<Vec<HashMap<TurnId, Turn>>, Fault> {
        let mut wanted = vec![Vec::new(); targets.len()];
        for (ScoredTurn { ranked: hit, .. }, around) in scored.iter().zip(around) {
            wanted[hit.space].push(hit.turn);
            wanted[hit.space].extend(around);
        }
        let mut turns = Vec::with_capacity(targets.len());
        let mut left = self.answer_bytes;
        for (target, ids) in targets.iter().zip(wanted) {
            turns.push(self.turns_of(&target.scope, ids, &mut left).await?);
        }
        Ok(turns)
    }

    /// Turns of one space, each as often as it is shown counted from the bytes that are left.
    async fn turns_of(
        &self,
        scope: &Scope,
        shown: Vec<TurnId>,
        left: &mut usize,
    ) -> Result<HashMap<TurnId, Turn>, Fault> {
        let mut times: BTreeMap<TurnId, usize> = BTreeMap::new();
        for id in shown {
            *times.entry(id).or_default() += 1;
        }
        let ids: Vec<TurnId> = times.keys().copied().collect();
        let mut turns = HashMap::new();
        for ids in ids.chunks(TURNS_AT_ONCE) {
            for turn in self.ledger.turns(scope, ids).await? {
                let id = turn.accepted.id;
                let bytes = turn.accepted.bytes() * times[&id];
                *left = left
                    .checked_sub(bytes)
                    .ok_or_else(|| too_large(self.answer_bytes))?;
                turns.insert(id, turn);
            }
        }
        Ok(turns)
    }
}

fn too_large(bound: usize) -> Fault {
    let problem = format!(
        "the turns of the answer are larger than {bound} bytes: ask for fewer, and for fewer neighbours"
    );
    Fault {
        reason: "ANSWER_TOO_LARGE".into(),
        ..Fault::invalid("k", problem)
    }
}
