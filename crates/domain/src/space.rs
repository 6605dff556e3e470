//! A space and its settings, and the sessions inside it.

use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::ids::{SessionId, SpaceId};
use crate::time::Timestamp;

/// What the owner of a space sets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpaceSettings {
    /// Code of the language that turns and queries are stemmed by (ISO 639-1, or `und` for one without rules of its own);
    /// absent: the language of its first turns.
    pub language: Option<String>,
    /// Zone in which dates are read and rendered. Default UTC.
    pub time_zone: TimeZone,
    /// Turns older than this many days (by event time, else recorded time) are removed. Absent: kept for ever.
    pub retention_days: Option<u32>,
    /// Of the turns only so many are kept, the newest by event time (else recorded time, then order of acceptance). Absent: all.
    pub retention_turns: Option<u32>,
    /// Versions of facts and episodes that hold no longer are removed so many days after they ceased to be current. Absent: kept
    /// for ever.
    pub retention_superseded_days: Option<u32>,
}

/// A legal hold: while a space is on one nothing of it is destroyed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegalHold {
    /// Since when.
    pub since: Timestamp,
    /// Why, in the words of whoever set it.
    pub reason: String,
}

/// An IANA time zone, for example `Europe/Zurich`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeZone(pub Tz);

impl Default for TimeZone {
    fn default() -> Self {
        Self(Tz::UTC)
    }
}

impl std::str::FromStr for TimeZone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|_| format!("`{text}` is not an IANA time zone such as `Europe/Zurich`"))
    }
}

impl TryFrom<String> for TimeZone {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TimeZone> for String {
    fn from(zone: TimeZone) -> String {
        zone.0.name().to_owned()
    }
}

/// A space as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Its name.
    pub id: SpaceId,
    /// What the owner set.
    pub settings: SpaceSettings,
    /// Whether it is on legal hold. No setting: what replaces all settings leaves it.
    pub hold: Option<LegalHold>,
    /// Code of the language that its first turns were analysed in; absent until they say enough to tell.
    pub first_language: Option<String>,
    /// When the first write created it.
    pub created_at: Timestamp,
    /// Sessions with at least one turn.
    pub sessions: u64,
    /// Turns, replaced ones included.
    pub turns: u64,
    /// Event time (else recorded time) of the latest turn.
    pub last_turn_at: Option<Timestamp>,
}

/// How the text of a space is read: all that a search needs to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Locale {
    /// Code of the language that turns and queries are analysed in; absent until it is known.
    pub language: Option<String>,
    /// Zone in which dates are read and rendered.
    pub time_zone: TimeZone,
}

impl Space {
    /// How its text is read.
    pub fn locale(&self) -> Locale {
        Locale {
            language: self.language().map(str::to_owned),
            time_zone: self.settings.time_zone,
        }
    }

    /// Code of the language that turns and queries are analysed in: the owner's choice, else that of the first turns. One
    /// for the whole space, whatever a single text is in: what index and query stem differently is never found.
    pub fn language(&self) -> Option<&str> {
        self.settings
            .language
            .as_deref()
            .or(self.first_language.as_deref())
    }
}

/// A session as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// Turns, replaced ones included.
    pub turns: u64,
    /// Event time (else recorded time) of the first turn.
    pub first_turn_at: Timestamp,
    /// Event time (else recorded time) of the last turn.
    pub last_turn_at: Timestamp,
}
