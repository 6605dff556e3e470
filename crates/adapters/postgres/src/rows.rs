//! Between a turn and its row, and between ids and theirs.

use memfleet_columns::{json, name, time, to_role, to_trust};
use memfleet_domain::ids::{
    BatchId, ChangeId, ConflictId, DerivationId, ExternalId, SessionId, SpaceId, Speaker, TurnId,
};
use memfleet_domain::turn::{AcceptedTurn, Content, Metadata, Replacement, Turn};
use memfleet_ports::store::StoreError;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::failure::Outcome;

/// The columns that [`turn`] reads, of `turns t JOIN sessions s`.
macro_rules! turn_columns {
    () => {
        "t.id, s.name, t.external_id, t.speaker, t.role, t.trust, t.text, t.media, t.metadata, t.event_time, \
         t.recorded_at, t.replaces, t.position, t.replaced_by, t.replaced_at, t.acceptance, t.ordinal, s.started_at, s.id, t.echoes"
    };
}
pub(crate) use turn_columns;

/// The place of the first column behind [`turn_columns`].
pub const BEHIND_TURN: usize = 20;

/// The session of each turn `t`, found by itself: a plan that joins them the other way would sort what an index has in order.
macro_rules! find_session {
    () => {
        " CROSS JOIN LATERAL (
             SELECT id, name, started_at FROM sessions
             WHERE tenant = t.tenant AND space = t.space AND id = t.session LIMIT 1) s "
    };
}
pub(crate) use find_session;

/// Turns `t` and their sessions, from whichever side is better.
macro_rules! join_sessions {
    () => {
        " JOIN sessions s ON s.tenant = t.tenant AND s.space = t.space AND s.id = t.session "
    };
}
pub(crate) use join_sessions;

/// The turn in a row of [`turn_columns`].
pub fn turn(row: &PgRow) -> Outcome<Turn> {
    let media: Option<&str> = row.try_get(7)?;
    let metadata: Option<&str> = row.try_get(8)?;
    let echoes: Option<&str> = row.try_get(19)?;
    let replaced = match row.try_get::<Option<Uuid>, _>(13)? {
        None => None,
        Some(by) => Some(Replacement {
            by: to_turn_id(by),
            at: time(row.try_get(14)?)?,
        }),
    };
    Ok(Turn {
        accepted: AcceptedTurn {
            id: to_turn_id(row.try_get(0)?),
            session: name(SessionId::new(row.try_get::<&str, _>(1)?))?,
            external_id: row
                .try_get::<Option<&str>, _>(2)?
                .map(|external| name(ExternalId::new(external)))
                .transpose()?,
            speaker: name(Speaker::new(row.try_get::<&str, _>(3)?))?,
            role: to_role(row.try_get::<i16, _>(4)?.into())?,
            trust: to_trust(row.try_get::<i16, _>(5)?.into())?,
            content: Content {
                text: text(row.try_get(6)?)?,
                media: media.map(json).transpose()?.unwrap_or_default(),
            },
            metadata: metadata
                .map(json::<Metadata>)
                .transpose()?
                .unwrap_or_default(),
            event_time: row.try_get::<Option<i64>, _>(9)?.map(time).transpose()?,
            recorded_at: time(row.try_get(10)?)?,
            replaces: row.try_get::<Option<Uuid>, _>(11)?.map(to_turn_id),
            echoes: echoes.map(json).transpose()?.unwrap_or_default(),
            place: None,
        },
        position: row.try_get::<i64, _>(12)? as u32,
        replaced,
    })
}

/// A text in a column of bytes.
pub fn text(bytes: Vec<u8>) -> Outcome<String> {
    let damaged = |_| StoreError::Damaged("a text is not UTF-8".into());
    Ok(String::from_utf8(bytes).map_err(damaged)?)
}

pub fn from_turn_id(id: &TurnId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub fn to_turn_id(id: Uuid) -> TurnId {
    TurnId::from_bytes(id.into_bytes())
}

pub fn from_batch_id(id: BatchId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub fn to_batch_id(id: Uuid) -> BatchId {
    BatchId::from_bytes(id.into_bytes())
}

pub fn from_derivation_id(id: DerivationId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub fn to_derivation_id(id: Uuid) -> DerivationId {
    DerivationId::from_bytes(id.into_bytes())
}

pub fn from_change_id(id: ChangeId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub fn to_change_id(id: Uuid) -> ChangeId {
    ChangeId::from_bytes(id.into_bytes())
}

pub fn from_conflict_id(id: ConflictId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

/// Ids as one parameter: the statement stays the same for any number of them.
pub fn id_list<'a>(ids: impl IntoIterator<Item = &'a TurnId>) -> Vec<Uuid> {
    ids.into_iter().map(from_turn_id).collect()
}

/// Turns of several spaces as two parameters of the same length.
pub fn from_pairs(turns: &[(SpaceId, TurnId)]) -> (Vec<&str>, Vec<Uuid>) {
    let pairs = turns.iter();
    pairs
        .map(|(space, turn)| (space.as_str(), from_turn_id(turn)))
        .unzip()
}

/// Numbers up to `u32::MAX` in a column of 4 bytes; read back with [`to_u32`].
pub fn from_u32(numbers: impl IntoIterator<Item = u32>) -> Vec<i32> {
    numbers.into_iter().map(|number| number as i32).collect()
}

pub fn to_u32(number: i32) -> u32 {
    number as u32
}
