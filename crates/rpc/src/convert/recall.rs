//! Searches and what they find.

use memfleet_domain::Fault;
use memfleet_domain::ids::{BatchId, SessionId, SpaceId};
use memfleet_domain::intent::Intent;
use memfleet_ports::memory::RecallRequest;
use memfleet_ports::retriever::{Found, Hit, Query, SignalScore};

use super::derivation::fact;
use super::time::time;
use super::words::number;
use super::{Checked, Fields};
use crate::{limits, proto};

/// Hits of a `Recall` that does not say.
const DEFAULT_K: u32 = 10;

impl Fields {
    /// Consistency tokens.
    pub(super) fn wait_for(&mut self, tokens: Vec<String>) -> Option<Vec<BatchId>> {
        self.each("wait_for", tokens, limits::WAIT_FOR, |fields, token| {
            fields.id("", &token, "the token of a receipt")
        })
    }

    /// The spaces of a query.
    pub(super) fn spaces(&mut self, names: Vec<String>) -> Option<Vec<SpaceId>> {
        let spaces = self.names("spaces", names, limits::SPACES, SpaceId::new);
        self.some("spaces", spaces)
    }

    /// How many hits, and how many neighbours on each side of one.
    pub(super) fn reach(&mut self, k: u32, default_k: u32, neighbours: u32) -> Option<(u32, u32)> {
        let k = self.number("k", k, default_k, 1..=limits::K);
        let neighbours = self.number("neighbours", neighbours, 0, 0..=limits::NEIGHBOURS);
        let (k, neighbours) = (k?, neighbours?);
        let (shown, most) = (limits::SHOWN, (limits::SHOWN / k).saturating_sub(1) / 2);
        if neighbours > most {
            let problem = format!(
                "is {neighbours}; with {k} hits it may be {most} at most, as hits and neighbours together may be {shown} turns: ask for fewer of either"
            );
            return self.refuse("neighbours", problem);
        }
        Some((k, neighbours))
    }
}

impl TryFrom<RecallRequest> for proto::RecallRequest {
    type Error = Fault;

    fn try_from(request: RecallRequest) -> Result<Self, Fault> {
        let query = request.query;
        Ok(Self {
            query: query.text,
            spaces: query.spaces.into_iter().map(Into::into).collect(),
            filter: Some(query.filter.try_into()?),
            k: query.k,
            neighbours: query.neighbours,
            now: query.now.map(time),
            session: query.session.map(Into::into).unwrap_or_default(),
            intent: query.intent.map(Into::into),
            quality: number::<proto::SearchQuality, _>(query.quality),
            explain: query.explain,
            wait_for: request.wait_for.iter().map(ToString::to_string).collect(),
            min_relevance: request.min_relevance,
            granularity: proto::RecallGranularity::from(request.granularity).into(),
        })
    }
}

impl Checked for proto::RecallRequest {
    type Value = RecallRequest;

    fn check(self, fields: &mut Fields) -> Option<RecallRequest> {
        let text = fields.words("query", self.query, limits::QUERY);
        let spaces = fields.spaces(self.spaces);
        let filter = fields.message_or_default("filter", self.filter);
        let reach = fields.reach(self.k, DEFAULT_K, self.neighbours);
        let now = fields.optional_time("now", self.now);
        let quality = fields.optional_word("quality", self.quality);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let wait_for = fields.wait_for(self.wait_for);
        let min_relevance = match self.min_relevance {
            Some(least) if !(0.0..=1.0).contains(&least) => {
                let problem = format!("is {least}; it is a probability, from 0 to 1");
                fields.refuse("min_relevance", problem)
            }
            given => Some(given),
        };
        let granularity = fields.optional_word("granularity", self.granularity);
        let (k, neighbours) = reach?;
        let query = Query {
            text: text?,
            spaces: spaces?,
            filter: filter?,
            k,
            neighbours,
            now: now?,
            session: session?,
            intent: self.intent.map(Into::into),
            explain: self.explain,
            quality: quality?,
            vectors: None,
        };
        Some(RecallRequest {
            query,
            wait_for: wait_for?,
            min_relevance: min_relevance?,
            granularity: granularity?.unwrap_or_default(),
        })
    }
}

impl From<Intent> for proto::Intent {
    fn from(intent: Intent) -> Self {
        let Intent {
            fine,
            abstracted,
            event,
            atomic,
        } = intent;
        Self {
            fine,
            r#abstract: abstracted,
            event,
            atomic,
        }
    }
}

impl From<proto::Intent> for Intent {
    fn from(intent: proto::Intent) -> Self {
        let proto::Intent {
            fine,
            r#abstract: abstracted,
            event,
            atomic,
        } = intent;
        Self {
            fine,
            abstracted,
            event,
            atomic,
        }
    }
}

impl From<SignalScore> for proto::SignalScore {
    fn from(score: SignalScore) -> Self {
        Self {
            signal: score.signal.into_owned(),
            value: score.value,
            contribution: score.contribution,
        }
    }
}

impl Checked for proto::SignalScore {
    type Value = SignalScore;

    fn check(self, _: &mut Fields) -> Option<SignalScore> {
        Some(SignalScore {
            signal: self.signal.into(),
            value: self.value,
            contribution: self.contribution,
        })
    }
}

impl From<Hit> for proto::Hit {
    fn from(hit: Hit) -> Self {
        Self {
            space: hit.space.into(),
            turn: Some(hit.turn.into()),
            score: hit.score,
            relevance: hit.relevance,
            passage_start: hit.passage.0,
            passage_end: hit.passage.1,
            signals: hit.signals.into_iter().map(Into::into).collect(),
            neighbours: hit.neighbours.into_iter().map(Into::into).collect(),
            facts: hit.facts.into_iter().filter_map(fact).collect(),
            outdated: hit.outdated.map(|id| id.to_string()).unwrap_or_default(),
            ..Self::default()
        }
    }
}

impl Checked for proto::Hit {
    type Value = Hit;

    fn check(self, fields: &mut Fields) -> Option<Hit> {
        let space = fields.name("space", self.space, SpaceId::new);
        let turn = fields.message("turn", self.turn);
        let signals = fields.messages("signals", self.signals, usize::MAX);
        let neighbours = fields.messages("neighbours", self.neighbours, usize::MAX);
        let facts = fields.messages("facts", self.facts, usize::MAX);
        let outdated = fields.optional_id("outdated", &self.outdated, "the id of a fact");
        Some(Hit {
            space: space?,
            turn: turn?,
            score: self.score,
            relevance: self.relevance.filter(|value| value.is_finite()),
            passage: (self.passage_start, self.passage_end),
            signals: signals?,
            neighbours: neighbours?,
            facts: facts?,
            outdated: outdated?,
        })
    }
}

impl From<Found> for proto::RecallResponse {
    fn from(found: Found) -> Self {
        Self {
            hits: found.hits.into_iter().map(Into::into).collect(),
            degraded: found.degraded,
            searched: found.searched,
            scorer: found.scorer,
            understood: found.understood.unwrap_or_default(),
            explanation: found.explanation.map(Into::into),
        }
    }
}

impl Checked for proto::RecallResponse {
    type Value = Found;

    fn check(self, fields: &mut Fields) -> Option<Found> {
        let hits = fields.messages("hits", self.hits, usize::MAX)?;
        let explanation = match self.explanation {
            Some(explanation) => Some(fields.message("explanation", Some(explanation))?),
            None => None,
        };
        Some(Found {
            hits,
            degraded: self.degraded,
            searched: self.searched,
            scorer: self.scorer,
            understood: Some(self.understood).filter(|query| !query.is_empty()),
            explanation,
        })
    }
}
