//! Which turns of a space are meant.

use memfleet_domain::Fault;
use memfleet_domain::ids::{SessionId, Speaker};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_ports::filter::TurnFilter;

use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

impl TryFrom<TurnFilter> for proto::TurnFilter {
    type Error = Fault;

    /// Fails for two values under one label: no turn carries both, and a map cannot ask for it.
    fn try_from(filter: TurnFilter) -> Result<Self, Fault> {
        let asked = filter.metadata.len();
        let metadata: std::collections::BTreeMap<_, _> = filter.metadata.into_iter().collect();
        if metadata.len() < asked {
            return Err(Fault::invalid("filter.metadata", "must name each key once"));
        }
        let names = |roles: Vec<_>| {
            roles
                .into_iter()
                .map(|role| proto::Role::from(role).into())
                .collect()
        };
        let as_of = (filter.as_of != AsOf::default()).then(|| proto::AsOf {
            known_at: filter.as_of.known_at.map(time),
            happened_by: filter.as_of.happened_by.map(time),
        });
        let range = (!filter.time.is_open()).then(|| proto::TimeRange {
            start: filter.time.start.map(time),
            end: filter.time.end.map(time),
        });
        Ok(Self {
            turn_ids: filter.turns.iter().map(ToString::to_string).collect(),
            sessions: filter.sessions.into_iter().map(Into::into).collect(),
            excluded_sessions: filter
                .excluded_sessions
                .into_iter()
                .map(Into::into)
                .collect(),
            speakers: filter.speakers.into_iter().map(Into::into).collect(),
            roles: names(filter.roles),
            time: range,
            metadata,
            as_of,
            include_replaced: filter.include_replaced,
        })
    }
}

impl Checked for proto::TurnFilter {
    type Value = TurnFilter;

    fn check(self, fields: &mut Fields) -> Option<TurnFilter> {
        let turns = fields.each("turn_ids", self.turn_ids, limits::VALUES, |fields, id| {
            fields.id("", &id, "the id of a turn")
        });
        let sessions = fields.names("sessions", self.sessions, limits::VALUES, SessionId::new);
        let excluded = fields.names(
            "excluded_sessions",
            self.excluded_sessions,
            limits::VALUES,
            SessionId::new,
        );
        let speakers = fields.names("speakers", self.speakers, limits::VALUES, Speaker::new);
        let roles = fields.each(
            "roles",
            self.roles,
            limits::VALUES,
            |fields, role| match role {
                0 => fields.refuse("", "must name a role"),
                role => fields.role("", role),
            },
        );
        let time = fields.message_or_default("time", self.time);
        let metadata = fields.metadata("metadata", self.metadata);
        let as_of = fields.message_or_default("as_of", self.as_of);
        Some(TurnFilter {
            turns: turns?,
            sessions: sessions?,
            excluded_sessions: excluded?,
            speakers: speakers?,
            roles: roles?,
            time: time?,
            metadata: metadata?.into_iter().collect(),
            as_of: as_of?,
            include_replaced: self.include_replaced,
        })
    }
}

impl Checked for proto::TimeRange {
    type Value = TimeRange;

    fn check(self, fields: &mut Fields) -> Option<TimeRange> {
        let start = fields.optional_time("start", self.start);
        let end = fields.optional_time("end", self.end);
        match (start?, end?) {
            (Some(start), Some(end)) if start >= end => {
                fields.refuse("end", "must be later than `start`")
            }
            (start, end) => Some(TimeRange { start, end }),
        }
    }
}

impl Checked for proto::AsOf {
    type Value = AsOf;

    fn check(self, fields: &mut Fields) -> Option<AsOf> {
        let known_at = fields.optional_time("known_at", self.known_at);
        let happened_by = fields.optional_time("happened_by", self.happened_by);
        Some(AsOf {
            known_at: known_at?,
            happened_by: happened_by?,
        })
    }
}
