//! Requests of the Knowledge service.

use memfleet_domain::derivation::Status;
use memfleet_domain::ids::{ChangeId, DerivationId, SpaceId};
use memfleet_domain::time::AsOf;
use memfleet_ports::knowledge_api::{
    Correction, EpisodeQuery, FactQuery, NarrativeQuery, ProfileQuery, TimelineOf, TimelineQuery,
    UpdateRequest,
};
use memfleet_ports::memory::PageRequest;

use super::derivation::range;
use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

fn as_of(as_of: AsOf) -> Option<proto::AsOf> {
    (as_of != AsOf::default()).then(|| proto::AsOf {
        known_at: as_of.known_at.map(time),
        happened_by: as_of.happened_by.map(time),
    })
}

fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

impl Fields {
    /// A key or a name that may be left out.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    fn optional_words(
        &mut self,
        field: &str,
        text: String,
        limit: usize,
    ) -> Option<Option<String>> {
        if text.is_empty() {
            return Some(None);
        }
        self.words(field, text, limit).map(Some)
    }
}

impl From<(FactQuery, PageRequest)> for proto::ListFactsRequest {
    fn from((query, page): (FactQuery, PageRequest)) -> Self {
        Self {
            space: query.space.into(),
            about: query.about.unwrap_or_default(),
            attribute: query.attribute.unwrap_or_default(),
            turn_ids: texts(&query.turns),
            as_of: as_of(query.as_of),
            include_ended: query.ended,
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
            wait_for: texts(&query.wait_for),
        }
    }
}

impl Checked for proto::ListFactsRequest {
    type Value = (FactQuery, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let about = fields.optional_words("about", self.about, limits::SUBJECT);
        let attribute = fields.optional_words("attribute", self.attribute, limits::SUBJECT);
        let turns = fields.turn_ids("turn_ids", self.turn_ids, limits::VALUES);
        let as_of = fields.message_or_default("as_of", self.as_of);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        let as_of: AsOf = as_of?;
        if self.include_ended && as_of.happened_by.is_some() {
            return fields.refuse(
                "include_ended",
                "asks for all times and `as_of.happened_by` for one: leave either out",
            );
        }
        let query = FactQuery {
            space: space?,
            about: about?,
            attribute: attribute?,
            turns: turns?,
            as_of,
            ended: self.include_ended,
            wait_for: wait_for?,
        };
        Some((query, page?))
    }
}

impl From<(EpisodeQuery, PageRequest)> for proto::ListEpisodesRequest {
    fn from((query, page): (EpisodeQuery, PageRequest)) -> Self {
        Self {
            space: query.space.into(),
            turn_ids: texts(&query.turns),
            as_of: as_of(query.as_of),
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
            wait_for: texts(&query.wait_for),
        }
    }
}

impl Checked for proto::ListEpisodesRequest {
    type Value = (EpisodeQuery, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let turns = fields.turn_ids("turn_ids", self.turn_ids, limits::VALUES);
        let as_of = fields.message_or_default("as_of", self.as_of);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        let query = EpisodeQuery {
            space: space?,
            turns: turns?,
            as_of: as_of?,
            wait_for: wait_for?,
        };
        Some((query, page?))
    }
}

impl From<(NarrativeQuery, PageRequest)> for proto::ListNarrativesRequest {
    fn from((query, page): (NarrativeQuery, PageRequest)) -> Self {
        Self {
            space: query.space.into(),
            as_of: as_of(query.as_of),
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
            wait_for: texts(&query.wait_for),
        }
    }
}

impl Checked for proto::ListNarrativesRequest {
    type Value = (NarrativeQuery, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let as_of = fields.message_or_default("as_of", self.as_of);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        let query = NarrativeQuery {
            space: space?,
            as_of: as_of?,
            wait_for: wait_for?,
        };
        Some((query, page?))
    }
}

impl From<(NarrativeQuery, DerivationId, PageRequest)> for proto::GetNarrativeRequest {
    fn from((query, id, page): (NarrativeQuery, DerivationId, PageRequest)) -> Self {
        Self {
            space: query.space.into(),
            id: id.to_string(),
            as_of: as_of(query.as_of),
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
            wait_for: texts(&query.wait_for),
        }
    }
}

impl Checked for proto::GetNarrativeRequest {
    type Value = (NarrativeQuery, DerivationId, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let id = fields.id("id", &self.id, "the id of a narrative");
        let as_of = fields.message_or_default("as_of", self.as_of);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        let query = NarrativeQuery {
            space: space?,
            as_of: as_of?,
            wait_for: wait_for?,
        };
        Some((query, id?, page?))
    }
}

impl From<(ProfileQuery, PageRequest)> for proto::ProfileRequest {
    fn from((query, page): (ProfileQuery, PageRequest)) -> Self {
        Self {
            space: query.space.into(),
            about: query.about,
            as_of: as_of(query.as_of),
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
            wait_for: texts(&query.wait_for),
        }
    }
}

impl Checked for proto::ProfileRequest {
    type Value = (ProfileQuery, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let about = fields.words("about", self.about, limits::SUBJECT);
        let as_of = fields.message_or_default("as_of", self.as_of);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        let query = ProfileQuery {
            space: space?,
            about: about?,
            as_of: as_of?,
            wait_for: wait_for?,
        };
        Some((query, page?))
    }
}

impl From<(TimelineQuery, PageRequest)> for proto::TimelineRequest {
    fn from((query, page): (TimelineQuery, PageRequest)) -> Self {
        let (about, topic) = match query.of {
            TimelineOf::Space => Default::default(),
            TimelineOf::About(name) => (name, String::new()),
            TimelineOf::Topic(words) => (String::new(), words),
        };
        Self {
            space: query.space.into(),
            about,
            topic,
            begins: (!query.begins.is_open()).then(|| range(query.begins)),
            known_at: query.known_at.map(time),
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
            wait_for: texts(&query.wait_for),
        }
    }
}

impl Checked for proto::TimelineRequest {
    type Value = (TimelineQuery, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let about = fields.optional_words("about", self.about, limits::SUBJECT);
        let topic = fields.optional_words("topic", self.topic, limits::QUERY);
        let begins = fields.message_or_default("begins", self.begins);
        let known_at = fields.optional_time("known_at", self.known_at);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        let of = match (about?, topic?) {
            (None, None) => TimelineOf::Space,
            (Some(name), None) => TimelineOf::About(name),
            (None, Some(words)) => TimelineOf::Topic(words),
            (Some(_), Some(_)) => {
                return fields.refuse("topic", "stands beside `about`: leave either out");
            }
        };
        let query = TimelineQuery {
            space: space?,
            of,
            begins: begins?,
            known_at: known_at?,
            wait_for: wait_for?,
        };
        Some((query, page?))
    }
}

impl Checked for proto::GetVersionsRequest {
    type Value = (SpaceId, DerivationId);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let id = fields.id("id", &self.id, "the id of something derived");
        Some((space?, id?))
    }
}

impl Checked for proto::ListConflictsRequest {
    type Value = (SpaceId, Vec<Status>, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let statuses = fields.each(
            "statuses",
            self.statuses,
            limits::VALUES,
            |fields, status| fields.word("", status),
        );
        let page = fields.page(self.page_size, self.page_token);
        Some((space?, statuses?, page?))
    }
}

impl Checked for proto::ListChangesRequest {
    type Value = (SpaceId, Option<DerivationId>, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let of = fields.optional_id("id", &self.id, "the id of a fact or an episode");
        let page = fields.page(self.page_size, self.page_token);
        Some((space?, of?, page?))
    }
}

impl Checked for proto::RevertRequest {
    type Value = (SpaceId, ChangeId);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let change = fields.id("change_id", &self.change_id, "the id of a change");
        Some((space?, change?))
    }
}

impl From<UpdateRequest> for proto::UpdateRequest {
    fn from(request: UpdateRequest) -> Self {
        let asked = Self {
            space: request.space.into(),
            id: request.id.to_string(),
            version: request.version.unwrap_or_default(),
            ..Self::default()
        };
        match request.correction {
            Correction::Withdrawn => Self {
                withdrawn: true,
                ..asked
            },
            Correction::Says { text, value, valid } => Self {
                text: text.unwrap_or_default(),
                value: value.unwrap_or_default(),
                valid: valid.map(range),
                ..asked
            },
        }
    }
}

impl Checked for proto::UpdateRequest {
    type Value = UpdateRequest;

    fn check(self, fields: &mut Fields) -> Option<UpdateRequest> {
        let space = fields.name("space", self.space, SpaceId::new);
        let id = fields.id("id", &self.id, "the id of a fact");
        let says = !self.text.is_empty() || !self.value.is_empty() || self.valid.is_some();
        let text = fields.optional_words("text", self.text, limits::FACT);
        let value = fields.optional_words("value", self.value, limits::METADATA_VALUE);
        let valid = match self.valid {
            Some(valid) => fields.message("valid", Some(valid)).map(Some),
            None => Some(None),
        };
        let correction = if self.withdrawn && says {
            fields.refuse(
                "withdrawn",
                "says that it was never true: leave `text`, `value` and `valid` out",
            )
        } else if self.withdrawn {
            Some(Correction::Withdrawn)
        } else {
            let (text, value, valid) = (text?, value?, valid?);
            Some(Correction::Says { text, value, valid })
        };
        Some(UpdateRequest {
            space: space?,
            id: id?,
            version: (self.version > 0).then_some(self.version),
            correction: correction?,
        })
    }
}
