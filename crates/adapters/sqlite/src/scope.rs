//! From a scope to its row.

use memfleet_columns::{VectorSlots, space_key, time, to_json};
use memfleet_domain::Scope;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::time::Timestamp;
use memfleet_ports::store::StoreError;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::{Failure, Outcome};

/// The row of a space, alive or erased.
#[derive(Debug, Clone, Copy)]
pub struct SpaceRow {
    pub id: i64,
    /// The last change sequence given out.
    pub head: i64,
    /// The next passage number.
    pub next_passage: u32,
    /// Where its vectors are.
    pub slots: VectorSlots,
    /// The last position of acceptance that a forget of the whole space covers.
    erased_acceptance: Option<i64>,
    /// Since when it is on legal hold.
    held_since: Option<i64>,
}

impl SpaceRow {
    /// Whether the space was forgotten as a whole after this acceptance.
    pub fn is_erased_since(&self, acceptance: i64) -> bool {
        self.erased_acceptance
            .is_some_and(|last| acceptance <= last)
    }

    pub fn is_held(&self) -> bool {
        self.held_since.is_some()
    }

    /// Refuses what would remove something of a space on hold.
    pub fn refuse_hold(&self) -> Outcome<()> {
        match self.held_since.map(time).transpose()? {
            Some(since) => Err(Failure(StoreError::Held { since })),
            None => Ok(()),
        }
    }

    /// Refuses what would take the place of something that was known before a hold began.
    pub fn refuse_hold_since(&self, known_from: Option<i64>) -> Outcome<()> {
        let is_older = |since: i64| known_from.is_some_and(|at| at < since);
        match self.held_since.is_some_and(is_older) {
            true => self.refuse_hold(),
            false => Ok(()),
        }
    }

    /// From `columns!`.
    fn read(row: &SqliteRow) -> Outcome<Self> {
        Ok(Self {
            id: row.try_get(0)?,
            head: row.try_get(1)?,
            next_passage: row.try_get(2)?,
            erased_acceptance: row.try_get(3)?,
            held_since: row.try_get(4)?,
            slots: VectorSlots {
                first: row.try_get(5)?,
                second: row.try_get(6)?,
                serves_second: row.try_get(7)?,
                is_other_whole: row.try_get(8)?,
            },
        })
    }
}

/// The columns of a [`SpaceRow`].
macro_rules! columns {
    () => {
        "id, head, next_passage, erased_acceptance, held_since, embedding, second_embedding, serves_second, is_other_whole"
    };
}

/// The space's row, if it was ever written to.
pub async fn find(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<Option<SpaceRow>> {
    let row = sqlx::query(concat!("SELECT ", columns!(), " FROM spaces WHERE key = ?"))
        .bind(space_key(scope))
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(SpaceRow::read).transpose()
}

/// The space's row, unless it was forgotten as a whole.
pub async fn find_alive(
    connection: &mut SqliteConnection,
    scope: &Scope,
) -> Outcome<Option<SpaceRow>> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM spaces WHERE key = ? AND name IS NOT NULL"
    ))
    .bind(space_key(scope))
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(SpaceRow::read).transpose()
}

/// The space's row, made (or revived) where the space does not exist.
pub async fn ensure(
    connection: &mut SqliteConnection,
    scope: &Scope,
    now: Timestamp,
) -> Outcome<SpaceRow> {
    let row = sqlx::query(concat!(
        "INSERT INTO spaces (key, tenant, name, settings, created_at) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (key) DO UPDATE SET
             created_at = iif(tenant IS NULL, excluded.created_at, created_at),
             tenant = excluded.tenant,
             name = excluded.name
         RETURNING ",
        columns!()
    ))
    .bind(space_key(scope))
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .bind(to_json(&SpaceSettings::default()))
    .bind(now.timestamp_micros())
    .fetch_one(connection)
    .await?;
    SpaceRow::read(&row)
}
