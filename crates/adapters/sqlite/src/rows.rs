//! Between a turn and its row.

use memfleet_columns::{json, name, time, to_json, to_role, to_trust, to_turn_id};
use memfleet_domain::ids::{ExternalId, SessionId, Speaker, TurnId};
use memfleet_domain::turn::{AcceptedTurn, Content, Metadata, Replacement, Turn};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

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

/// The turn in a row of [`turn_columns`].
pub fn turn(row: &SqliteRow) -> Outcome<Turn> {
    let media: Option<&str> = row.try_get(7)?;
    let metadata: Option<&str> = row.try_get(8)?;
    let echoes: Option<&str> = row.try_get(19)?;
    let replaced = match row.try_get::<Option<&[u8]>, _>(13)? {
        None => None,
        Some(by) => Some(Replacement {
            by: to_turn_id(by)?,
            at: time(row.try_get(14)?)?,
        }),
    };
    Ok(Turn {
        accepted: AcceptedTurn {
            id: to_turn_id(row.try_get(0)?)?,
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
                .map(to_turn_id)
                .transpose()?,
            echoes: echoes.map(json).transpose()?.unwrap_or_default(),
            place: None,
        },
        position: row.try_get(12)?,
        replaced,
    })
}

/// Ids as one JSON parameter, for `unhex(value, '-') … json_each(?)`: the statement stays the same for any number of them.
pub fn id_list<'a>(ids: impl IntoIterator<Item = &'a TurnId>) -> String {
    to_json(&ids.into_iter().collect::<Vec<_>>())
}
