//! From a scope to its row.

use memfleet_columns::{VectorSlots, json, space_key, time, to_json};
use memfleet_domain::Scope;
use memfleet_domain::space::{Locale, SpaceSettings};
use memfleet_ports::store::StoreError;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;

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
    /// It has a name, and is not an erased one.
    pub is_alive: bool,
    /// The last position of acceptance that a forget of the whole space covers.
    erased_acceptance: Option<i64>,
    /// Since when it is on legal hold.
    held_since: Option<i64>,
    /// True where only builds of before wrote passages: these name no embedding space here.
    is_unnamed: bool,
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
            Some(since) => Err(StoreError::Held { since }.into()),
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

    fn read(row: &PgRow) -> Outcome<Self> {
        Ok(Self {
            id: row.try_get(0)?,
            head: row.try_get(1)?,
            next_passage: row.try_get::<i64, _>(2)? as u32,
            is_alive: row.try_get(3)?,
            erased_acceptance: row.try_get(4)?,
            held_since: row.try_get(5)?,
            is_unnamed: row.try_get(10)?,
            slots: VectorSlots {
                first: row.try_get(6)?,
                second: row.try_get(7)?,
                serves_second: row.try_get(8)?,
                is_other_whole: row.try_get(9)?,
            },
        })
    }
}

/// The id of the space with the tenant `$1` and the key `$2`; null where it was never written to.
macro_rules! space_id {
    () => {
        "(SELECT id FROM spaces WHERE tenant = $1 AND key = $2)"
    };
}
pub(crate) use space_id;

macro_rules! select_row {
    ($($more:literal)?) => {
        concat!(
            "SELECT id, head, next_passage, name IS NOT NULL, erased_acceptance, held_since, embedding, second_embedding,
                 serves_second, is_other_whole,
                 embedding IS NULL AND second_embedding IS NULL AND embedded IS NULL AND next_passage > 0"
            $(, $more)?,
            " FROM spaces WHERE tenant = $1 AND key = $2"
        )
    };
}

/// With the embedding space of its vectors, where a replica of a version before made the space
/// while the fleet was upgraded: that of its newest turn. Not part of the statement that locks the
/// row, which servers may look at again while others write.
async fn named(
    connection: &mut PgConnection,
    tenant: &str,
    row: Option<&PgRow>,
) -> Outcome<Option<SpaceRow>> {
    let Some(mut space) = row.map(SpaceRow::read).transpose()? else {
        return Ok(None);
    };
    if space.is_unnamed {
        space.slots.first = sqlx::query_scalar(
            "SELECT embedding FROM turns WHERE tenant = $1 AND space = $2 AND embedding IS NOT NULL
             ORDER BY change DESC LIMIT 1",
        )
        .bind(tenant)
        .bind(space.id)
        .fetch_optional(connection)
        .await?;
    }
    Ok(Some(space))
}

/// The space's row, if it was ever written to.
pub async fn find(connection: &mut PgConnection, scope: &Scope) -> Outcome<Option<SpaceRow>> {
    let row = sqlx::query(select_row!())
        .bind(scope.tenant.as_str())
        .bind(space_key(scope))
        .fetch_optional(&mut *connection)
        .await?;
    named(connection, scope.tenant.as_str(), row.as_ref()).await
}

/// The space's row and how its text is read, if it is there and was not forgotten.
pub async fn find_locale(
    connection: &mut PgConnection,
    scope: &Scope,
) -> Outcome<Option<(SpaceRow, Locale)>> {
    let row = sqlx::query(select_row!(", settings, language"))
        .bind(scope.tenant.as_str())
        .bind(space_key(scope))
        .fetch_optional(&mut *connection)
        .await?;
    let space = named(connection, scope.tenant.as_str(), row.as_ref()).await?;
    let (Some(row), Some(space)) = (row, space.filter(|space| space.is_alive)) else {
        return Ok(None);
    };
    let settings: SpaceSettings = json(row.try_get(11)?)?;
    let first: Option<String> = row.try_get(12)?;
    let locale = Locale {
        language: settings.language.or(first),
        time_zone: settings.time_zone,
    };
    Ok(Some((space, locale)))
}

/// The space's row, if it is there and was not forgotten.
pub async fn find_alive(connection: &mut PgConnection, scope: &Scope) -> Outcome<Option<SpaceRow>> {
    Ok(find(connection, scope)
        .await?
        .filter(|space| space.is_alive))
}

/// The row as it is, alive or not, and nobody else writes to the space until the transaction ends.
pub async fn lock(connection: &mut PgConnection, scope: &Scope) -> Outcome<Option<SpaceRow>> {
    let row = sqlx::query(concat!(select_row!(), " FOR UPDATE"))
        .bind(scope.tenant.as_str())
        .bind(space_key(scope))
        .fetch_optional(&mut *connection)
        .await?;
    named(connection, scope.tenant.as_str(), row.as_ref()).await
}

/// The same, with a row that is made where there is none: like that of an erased space, until somebody names it.
pub async fn lock_or_make(connection: &mut PgConnection, scope: &Scope) -> Outcome<SpaceRow> {
    if let Some(space) = lock(connection, scope).await? {
        return Ok(space);
    }
    sqlx::query(
        "INSERT INTO spaces (tenant, key, settings, created_at) VALUES ($1, $2, $3, 0) ON CONFLICT (tenant, key) DO NOTHING",
    )
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(to_json(&SpaceSettings::default()))
    .execute(&mut *connection)
    .await?;
    let row = sqlx::query(concat!(select_row!(), " FOR UPDATE"))
        .bind(scope.tenant.as_str())
        .bind(space_key(scope))
        .fetch_one(connection)
        .await?;
    SpaceRow::read(&row)
}
