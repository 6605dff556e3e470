//! Questions and what answers them.

use memfleet_domain::Fault;
use memfleet_domain::ids::{SessionId, SpaceId, Speaker};
use memfleet_ports::memory::{
    AnswerEnd, AnswerMode, AnswerPart, AnswerRequest, AnsweringModel, Citation,
};
use memfleet_ports::retriever::Query;

use super::time::time;
use super::words::number;
use super::{Checked, Fields};
use crate::{limits, proto};

/// Turns that an `Answer` looks at where it does not say.
const DEFAULT_K: u32 = 20;

impl TryFrom<AnswerRequest> for proto::AnswerRequest {
    type Error = Fault;

    #[expect(deprecated, reason = "nodes of earlier versions read the earlier name")]
    fn try_from(request: AnswerRequest) -> Result<Self, Fault> {
        let query = request.query;
        Ok(Self {
            question: query.text.clone(),
            query: query.text,
            spaces: query.spaces.into_iter().map(Into::into).collect(),
            filter: Some(query.filter.try_into()?),
            k: query.k,
            now: query.now.map(time),
            session: query.session.map(Into::into).unwrap_or_default(),
            intent: query.intent.map(Into::into),
            quality: number::<proto::SearchQuality, _>(query.quality),
            wait_for: request.wait_for.iter().map(ToString::to_string).collect(),
            mode: proto::AnswerMode::from(request.mode).into(),
        })
    }
}

impl Checked for proto::AnswerRequest {
    type Value = AnswerRequest;

    #[expect(deprecated, reason = "earlier callers send the earlier name")]
    fn check(self, fields: &mut Fields) -> Option<AnswerRequest> {
        let query = match self.query.is_empty() {
            true => self.question,
            false => self.query,
        };
        let text = fields.words("query", query, limits::QUERY);
        let spaces = fields.spaces(self.spaces);
        let filter = fields.message_or_default("filter", self.filter);
        let k = fields.number("k", self.k, DEFAULT_K, 1..=limits::EVIDENCE);
        let now = fields.optional_time("now", self.now);
        let quality = fields.optional_word("quality", self.quality);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let wait_for = fields.wait_for(self.wait_for);
        let mode = match self.mode {
            0 => Some(AnswerMode::Auto),
            mode => fields.word("mode", mode),
        };
        let query = Query {
            text: text?,
            spaces: spaces?,
            filter: filter?,
            k: k?,
            neighbours: 0,
            now: now?,
            session: session?,
            intent: self.intent.map(Into::into),
            explain: false,
            quality: quality?,
            vectors: None,
        };
        Some(AnswerRequest {
            query,
            wait_for: wait_for?,
            mode: mode?,
        })
    }
}

impl From<Citation> for proto::Citation {
    fn from(citation: Citation) -> Self {
        Self {
            space: citation.space.into(),
            turn_id: citation.turn.to_string(),
            session: citation.session.into(),
            speaker: citation.speaker.into(),
            time: Some(time(citation.time)),
            start: citation.evidence.0,
            end: citation.evidence.1,
            quote: citation.quote,
        }
    }
}

impl Checked for proto::Citation {
    type Value = Citation;

    fn check(self, fields: &mut Fields) -> Option<Citation> {
        let space = fields.name("space", self.space, SpaceId::new);
        let turn = fields.id("turn_id", &self.turn_id, "the id of a turn");
        let session = fields.name("session", self.session, SessionId::new);
        let speaker = fields.name("speaker", self.speaker, Speaker::new);
        let time = fields.message("time", self.time);
        Some(Citation {
            space: space?,
            turn: turn?,
            session: session?,
            speaker: speaker?,
            time: time?,
            evidence: (self.start, self.end),
            quote: self.quote,
        })
    }
}

impl From<AnsweringModel> for proto::AnsweringModel {
    fn from(model: AnsweringModel) -> Self {
        Self {
            model: model.model,
            prompt: model.prompt,
        }
    }
}

impl From<AnswerEnd> for proto::AnswerEnd {
    fn from(end: AnswerEnd) -> Self {
        let mode = match end.model {
            Some(_) => AnswerMode::Model,
            None => AnswerMode::Rules,
        };
        Self {
            outcome: proto::AnswerOutcome::from(end.outcome).into(),
            mode: proto::AnswerMode::from(mode).into(),
            model: end.model.map(Into::into),
            degraded: end.degraded,
            looked_at: end.looked_at,
            dropped_citations: end.dropped_citations,
            understood: end.understood.unwrap_or_default(),
            retries: end.retries,
            uncertain: end.is_uncertain,
        }
    }
}

impl Checked for proto::AnswerEnd {
    type Value = AnswerEnd;

    fn check(self, fields: &mut Fields) -> Option<AnswerEnd> {
        let outcome = fields.word("outcome", self.outcome);
        let model = self.model.map(|model| AnsweringModel {
            model: model.model,
            prompt: model.prompt,
        });
        Some(AnswerEnd {
            outcome: outcome?,
            model,
            degraded: self.degraded,
            looked_at: self.looked_at,
            dropped_citations: self.dropped_citations,
            understood: Some(self.understood).filter(|text| !text.is_empty()),
            retries: self.retries,
            is_uncertain: self.uncertain,
        })
    }
}

impl From<AnswerPart> for proto::AnswerResponse {
    fn from(part: AnswerPart) -> Self {
        use proto::answer_response::Part;
        let part = match part {
            AnswerPart::Text(text) => Part::Text(text),
            AnswerPart::Citation(citation) => Part::Citation((*citation).into()),
            AnswerPart::End(end) => Part::End(end.into()),
        };
        Self { part: Some(part) }
    }
}

impl Checked for proto::AnswerResponse {
    type Value = AnswerPart;

    fn check(self, fields: &mut Fields) -> Option<AnswerPart> {
        use proto::answer_response::Part;
        match self.part {
            Some(Part::Text(text)) => Some(AnswerPart::Text(text)),
            Some(Part::Citation(citation)) => {
                let citation = fields.inside("citation", |fields| citation.check(fields))?;
                Some(AnswerPart::Citation(Box::new(citation)))
            }
            Some(Part::End(end)) => fields
                .inside("end", |fields| end.check(fields))
                .map(AnswerPart::End),
            None => fields.refuse("part", "is required"),
        }
    }
}
