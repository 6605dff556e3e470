//! Memories that a caller brings.

use memfleet_domain::assembly::Granularity;
use memfleet_ports::assembly::Candidate;

use super::super::derivation::range;
use super::super::time::time;
use super::super::{Checked, Fields};
use crate::{limits, proto};

impl From<Candidate> for proto::Candidate {
    fn from(candidate: Candidate) -> Self {
        Self {
            id: candidate.id,
            text: candidate.text,
            score: candidate.score,
            relevance: candidate.relevance,
            source: candidate.source,
            session: candidate.session,
            speaker: candidate.speaker,
            role: proto::Role::from(candidate.role).into(),
            event_time: candidate.event_time.map(time),
            recorded_at: candidate.recorded_at.map(time),
            granularity: proto::Granularity::from(candidate.granularity).into(),
            trust: proto::Trust::from(candidate.trust).into(),
            valid: Some(range(candidate.valid)),
            lineage: candidate.lineage,
            lineage_sessions: candidate.lineage_sessions,
        }
    }
}

impl Checked for proto::Candidate {
    type Value = Candidate;

    fn check(self, fields: &mut Fields) -> Option<Candidate> {
        const NAME: usize = limits::CANDIDATE_NAME;
        let named = |fields: &mut Fields, field: &str, names| {
            fields.each(field, names, limits::VALUES, |fields, name| {
                fields.text("", name, NAME)
            })
        };
        let id = fields.words("id", self.id, NAME);
        let text = fields.text("text", self.text, limits::TEXT);
        let source = fields.text("source", self.source, NAME);
        let session = fields.text("session", self.session, NAME);
        let speaker = fields.text("speaker", self.speaker, limits::LABEL);
        let role = fields.role("role", self.role);
        let event_time = fields.optional_time("event_time", self.event_time);
        let recorded_at = fields.optional_time("recorded_at", self.recorded_at);
        let granularity = fields.optional_word("granularity", self.granularity);
        let trust = fields.trust("trust", self.trust, role);
        let valid = fields.interval("valid", self.valid);
        // What is no number is dropped with a reason, and the others are rendered (AMP item 62).
        let is_wrong = |it: f32| it.is_finite() && !(0.0..=1.0).contains(&it);
        if self.relevance.is_some_and(is_wrong) {
            fields.refuse::<()>("relevance", "is a probability: 0 to 1");
        }
        let lineage = named(fields, "lineage", self.lineage);
        let lineage_sessions = named(fields, "lineage_sessions", self.lineage_sessions);
        Some(Candidate {
            id: id?,
            text: text?,
            score: self.score,
            relevance: self.relevance,
            source: source?,
            session: session?,
            speaker: speaker?,
            role: role?,
            event_time: event_time?,
            recorded_at: recorded_at?,
            granularity: granularity?.unwrap_or(Granularity::Verbatim),
            trust: trust?,
            valid: valid?,
            lineage: lineage?,
            lineage_sessions: lineage_sessions?,
        })
    }
}
