//! A session while turns are added to it: where the next one stands.

use memfleet_columns::end_of_session;
use memfleet_domain::turn::AcceptedTurn;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;

/// A session's row, kept in memory during a commit.
pub struct OpenSession {
    pub id: i64,
    turns: i64,
    started_at: i64,
    first_at: i64,
    last_at: i64,
    /// Acceptance, ordinal and position of its last turn.
    last: Option<(i64, u32, u32)>,
}

impl OpenSession {
    /// Reads the session of `turn`, or makes it.
    pub async fn open(
        connection: &mut SqliteConnection,
        space: i64,
        turn: &AcceptedTurn,
    ) -> Outcome<Self> {
        let recorded = turn.recorded_at.timestamp_micros();
        let effective = turn.effective_time().timestamp_micros();
        let row = sqlx::query(
            "INSERT INTO sessions (space, name, turns, started_at, first_at, last_at) VALUES (?, ?, 0, ?, ?, ?)
             ON CONFLICT (space, name) DO UPDATE SET turns = turns
             RETURNING id, turns, started_at, first_at, last_at",
        )
        .bind(space)
        .bind(turn.session.as_str())
        .bind(recorded)
        .bind(effective)
        .bind(effective)
        .fetch_one(&mut *connection)
        .await?;
        let id = row.try_get(0)?;
        let last = sqlx::query(
            "SELECT acceptance, ordinal, position FROM turns WHERE session = ?
             ORDER BY acceptance DESC, ordinal DESC LIMIT 1",
        )
        .bind(id)
        .fetch_optional(connection)
        .await?;
        Ok(Self {
            id,
            turns: row.try_get(1)?,
            started_at: row.try_get(2)?,
            first_at: row.try_get(3)?,
            last_at: row.try_get(4)?,
            last: match last {
                Some(row) => Some((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)),
                None => None,
            },
        })
    }

    /// The position of a turn that is about to be stored: its place, if it brings one that is further than the end. Turns
    /// that were accepted later but stored earlier move up by one.
    pub async fn make_room(
        &mut self,
        connection: &mut SqliteConnection,
        acceptance: i64,
        ordinal: u32,
        place: Option<u32>,
    ) -> Outcome<u32> {
        match self.last {
            Some((last_acceptance, last_ordinal, position))
                if (acceptance, ordinal) < (last_acceptance, last_ordinal) =>
            {
                self.last = Some((last_acceptance, last_ordinal, position + 1));
                Self::insert_before(connection, self.id, acceptance, ordinal).await
            }
            before => {
                let position = end_of_session(before.map(|(_, _, position)| position), place);
                self.last = Some((acceptance, ordinal, position));
                Ok(position)
            }
        }
    }

    async fn insert_before(
        connection: &mut SqliteConnection,
        session: i64,
        acceptance: i64,
        ordinal: u32,
    ) -> Outcome<u32> {
        sqlx::query(
            "UPDATE turns SET position = position + 1 WHERE session = ? AND (acceptance, ordinal) > (?, ?)",
        )
        .bind(session)
        .bind(acceptance)
        .bind(ordinal)
        .execute(&mut *connection)
        .await?;
        let before: Option<u32> = sqlx::query_scalar(
            "SELECT position FROM turns WHERE session = ? AND (acceptance, ordinal) <= (?, ?)
             ORDER BY acceptance DESC, ordinal DESC LIMIT 1",
        )
        .bind(session)
        .bind(acceptance)
        .bind(ordinal)
        .fetch_optional(connection)
        .await?;
        Ok(before.map_or(0, |position| position + 1))
    }

    /// Counts a stored turn.
    pub fn count(&mut self, turn: &AcceptedTurn) {
        let effective = turn.effective_time().timestamp_micros();
        self.turns += 1;
        self.started_at = self.started_at.min(turn.recorded_at.timestamp_micros());
        self.first_at = self.first_at.min(effective);
        self.last_at = self.last_at.max(effective);
    }

    /// Writes the row back.
    pub async fn save(&self, connection: &mut SqliteConnection) -> Outcome<()> {
        sqlx::query(
            "UPDATE sessions SET turns = ?, started_at = ?, first_at = ?, last_at = ? WHERE id = ?",
        )
        .bind(self.turns)
        .bind(self.started_at)
        .bind(self.first_at)
        .bind(self.last_at)
        .bind(self.id)
        .execute(connection)
        .await?;
        Ok(())
    }
}
