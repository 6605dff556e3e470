//! Candidates as who asks for an explanation sees them: ranks by source and stage, and how each
//! turn begins.

use std::collections::HashMap;

use memfleet_domain::Fault;
use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::{AcceptedTurn, Turn};
use memfleet_ports::retriever::{CandidateTrace, Hit, SearchExplanation, TRACE_EXCERPT_BYTES};
use memfleet_retrieval::ScoredTurn;

use crate::LocalRetriever;
use crate::hits::TURNS_AT_ONCE;
use crate::search::Target;
use crate::stages::Stage;

/// Turns that are no hits, by space and id.
type OtherTurns = HashMap<(usize, TurnId), Turn>;

impl LocalRetriever {
    /// The explanation of an answer. `scored` are the hits and what it shows behind them; a turn
    /// that was forgotten since is left out.
    pub(crate) async fn explanation(
        &self,
        targets: &[Target],
        stage: &Stage,
        hits: &[Hit],
        scored: Vec<ScoredTurn>,
    ) -> Result<SearchExplanation, Fault> {
        let others = self.others(targets, &scored[hits.len().min(scored.len())..]);
        let others = others.await?;
        let found = hits.iter();
        let found = found.map(|hit| ((&hit.space, hit.turn.accepted.id), &hit.turn.accepted));
        let found: HashMap<_, &AcceptedTurn> = found.collect();
        let shown = scored.into_iter().zip(1..).filter_map(|(scored, rank)| {
            let ScoredTurn { ranked, relevance } = scored;
            let space = &targets[ranked.space].scope.space;
            let other = others.get(&(ranked.space, ranked.turn));
            let hit = found.get(&(space, ranked.turn)).copied();
            let turn = hit.or_else(|| other.map(|turn| &turn.accepted))?;
            let clues = ranked.clues.explain();
            Some(CandidateTrace {
                space: space.clone(),
                turn: ranked.turn,
                session: turn.session.clone(),
                speaker: turn.speaker.clone(),
                excerpt: beginning(&turn.content.searchable_text()),
                rank,
                score: ranked.score,
                relevance,
                hit: None,
                is_copy: false,
                sources: ranked.sources,
                stages: ranked.stages,
                signals: ranked.signals.into_iter().chain(clues).collect(),
            })
        });
        let mut explanation = SearchExplanation {
            candidates: stage.candidates.len() as u32,
            is_exhaustive: stage.candidates.is_exhaustive(),
            shown: shown.collect(),
        };
        explanation.settle(hits);
        Ok(explanation)
    }

    async fn others(&self, targets: &[Target], scored: &[ScoredTurn]) -> Result<OtherTurns, Fault> {
        let mut turns = HashMap::new();
        for (space, target) in targets.iter().enumerate() {
            let here = scored
                .iter()
                .map(|it| &it.ranked)
                .filter(|it| it.space == space);
            let ids: Vec<TurnId> = here.map(|it| it.turn).collect();
            for ids in ids.chunks(TURNS_AT_ONCE) {
                let read = self.ledger.turns(&target.scope, ids).await?;
                turns.extend(read.into_iter().map(|it| ((space, it.accepted.id), it)));
            }
        }
        Ok(turns)
    }
}

/// The first [`TRACE_EXCERPT_BYTES`] of a text, as whole characters.
fn beginning(text: &str) -> String {
    text[..text.floor_char_boundary(TRACE_EXCERPT_BYTES)].to_owned()
}
