//! Retention: what the settings of a space mean at an instant, a step at a time.

use std::collections::HashSet;

use memfleet_columns::{json, name, to_turn_id};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId, TurnId};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_ports::erasure::{Cutoff, Erased};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::undelivered::{Matching, Unreadable};
use sqlx::{Row, SqliteConnection};

use super::{Doomed, doom, find_turns, remove, undelivered};
use crate::failure::Outcome;
use crate::knowledge::expire as knowledge;
use crate::scope::{self, SpaceRow};

/// Removes what one step does; nothing of a space on hold.
pub async fn expire(
    connection: &mut SqliteConnection,
    scope: &Scope,
    now: Timestamp,
    most: u32,
) -> Outcome<Erased> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Erased::default());
    };
    if space.is_held() {
        return Ok(Erased::default());
    }
    let cutoff = Cutoff::of(&settings(connection, space.id).await?, now);
    let doomed = find(connection, scope, space, &cutoff, most).await?;
    let mut erased = doomed.erased();
    if doomed.is_something() {
        remove::remove(connection, scope, &doomed).await?;
    }
    // As it is after that.
    if let Some(before) = cutoff.versions_before
        && let Some(space) = scope::find_alive(connection, scope).await?
    {
        let before = before.timestamp_micros();
        erased.versions = knowledge::superseded(connection, space, before, most).await?;
    }
    Ok(erased)
}

async fn settings(connection: &mut SqliteConnection, space: i64) -> Outcome<SpaceSettings> {
    let settings: String = sqlx::query_scalar("SELECT settings FROM spaces WHERE id = ?")
        .bind(space)
        .fetch_one(connection)
        .await?;
    Ok(json(&settings)?)
}

/// The oldest turns that are past the period or too many, and what is undelivered from before the period.
async fn find(
    connection: &mut SqliteConnection,
    scope: &Scope,
    space: SpaceRow,
    cutoff: &Cutoff,
    most: u32,
) -> Outcome<Doomed> {
    let oldest = match cutoff.has_turns() {
        true => oldest(connection, space.id, cutoff, most).await?,
        false => Vec::new(),
    };
    let turns = match oldest.is_empty() {
        true => Vec::new(),
        false => {
            let filter = TurnFilter {
                turns: oldest,
                include_replaced: true,
                ..TurnFilter::default()
            };
            find_turns(connection, space.id, &filter).await?
        }
    };
    let stored = turns.iter().map(|turn| turn.id).collect();
    let undelivered = undelivered_before(connection, scope, cutoff, &stored).await?;
    doom(connection, Some(space), turns, undelivered, false).await
}

/// Undelivered turns from before the period, and copies of the stored turns that go.
async fn undelivered_before(
    connection: &mut SqliteConnection,
    scope: &Scope,
    cutoff: &Cutoff,
    stored: &HashSet<TurnId>,
) -> Outcome<Matching> {
    let Some(before) = cutoff.turns_before else {
        if stored.is_empty() {
            return Ok(Matching::default());
        }
        let none = Unreadable::Before(Timestamp::MIN_UTC);
        return undelivered::find(connection, scope, None, stored, none).await;
    };
    let filter = TurnFilter {
        time: TimeRange {
            start: None,
            end: Some(before),
        },
        include_replaced: true,
        ..TurnFilter::default()
    };
    let unreadable = Unreadable::Before(before);
    undelivered::find(connection, scope, Some(&filter), stored, unreadable).await
}

/// Both conditions mean the first turns by time, the one or the other more of them.
async fn oldest(
    connection: &mut SqliteConnection,
    space: i64,
    cutoff: &Cutoff,
    most: u32,
) -> Outcome<Vec<TurnId>> {
    let excess = match cutoff.turns_kept {
        Some(kept) => stored(connection, space).await? - i64::from(kept),
        None => 0,
    };
    let first: Vec<(Vec<u8>, i64)> = sqlx::query_as(
        "SELECT id, coalesce(event_time, recorded_at) FROM turns WHERE space = ?
         ORDER BY coalesce(event_time, recorded_at), acceptance, ordinal LIMIT ?",
    )
    .bind(space)
    .bind(most)
    .fetch_all(connection)
    .await?;
    let doomed = cutoff.doomed(first, excess);
    doomed.map(|id| Ok(to_turn_id(&id)?)).collect()
}

async fn stored(connection: &mut SqliteConnection, space: i64) -> Outcome<i64> {
    let turns = sqlx::query_scalar("SELECT coalesce(sum(turns), 0) FROM sessions WHERE space = ?");
    Ok(turns.bind(space).fetch_one(connection).await?)
}

/// Spaces that may have something to remove.
pub async fn expired(connection: &mut SqliteConnection, now: Timestamp) -> Outcome<Vec<Scope>> {
    let rows = sqlx::query(
        "SELECT id, tenant, name, settings, key FROM spaces WHERE name IS NOT NULL AND held_since IS NULL AND coalesce(
             settings ->> '$.retention_days', settings ->> '$.retention_turns', settings ->> '$.retention_superseded_days')
             IS NOT NULL ORDER BY tenant, name",
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut expired = Vec::new();
    for row in rows {
        let settings: SpaceSettings = json(row.try_get(3)?)?;
        let cutoff = Cutoff::of(&settings, now);
        if is_due(connection, row.try_get(0)?, row.try_get(4)?, &cutoff).await? {
            expired.push(Scope {
                tenant: name(TenantId::new(row.try_get::<&str, _>(1)?))?,
                space: name(SpaceId::new(row.try_get::<&str, _>(2)?))?,
            });
        }
    }
    Ok(expired)
}

async fn is_due(
    connection: &mut SqliteConnection,
    space: i64,
    key: &[u8],
    cutoff: &Cutoff,
) -> Outcome<bool> {
    let micros = |instant: Option<Timestamp>| instant.map(|instant| instant.timestamp_micros());
    let due: bool = sqlx::query_scalar(
        "SELECT (?2 IS NOT NULL AND (EXISTS (SELECT 1 FROM turns WHERE space = ?1 AND coalesce(event_time, recorded_at) < ?2)
                 OR EXISTS (SELECT 1 FROM dead_letters WHERE space_key = ?3)))
             OR (?4 IS NOT NULL AND (EXISTS (SELECT 1 FROM derivations WHERE space = ?1 AND known_until < ?4)
                 OR EXISTS (SELECT 1 FROM derivations WHERE space = ?1 AND known_until IS NULL AND valid_until IS NOT NULL
                     AND known_from < ?4)))",
    )
    .bind(space)
    .bind(micros(cutoff.turns_before))
    .bind(key)
    .bind(micros(cutoff.versions_before))
    .fetch_one(&mut *connection)
    .await?;
    let Some(kept) = cutoff.turns_kept else {
        return Ok(due);
    };
    Ok(due || stored(connection, space).await? > i64::from(kept))
}
