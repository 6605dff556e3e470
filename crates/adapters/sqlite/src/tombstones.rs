//! What is left of turns that were forgotten, and whether one that comes now is covered by it.

use std::collections::HashMap;

use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::AcceptedTurn;
use sqlx::{Row, SqliteConnection};

use crate::codec::to_id;
use crate::failure::Outcome;
use crate::scope::SpaceRow;

/// A turn that was forgotten and not told again.
pub struct Tombstone {
    /// The last position of acceptance that the forget covers.
    last: i64,
    /// The whole space was forgotten with it or since.
    is_of_space: bool,
}

impl Tombstone {
    /// Whether a turn that comes now stays forgotten. An import may have been read before the forget and be accepted after it.
    pub fn covers(&self, turn: &AcceptedTurn, acceptance: i64) -> bool {
        let is_imported = turn.place.is_some();
        acceptance <= self.last || (is_imported && !self.is_of_space)
    }
}

/// The tombstones of those of the turns (an id list) that have one.
pub async fn of(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    ids: &str,
) -> Outcome<HashMap<TurnId, Tombstone>> {
    let rows = sqlx::query(
        "SELECT f.id, f.acceptance, f.change <= s.erased FROM forgotten f JOIN spaces s ON s.id = f.space
         WHERE f.space = ? AND f.id IN (SELECT unhex(value, '-') FROM json_each(?))",
    )
    .bind(space.id)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let tombstone = Tombstone {
                last: row.try_get(1)?,
                is_of_space: row.try_get(2)?,
            };
            Ok((to_id(row.try_get(0)?)?, tombstone))
        })
        .collect()
}
