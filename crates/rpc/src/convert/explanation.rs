//! Explanations of searches.

use memfleet_domain::ids::{SessionId, SpaceId, Speaker};
use memfleet_ports::retriever::{CandidateTrace, SearchExplanation, StageRank};

use super::{Checked, Fields};
use crate::proto;

impl From<StageRank> for proto::StageRank {
    fn from(StageRank { stage, rank, score }: StageRank) -> Self {
        Self {
            stage: stage.into_owned(),
            rank,
            score,
        }
    }
}

impl Checked for proto::StageRank {
    type Value = StageRank;

    fn check(self, _: &mut Fields) -> Option<StageRank> {
        let Self { stage, rank, score } = self;
        Some(StageRank {
            stage: stage.into(),
            rank,
            score,
        })
    }
}

impl From<CandidateTrace> for proto::CandidateTrace {
    fn from(candidate: CandidateTrace) -> Self {
        let ranks = |ranks: Vec<StageRank>| ranks.into_iter().map(Into::into).collect();
        Self {
            space: candidate.space.into(),
            turn_id: candidate.turn.to_string(),
            session: candidate.session.into(),
            speaker: candidate.speaker.into(),
            excerpt: candidate.excerpt,
            rank: candidate.rank,
            score: candidate.score,
            relevance: candidate.relevance,
            hit: candidate.hit.unwrap_or_default(),
            copy: candidate.is_copy,
            sources: ranks(candidate.sources),
            stages: ranks(candidate.stages),
            signals: candidate.signals.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::CandidateTrace {
    type Value = CandidateTrace;

    fn check(self, fields: &mut Fields) -> Option<CandidateTrace> {
        let space = fields.name("space", self.space, SpaceId::new);
        let turn = fields.id("turn_id", &self.turn_id, "the id of a turn");
        let session = fields.name("session", self.session, SessionId::new);
        let speaker = fields.name("speaker", self.speaker, Speaker::new);
        let sources = fields.messages("sources", self.sources, usize::MAX);
        let stages = fields.messages("stages", self.stages, usize::MAX);
        let signals = fields.messages("signals", self.signals, usize::MAX);
        Some(CandidateTrace {
            space: space?,
            turn: turn?,
            session: session?,
            speaker: speaker?,
            excerpt: self.excerpt,
            rank: self.rank,
            score: self.score,
            relevance: self.relevance.filter(|value| value.is_finite()),
            hit: Some(self.hit).filter(|&place| place > 0),
            is_copy: self.copy,
            sources: sources?,
            stages: stages?,
            signals: signals?,
        })
    }
}

impl From<SearchExplanation> for proto::SearchExplanation {
    fn from(explanation: SearchExplanation) -> Self {
        Self {
            candidates: explanation.candidates,
            exhaustive: explanation.is_exhaustive,
            shown: explanation.shown.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::SearchExplanation {
    type Value = SearchExplanation;

    fn check(self, fields: &mut Fields) -> Option<SearchExplanation> {
        Some(SearchExplanation {
            candidates: self.candidates,
            is_exhaustive: self.exhaustive,
            shown: fields.messages("shown", self.shown, usize::MAX)?,
        })
    }
}
