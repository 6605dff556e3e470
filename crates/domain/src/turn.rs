//! The turn: one utterance of a conversation, kept verbatim. Turns are append-only: an edit is a new turn that names the
//! one it replaces (AMA section 3, raw memory R with Ω = {τ, `D_s:t`}).

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::ids::{ExternalId, SessionId, Speaker, TurnId};
use crate::time::Timestamp;

/// The part a speaker plays in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person.
    User,
    /// The model.
    Assistant,
    /// Instructions.
    System,
    /// What a tool gave back.
    Tool,
}

/// Where the words come from, which decides how far a prompt may trust them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Typed by a user of the application.
    User,
    /// Written by the model.
    Assistant,
    /// Returned by a tool.
    Tool,
    /// Taken from the web or another document.
    Web,
}

impl Trust {
    /// The label when the caller gives none.
    pub fn of_role(role: Role) -> Self {
        match role {
            Role::User | Role::System => Self::User,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
        }
    }
}

/// Something other than text, kept as a reference and a caption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Where it is; never fetched by memfleet. At most 2,048 bytes.
    pub uri: String,
    /// Its MIME type, for example `image/jpeg`; may be empty.
    pub mime_type: String,
    /// What it shows, in words: this is what search finds. At most 4,096 bytes.
    pub caption: String,
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Content {
    /// The words, verbatim. At most 65,536 bytes of UTF-8.
    pub text: String,
    /// What came with them.
    pub media: Vec<Media>,
}

impl Content {
    /// The text that search indexes and prompts show: the words, then each caption as `[shares …]`.
    pub fn searchable_text(&self) -> String {
        let mut text = self.text.clone();
        for caption in self
            .media
            .iter()
            .map(|media| media.caption.trim())
            .filter(|caption| !caption.is_empty())
        {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str("[shares ");
            text.push_str(caption);
            text.push(']');
        }
        text
    }
}

/// Most echoes of a turn.
pub const ECHOES: usize = 256;

/// Words of a turn that a model copied from what memory gave it: whoever says them again, they are no news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// First byte in the text.
    pub start: u32,
    /// Byte behind the last one.
    pub end: u32,
    /// The turn that said them, of any space that the model was given memory of.
    pub of: TurnId,
}

/// The caller's own labels: at most 32 pairs, keys of at most 64 and values of at most 512 bytes.
pub type Metadata = BTreeMap<String, String>;

/// BLAKE3 over what a turn says and who said it; equal hashes are equal turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 32]);

impl std::fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

/// A turn as it is accepted: checked, named, not yet placed in its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedTurn {
    /// Its id, the same on every retry.
    pub id: TurnId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The caller's id, if it gave one.
    pub external_id: Option<ExternalId>,
    /// Who spoke.
    pub speaker: Speaker,
    /// In which part.
    pub role: Role,
    /// What was said.
    pub content: Content,
    /// Event time τ: when it was said. Absent when the caller does not know; never the time of an import.
    pub event_time: Option<Timestamp>,
    /// Recorded time: when memfleet accepted it.
    pub recorded_at: Timestamp,
    /// The caller's labels.
    pub metadata: Metadata,
    /// Where the words come from.
    pub trust: Trust,
    /// The turn that this one replaces (an edit, a regenerated answer).
    pub replaces: Option<TurnId>,
    /// What of its words is copied, in order. Found when it was accepted; no part of what the caller said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub echoes: Vec<Echo>,
    /// Its place in the session where an export was made: an import leaves the gaps of what was forgotten there. Absent on
    /// any other way in, and once the turn has its [`Turn::position`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}

/// What external ids begin with that the gateway gives to what it captures. The rest is a digest of role, words and place, so two turns of one such id
/// say the same, whatever time and labels they came with.
pub const CAPTURED: &str = "captured-";

impl AcceptedTurn {
    /// Whether it was captured.
    pub fn is_captured(&self) -> bool {
        let external = self.external_id.as_ref();
        external.is_some_and(|id| id.as_str().starts_with(CAPTURED))
    }

    /// Bytes of what the caller sent of any length: text, media and metadata.
    pub fn bytes(&self) -> usize {
        let media = self.content.media.iter();
        let media = media.map(|it| it.uri.len() + it.mime_type.len() + it.caption.len());
        let metadata = self.metadata.iter();
        let metadata = metadata.map(|(key, value)| key.len() + value.len());
        self.content.text.len() + media.sum::<usize>() + metadata.sum::<usize>()
    }

    /// The hash of everything the caller said about the turn. The recorded time is ours and stays out, so that a retry is equal.
    pub fn content_hash(&self) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        // The time ends the media. Where one of these begins like a time, their number goes before, behind a length that no field has.
        let media = &self.content.media;
        let is_like_time = |uri: &str| uri.chars().all(|c| c.is_ascii_digit() || c == '-');
        if media.iter().any(|media| is_like_time(&media.uri)) {
            hasher.update(&u64::MAX.to_be_bytes());
            hasher.update(&(media.len() as u64).to_be_bytes());
        }
        let mut field = |value: &str| {
            hasher.update(&(value.len() as u64).to_be_bytes());
            hasher.update(value.as_bytes());
        };
        field(self.session.as_str());
        field(self.external_id.as_ref().map_or("", ExternalId::as_str));
        field(self.speaker.as_str());
        field(&format!("{:?} {:?}", self.role, self.trust));
        field(&self.content.text);
        for media in &self.content.media {
            field(&media.uri);
            field(&media.mime_type);
            field(&media.caption);
        }
        field(
            &self
                .event_time
                .map_or_else(String::new, |time| time.timestamp_micros().to_string()),
        );
        for (key, value) in &self.metadata {
            field(key);
            field(value);
        }
        field(&self.replaces.map_or_else(String::new, |id| id.to_string()));
        ContentHash(*hasher.finalize().as_bytes())
    }

    /// Whether all of some bytes of its text is copied from one turn.
    pub fn is_copied(&self, bytes: &Range<u32>) -> bool {
        let mut echoes = self.echoes.iter();
        echoes.any(|echo| echo.start <= bytes.start && bytes.end <= echo.end)
    }

    /// Event time where it is known, else recorded time.
    pub fn effective_time(&self) -> Timestamp {
        self.event_time.unwrap_or(self.recorded_at)
    }
}

/// A turn in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// What was accepted.
    #[serde(flatten)]
    pub accepted: AcceptedTurn,
    /// Its place in the session, `D_s:t`, from 0, in the order of acceptance.
    pub position: u32,
    /// The turn that replaced it, and since when.
    pub replaced: Option<Replacement>,
}

/// That a turn was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The newer turn.
    pub by: TurnId,
    /// Recorded time of the newer turn.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::DateTime;

    use super::*;
    use crate::ids::{SpaceId, TenantId};
    use crate::scope::Scope;

    #[test]
    fn media_and_metadata_that_read_alike_have_hashes_of_their_own() {
        let media = |uri: &str, mime_type: &str, caption: &str| Media {
            uri: uri.to_owned(),
            mime_type: mime_type.to_owned(),
            caption: caption.to_owned(),
        };
        let turn = |media, at: i64, metadata: &[(&str, &str)]| AcceptedTurn {
            content: Content {
                text: "A picture.".to_owned(),
                media,
            },
            event_time: DateTime::from_timestamp_micros(at),
            metadata: metadata.iter().map(owned).collect::<BTreeMap<_, _>>(),
            ..sample()
        };
        let pictures = vec![media("1000", "a", "b"), media("c", "d", "e")];
        let shown = turn(pictures, 2000, &[]);
        let labelled = turn(Vec::new(), 1000, &[("a", "b"), ("c", "d"), ("e", "2000")]);
        assert_ne!(shown.content_hash(), labelled.content_hash());
    }

    fn sample() -> AcceptedTurn {
        let scope = Scope {
            tenant: TenantId::new("t").unwrap(),
            space: SpaceId::new("s").unwrap(),
        };
        let session = SessionId::new("s").unwrap();
        let external_id = ExternalId::new("x").unwrap();
        AcceptedTurn {
            id: TurnId::of_external(&scope, &session, &external_id),
            session,
            external_id: Some(external_id),
            speaker: Speaker::new("Ada").unwrap(),
            role: Role::User,
            content: Content::default(),
            event_time: None,
            recorded_at: DateTime::UNIX_EPOCH,
            metadata: Metadata::new(),
            trust: Trust::User,
            replaces: None,
            echoes: Vec::new(),
            place: None,
        }
    }

    fn owned((key, value): &(&str, &str)) -> (String, String) {
        ((*key).to_owned(), (*value).to_owned())
    }
}
