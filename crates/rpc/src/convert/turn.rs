//! Turns, as callers give them and as memfleet keeps them.

use std::collections::BTreeMap;

use memfleet_domain::ids::{ExternalId, SessionId, Speaker, TurnId};
use memfleet_domain::turn::{AcceptedTurn, Content, Echo, Media, Metadata, Replacement, Turn};
use memfleet_ports::memory::NewTurn;

use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

impl Fields {
    /// Labels of a turn or a filter.
    pub(super) fn metadata(
        &mut self,
        field: &str,
        metadata: BTreeMap<String, String>,
    ) -> Option<Metadata> {
        self.at_most(field, metadata.len(), limits::METADATA, "labels")?;
        let mut right = true;
        for (key, value) in &metadata {
            let shown: String = key.chars().take(16).flat_map(char::escape_debug).collect();
            let key_limit = limits::METADATA_KEY;
            if !(1..=key_limit).contains(&key.len()) && self.sizes_limited() {
                self.refuse::<()>(
                    field,
                    format!("key \"{shown}\" must have 1 to {key_limit} bytes of UTF-8"),
                );
                right = false;
            }
            let named = format!("{field}[\"{shown}\"]");
            right &= self
                .at_most(
                    &named,
                    value.len(),
                    limits::METADATA_VALUE,
                    "bytes of UTF-8",
                )
                .is_some();
        }
        right.then_some(metadata)
    }

    fn content(&mut self, text: String, media: Vec<proto::Media>) -> Option<Content> {
        let silent =
            text.trim().is_empty() && media.iter().all(|media| media.caption.trim().is_empty());
        if silent && self.sizes_limited() {
            return self.refuse("text", "must not be blank unless some media has a caption");
        }
        let text = self.text("text", text, limits::TEXT);
        let media = self.messages("media", media, limits::MEDIA);
        Some(Content {
            text: text?,
            media: media?,
        })
    }

    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    fn optional_turn(&mut self, field: &str, id: &str) -> Option<Option<TurnId>> {
        if id.is_empty() {
            Some(None)
        } else {
            self.id(field, id, "the id of a turn").map(Some)
        }
    }
}

impl From<Media> for proto::Media {
    fn from(media: Media) -> Self {
        Self {
            uri: media.uri,
            mime_type: media.mime_type,
            caption: media.caption,
        }
    }
}

impl Checked for proto::Media {
    type Value = Media;

    fn check(self, fields: &mut Fields) -> Option<Media> {
        let uri = fields.words("uri", self.uri, limits::URI);
        let mime_type = fields.text("mime_type", self.mime_type, limits::MIME_TYPE);
        let caption = fields.text("caption", self.caption, limits::CAPTION);
        Some(Media {
            uri: uri?,
            mime_type: mime_type?,
            caption: caption?,
        })
    }
}

impl From<NewTurn> for proto::NewTurn {
    fn from(turn: NewTurn) -> Self {
        Self {
            session: turn.session.into(),
            external_id: turn.external_id.map(String::from).unwrap_or_default(),
            speaker: turn.speaker.into(),
            role: proto::Role::from(turn.role).into(),
            text: turn.content.text,
            media: turn.content.media.into_iter().map(Into::into).collect(),
            event_time: turn.event_time.map(time),
            metadata: turn.metadata,
            trust: proto::Trust::from(turn.trust).into(),
            replaces: turn.replaces.map(|id| id.to_string()).unwrap_or_default(),
        }
    }
}

impl Checked for proto::NewTurn {
    type Value = NewTurn;

    fn check(mut self, fields: &mut Fields) -> Option<NewTurn> {
        let role = fields.role("role", self.role);
        if self.speaker.is_empty() {
            self.speaker = role.map_or_else(String::new, |role| format!("{role:?}").to_lowercase());
        }
        let session = fields.name("session", self.session, SessionId::new);
        let external_id = fields.optional_name("external_id", self.external_id, ExternalId::new);
        // An unknown role is one violation, not two.
        let speaker = role.and_then(|_| fields.name("speaker", self.speaker, Speaker::new));
        let content = fields.content(self.text, self.media);
        let event_time = fields.optional_time("event_time", self.event_time);
        let metadata = fields.metadata("metadata", self.metadata);
        let trust = fields.trust("trust", self.trust, role);
        let replaces = fields.optional_turn("replaces", &self.replaces);
        Some(NewTurn {
            session: session?,
            external_id: external_id?,
            speaker: speaker?,
            role: role?,
            content: content?,
            event_time: event_time?,
            metadata: metadata?,
            trust: trust?,
            replaces: replaces?,
        })
    }
}

impl From<AcceptedTurn> for proto::Turn {
    fn from(turn: AcceptedTurn) -> Self {
        Self {
            content_hash: turn.content_hash().to_string(),
            id: turn.id.to_string(),
            session: turn.session.into(),
            external_id: turn.external_id.map(String::from).unwrap_or_default(),
            speaker: turn.speaker.into(),
            role: proto::Role::from(turn.role).into(),
            text: turn.content.text,
            media: turn.content.media.into_iter().map(Into::into).collect(),
            event_time: turn.event_time.map(time),
            recorded_at: Some(time(turn.recorded_at)),
            metadata: turn.metadata,
            trust: proto::Trust::from(turn.trust).into(),
            replaces: turn.replaces.map(|id| id.to_string()).unwrap_or_default(),
            position: 0,
            replaced: None,
            echoes: turn.echoes.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Turn> for proto::Turn {
    fn from(turn: Turn) -> Self {
        let replaced = turn.replaced.map(|replaced| proto::Replacement {
            by: replaced.by.to_string(),
            at: Some(time(replaced.at)),
        });
        Self {
            position: turn.position,
            replaced,
            ..turn.accepted.into()
        }
    }
}

impl Checked for proto::Replacement {
    type Value = Replacement;

    fn check(self, fields: &mut Fields) -> Option<Replacement> {
        let by = fields.id("by", &self.by, "the id of a turn");
        let at = fields.message("at", self.at);
        Some(Replacement { by: by?, at: at? })
    }
}

impl From<Echo> for proto::Echo {
    fn from(echo: Echo) -> Self {
        Self {
            start: echo.start,
            end: echo.end,
            of: echo.of.to_string(),
        }
    }
}

impl Checked for proto::Echo {
    type Value = Echo;

    fn check(self, fields: &mut Fields) -> Option<Echo> {
        if self.end <= self.start {
            return fields.refuse("end", "must be greater than `start`");
        }
        Some(Echo {
            start: self.start,
            end: self.end,
            of: fields.id("of", &self.of, "the id of a turn")?,
        })
    }
}

impl Checked for proto::Turn {
    type Value = Turn;

    fn check(self, fields: &mut Fields) -> Option<Turn> {
        let id = fields.id("id", &self.id, "the id of a turn");
        let recorded_at = fields.message("recorded_at", self.recorded_at);
        let replaced = match self.replaced {
            Some(replaced) => fields.message("replaced", Some(replaced)).map(Some),
            None => Some(None),
        };
        let said = proto::NewTurn {
            session: self.session,
            external_id: self.external_id,
            speaker: self.speaker,
            role: self.role,
            text: self.text,
            media: self.media,
            event_time: self.event_time,
            metadata: self.metadata,
            trust: self.trust,
            replaces: self.replaces,
        };
        let said = said.check(fields)?;
        let echoes = fields.messages("echoes", self.echoes, limits::ECHOES);
        let accepted = AcceptedTurn {
            id: id?,
            session: said.session,
            external_id: said.external_id,
            speaker: said.speaker,
            role: said.role,
            content: said.content,
            event_time: said.event_time,
            recorded_at: recorded_at?,
            metadata: said.metadata,
            trust: said.trust,
            replaces: said.replaces,
            echoes: echoes?,
            place: None,
        };
        Some(Turn {
            accepted,
            position: self.position,
            replaced: replaced?,
        })
    }
}
