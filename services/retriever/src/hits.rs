//! From ranked ids to turns as the caller sees them, with their neighbours.

use std::collections::HashMap;

use memfleet_domain::Fault;
use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::Turn;
use memfleet_ports::retriever::{Hit, Query};
use memfleet_retrieval::Ranked;

use crate::LocalRetriever;
use crate::search::Target;
use crate::stages::Stage;

impl LocalRetriever {
    /// The hits in rank order. A turn that was forgotten since it was ranked is left out.
    pub(crate) async fn hits(
        &self,
        query: &Query,
        targets: &[Target],
        stage: &Stage,
        ranked: Vec<Ranked>,
    ) -> Result<Vec<Hit>, Fault> {
        let reach = query.neighbours as usize;
        let neighbours = |hit: &Ranked| {
            stage.readings[hit.space]
                .index
                .neighbours(hit.turn, reach, &stage.eligible[hit.space])
        };
        let around = ranked.iter().map(neighbours).collect::<Vec<_>>();
        let turns = self.turns(targets, &ranked, &around).await?;
        let hits = ranked.into_iter().zip(around).filter_map(|(hit, around)| {
            let turn = turns[hit.space].get(&hit.turn)?.clone();
            let neighbours = around
                .iter()
                .filter_map(|id| turns[hit.space].get(id).cloned())
                .collect();
            Some(Hit {
                space: targets[hit.space].scope.space.clone(),
                turn,
                score: hit.score,
                relevance: self.relevance.of(&hit.clues),
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

    /// Every turn that the answer shows, by space.
    async fn turns(
        &self,
        targets: &[Target],
        ranked: &[Ranked],
        around: &[Vec<TurnId>],
    ) -> Result<Vec<HashMap<TurnId, Turn>>, Fault> {
        let mut wanted = vec![Vec::new(); targets.len()];
        for (hit, around) in ranked.iter().zip(around) {
            wanted[hit.space].push(hit.turn);
            wanted[hit.space].extend(around);
        }
        let mut turns = Vec::with_capacity(targets.len());
        for (target, mut ids) in targets.iter().zip(wanted) {
            ids.sort_unstable();
            ids.dedup();
            let found = self.ledger.turns(&target.scope, &ids).await?;
            turns.push(
                found
                    .into_iter()
                    .map(|turn| (turn.accepted.id, turn))
                    .collect(),
            );
        }
        Ok(turns)
    }
}
