//! Retention: what the settings of a space mean at an instant, a step at a time.

use memfleet_columns::{json, name, space_key};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId, TurnId};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_ports::erasure::{Cutoff, Erased};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::undelivered::Matching;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::{find, remove};
use crate::failure::Outcome;
use crate::knowledge::expire as knowledge;
use crate::rows::to_turn_id;
use crate::scope;
use crate::store::PostgresStore;

/// What the settings of a space mean; nothing of one that is not there or on hold.
pub async fn cutoff(store: &PostgresStore, scope: &Scope, now: Timestamp) -> Outcome<Cutoff> {
    let mut read = store.read(&scope.tenant).await?;
    let settings: Option<String> = sqlx::query_scalar(
        "SELECT settings FROM spaces WHERE tenant = $1 AND key = $2 AND name IS NOT NULL AND held_since IS NULL",
    )
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .fetch_optional(&mut *read)
    .await?;
    match settings {
        Some(settings) => Ok(Cutoff::of(&json::<SpaceSettings>(&settings)?, now)),
        None => Ok(Cutoff::default()),
    }
}

/// Turns from before the period, stored or not.
pub fn past(before: Timestamp) -> TurnFilter {
    TurnFilter {
        time: TimeRange {
            start: None,
            end: Some(before),
        },
        include_replaced: true,
        ..TurnFilter::default()
    }
}

/// The part of the ledger in one step, on a space that is locked.
pub async fn expire(
    connection: &mut PgConnection,
    scope: &Scope,
    cutoff: &Cutoff,
    undelivered: Matching,
    given_out: i64,
    most: u32,
) -> Outcome<Erased> {
    let space = scope::lock(connection, scope).await?;
    let Some(space) = space.filter(|space| space.is_alive && !space.is_held()) else {
        return Ok(Erased::default());
    };
    let turns = match cutoff.has_turns() {
        true => oldest(connection, scope, space.id, cutoff, most).await?,
        false => Vec::new(),
    };
    let turns = match turns.is_empty() {
        true => Vec::new(),
        false => {
            let filter = TurnFilter {
                turns,
                include_replaced: true,
                ..TurnFilter::default()
            };
            find::turns(connection, scope.tenant.as_str(), space.id, &filter).await?
        }
    };
    let doomed = find::doom(connection, scope, Some(space), turns, undelivered, false).await?;
    let mut erased = doomed.erased();
    if doomed.is_something() {
        remove::remove(connection, scope, &doomed, given_out).await?;
    }
    // As it is after that.
    if let Some(before) = cutoff.versions_before
        && let Some(space) = scope::find_alive(connection, scope).await?
    {
        let before = before.timestamp_micros();
        erased.versions = knowledge::superseded(connection, scope, space, before, most).await?;
    }
    Ok(erased)
}

/// The oldest turns that are past the period or too many: both mean the first ones by time, the one or the other more of them.
async fn oldest(
    connection: &mut PgConnection,
    scope: &Scope,
    space: i64,
    cutoff: &Cutoff,
    most: u32,
) -> Outcome<Vec<TurnId>> {
    let tenant = scope.tenant.as_str();
    let excess = match cutoff.turns_kept {
        Some(kept) => stored(connection, tenant, space).await? - i64::from(kept),
        None => 0,
    };
    let first: Vec<(Uuid, i64)> = sqlx::query_as(
        "SELECT id, coalesce(event_time, recorded_at) FROM turns WHERE tenant = $1 AND space = $2
         ORDER BY coalesce(event_time, recorded_at), acceptance, ordinal LIMIT $3",
    )
    .bind(tenant)
    .bind(space)
    .bind(i64::from(most))
    .fetch_all(connection)
    .await?;
    let doomed = cutoff.doomed(first, excess);
    Ok(doomed.map(to_turn_id).collect())
}

async fn stored(connection: &mut PgConnection, tenant: &str, space: i64) -> Outcome<i64> {
    let turns = sqlx::query_scalar(
        "SELECT coalesce(sum(turns), 0)::bigint FROM sessions WHERE tenant = $1 AND space = $2",
    );
    Ok(turns.bind(tenant).bind(space).fetch_one(connection).await?)
}

/// A space with a retention and without a hold.
pub struct Retained {
    pub scope: Scope,
    cutoff: Cutoff,
    /// The event time, else recorded time, of its first turn.
    oldest: Option<i64>,
    turns: i64,
}

impl Retained {
    /// Whether dead letters may be past its period.
    pub fn has_period(&self) -> bool {
        self.cutoff.turns_before.is_some()
    }

    /// Whether it has turns to remove. What of its derived memory is past its time shows when it is looked at.
    pub fn is_due(&self) -> bool {
        let before = self.cutoff.turns_before;
        let before = before.map(|before| before.timestamp_micros());
        let is_past = before
            .zip(self.oldest)
            .is_some_and(|(b, oldest)| oldest < b);
        let kept = self.cutoff.turns_kept.map(i64::from);
        is_past
            || kept.is_some_and(|kept| self.turns > kept)
            || self.cutoff.versions_before.is_some()
    }
}

/// Every one of them, of all tenants.
pub async fn retained(store: &PostgresStore, now: Timestamp) -> Outcome<Vec<Retained>> {
    let rows = sqlx::query(
        "SELECT tenant, name, retention_days, retention_turns, retention_superseded_days, oldest, turns FROM spaces_to_expire()",
    )
    .fetch_all(&mut *store.sweep().await?)
    .await?;
    rows.iter()
        .map(|row| {
            let number = |index: usize| -> Outcome<Option<u32>> {
                let number: Option<i64> = row.try_get(index)?;
                Ok(number.map(|number| number as u32))
            };
            let settings = SpaceSettings {
                retention_days: number(2)?,
                retention_turns: number(3)?,
                retention_superseded_days: number(4)?,
                ..SpaceSettings::default()
            };
            Ok(Retained {
                scope: Scope {
                    tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
                    space: name(SpaceId::new(row.try_get::<&str, _>(1)?))?,
                },
                cutoff: Cutoff::of(&settings, now),
                oldest: row.try_get(5)?,
                turns: row.try_get(6)?,
            })
        })
        .collect()
}
