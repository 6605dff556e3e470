//! Spaces and sessions.

use std::ops::RangeInclusive;

use memfleet_domain::ids::{SessionId, SpaceId};
use memfleet_domain::space::{LegalHold, Session, Space, SpaceSettings, TimeZone};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use super::page::{page_token, parts};
use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

impl From<SpaceSettings> for proto::SpaceSettings {
    fn from(settings: SpaceSettings) -> Self {
        Self {
            language: settings.language.unwrap_or_default(),
            time_zone: settings.time_zone.into(),
            retention_days: settings.retention_days.unwrap_or_default(),
            retention_turns: settings.retention_turns.unwrap_or_default(),
            retention_superseded_days: settings.retention_superseded_days.unwrap_or_default(),
        }
    }
}

impl Checked for proto::SpaceSettings {
    type Value = SpaceSettings;

    fn check(self, fields: &mut Fields) -> Option<SpaceSettings> {
        // Which codes there are is the gateway's to say.
        let language = fields.text("language", self.language, limits::LANGUAGE);
        let time_zone = match self.time_zone.as_str() {
            "" => Some(TimeZone::default()),
            name => name.parse().map_or_else(
                |_| {
                    fields.refuse(
                        "time_zone",
                        "must be an IANA time zone such as `Europe/Zurich`",
                    )
                },
                Some,
            ),
        };
        let (days, turns) = (1..=limits::RETENTION_DAYS, 1..=limits::RETENTION_TURNS);
        let retention_days =
            fields.optional_number("retention_days", self.retention_days, days.clone());
        let retention_turns =
            fields.optional_number("retention_turns", self.retention_turns, turns);
        let superseded = self.retention_superseded_days;
        let retention_superseded_days =
            fields.optional_number("retention_superseded_days", superseded, days);
        Some(SpaceSettings {
            language: language.map(|code| (!code.is_empty()).then_some(code))?,
            time_zone: time_zone?,
            retention_days: retention_days?,
            retention_turns: retention_turns?,
            retention_superseded_days: retention_superseded_days?,
        })
    }
}

impl Fields {
    /// A number in `range`; 0 means that there is none.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    fn optional_number(
        &mut self,
        field: &str,
        value: u32,
        range: RangeInclusive<u32>,
    ) -> Option<Option<u32>> {
        let number = self.number(field, value, 0, range)?;
        Some((number > 0).then_some(number))
    }
}

impl From<LegalHold> for proto::LegalHold {
    fn from(hold: LegalHold) -> Self {
        Self {
            since: Some(time(hold.since)),
            reason: hold.reason,
        }
    }
}

impl Checked for proto::LegalHold {
    type Value = LegalHold;

    fn check(self, fields: &mut Fields) -> Option<LegalHold> {
        Some(LegalHold {
            since: fields.message("since", self.since)?,
            reason: self.reason,
        })
    }
}

impl From<Space> for proto::Space {
    fn from(space: Space) -> Self {
        Self {
            name: space.id.into(),
            settings: Some(space.settings.into()),
            created_at: Some(time(space.created_at)),
            sessions: space.sessions,
            turns: space.turns,
            last_turn_at: space.last_turn_at.map(time),
            hold: space.hold.map(Into::into),
        }
    }
}

impl Checked for proto::Space {
    type Value = Space;

    fn check(self, fields: &mut Fields) -> Option<Space> {
        let id = fields.name("name", self.name, SpaceId::new);
        let settings = fields.message("settings", self.settings);
        let created_at = fields.message("created_at", self.created_at);
        let last_turn_at = fields.optional_time("last_turn_at", self.last_turn_at);
        let hold = match self.hold {
            Some(hold) => fields.message("hold", Some(hold)).map(Some),
            None => Some(None),
        };
        Some(Space {
            id: id?,
            settings: settings?,
            hold: hold?,
            first_language: None,
            created_at: created_at?,
            sessions: self.sessions,
            turns: self.turns,
            last_turn_at: last_turn_at?,
        })
    }
}

impl Checked for proto::PutSpaceRequest {
    type Value = (SpaceId, SpaceSettings);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let settings = fields.message_or_default("settings", self.settings);
        Some((space?, settings?))
    }
}

impl Checked for proto::SetLegalHoldRequest {
    type Value = (SpaceId, bool, String);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let reason = match self.reason.trim() {
            "" => fields.refuse("reason", "is missing: say why the hold is set or lifted"),
            _ => fields.text("reason", self.reason, limits::HOLD_REASON),
        };
        Some((space?, self.held, reason?))
    }
}

macro_rules! changed {
    ($($message:ident),*) => {$(
        impl From<Space> for proto::$message {
            fn from(space: Space) -> Self {
                Self {
                    space: Some(space.into()),
                }
            }
        }

        impl Checked for proto::$message {
            type Value = Space;

            fn check(self, fields: &mut Fields) -> Option<Space> {
                fields.message("space", self.space)
            }
        }
    )*};
}

changed!(PutSpaceResponse, SetLegalHoldResponse);

impl Checked for proto::ListSpacesRequest {
    type Value = PageRequest;

    fn check(self, fields: &mut Fields) -> Option<PageRequest> {
        fields.page(self.page_size, self.page_token)
    }
}

impl From<Page<Space>> for proto::ListSpacesResponse {
    fn from(page: Page<Space>) -> Self {
        let (spaces, next_page_token) = parts(page);
        Self {
            spaces,
            next_page_token,
        }
    }
}

impl Checked for proto::ListSpacesResponse {
    type Value = Page<Space>;

    fn check(self, fields: &mut Fields) -> Option<Page<Space>> {
        let items = fields.messages("spaces", self.spaces, usize::MAX)?;
        Some(Page {
            items,
            next: page_token(self.next_page_token),
        })
    }
}

impl From<Session> for proto::Session {
    fn from(session: Session) -> Self {
        Self {
            name: session.id.into(),
            turns: session.turns,
            first_turn_at: Some(time(session.first_turn_at)),
            last_turn_at: Some(time(session.last_turn_at)),
        }
    }
}

impl Checked for proto::Session {
    type Value = Session;

    fn check(self, fields: &mut Fields) -> Option<Session> {
        let id = fields.name("name", self.name, SessionId::new);
        let first_turn_at = fields.message("first_turn_at", self.first_turn_at);
        let last_turn_at = fields.message("last_turn_at", self.last_turn_at);
        Some(Session {
            id: id?,
            turns: self.turns,
            first_turn_at: first_turn_at?,
            last_turn_at: last_turn_at?,
        })
    }
}

impl Checked for proto::ListSessionsRequest {
    type Value = (SpaceId, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let page = fields.page(self.page_size, self.page_token);
        Some((space?, page?))
    }
}

impl From<Page<Session>> for proto::ListSessionsResponse {
    fn from(page: Page<Session>) -> Self {
        let (sessions, next_page_token) = parts(page);
        Self {
            sessions,
            next_page_token,
        }
    }
}

impl Checked for proto::ListSessionsResponse {
    type Value = Page<Session>;

    fn check(self, fields: &mut Fields) -> Option<Page<Session>> {
        let items = fields.messages("sessions", self.sessions, usize::MAX)?;
        Some(Page {
            items,
            next: page_token(self.next_page_token),
        })
    }
}
