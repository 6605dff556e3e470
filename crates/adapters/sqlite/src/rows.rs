//! Between a turn and its row.

use chrono::DateTime;
use memfleet_domain::ids::{BatchId, ExternalId, NameError, SessionId, Speaker};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{AcceptedTurn, Content, Metadata, Replacement, Role, Trust, Turn};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::codec::to_id;
use crate::failure::{Outcome, damaged};

/// The columns that [`turn`] reads, of `turns t JOIN sessions s`.
macro_rules! turn_columns {
    () => {
        "t.id, s.name, t.external_id, t.speaker, t.role, t.trust, t.text, t.media, t.metadata, t.event_time, \
         t.recorded_at, t.replaces, t.position, t.replaced_by, t.replaced_at, t.acceptance, t.ordinal, s.started_at, s.id"
    };
}
pub(crate) use turn_columns;

/// The turn in a row of [`turn_columns`].
pub fn turn(row: &SqliteRow) -> Outcome<Turn> {
    let media: Option<&str> = row.try_get(7)?;
    let metadata: Option<&str> = row.try_get(8)?;
    let replaced = match row.try_get::<Option<&[u8]>, _>(13)? {
        None => None,
        Some(by) => Some(Replacement {
            by: to_id(by)?,
            at: time(row.try_get(14)?)?,
        }),
    };
    Ok(Turn {
        accepted: AcceptedTurn {
            id: to_id(row.try_get(0)?)?,
            session: name(SessionId::new(row.try_get::<&str, _>(1)?))?,
            external_id: row
                .try_get::<Option<&str>, _>(2)?
                .map(|external| name(ExternalId::new(external)))
                .transpose()?,
            speaker: name(Speaker::new(row.try_get::<&str, _>(3)?))?,
            role: to_role(row.try_get(4)?)?,
            trust: to_trust(row.try_get(5)?)?,
            content: Content {
                text: row.try_get(6)?,
                media: media.map(json).transpose()?.unwrap_or_default(),
            },
            metadata: metadata
                .map(json::<Metadata>)
                .transpose()?
                .unwrap_or_default(),
            event_time: row.try_get::<Option<i64>, _>(9)?.map(time).transpose()?,
            recorded_at: time(row.try_get(10)?)?,
            replaces: row
                .try_get::<Option<&[u8]>, _>(11)?
                .map(to_id)
                .transpose()?,
            place: None,
        },
        position: row.try_get(12)?,
        replaced,
    })
}

/// A stored name; names are checked before they come here, so a bad one is damage.
pub fn name<T>(name: Result<T, NameError>) -> Outcome<T> {
    name.map_err(|cause| damaged(format!("a stored name {cause}")))
}

/// The id of a batch in its column.
pub fn batch_id(bytes: &[u8]) -> Outcome<BatchId> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("a batch id is not 16 bytes"))?;
    Ok(BatchId::from_bytes(bytes))
}

/// A JSON column.
pub fn json<T: serde::de::DeserializeOwned>(text: &str) -> Outcome<T> {
    serde_json::from_str(text).map_err(|cause| damaged(format!("a JSON column: {cause}")))
}

/// The text of a JSON column.
pub fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("domain types have text keys and no failing serialiser")
}

/// A time column.
pub fn time(micros: i64) -> Outcome<Timestamp> {
    DateTime::from_timestamp_micros(micros).ok_or_else(|| damaged(format!("{micros} is no time")))
}

/// The number of a role in its column.
pub fn from_role(role: Role) -> i64 {
    match role {
        Role::User => 0,
        Role::Assistant => 1,
        Role::System => 2,
        Role::Tool => 3,
    }
}

/// The role of a column.
pub fn to_role(number: i64) -> Outcome<Role> {
    [Role::User, Role::Assistant, Role::System, Role::Tool]
        .into_iter()
        .find(|role| from_role(*role) == number)
        .ok_or_else(|| damaged(format!("{number} is no role")))
}

/// The number of a trust label in its column.
pub fn from_trust(trust: Trust) -> i64 {
    match trust {
        Trust::User => 0,
        Trust::Assistant => 1,
        Trust::Tool => 2,
        Trust::Web => 3,
    }
}

fn to_trust(number: i64) -> Outcome<Trust> {
    [Trust::User, Trust::Assistant, Trust::Tool, Trust::Web]
        .into_iter()
        .find(|trust| from_trust(*trust) == number)
        .ok_or_else(|| damaged(format!("{number} is no trust label")))
}
