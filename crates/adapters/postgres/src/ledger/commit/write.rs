//! Writing a plan: one statement a table, whatever the number of rows.

mod turns;

use std::collections::HashMap;

use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use sqlx::{PgConnection, Row};

use super::plan::Plan;
use super::session::OpenSession;
use crate::failure::Outcome;
use crate::ledger::batches;
use crate::passages;
use crate::rows::{from_turn_id, id_list};
use crate::scope::SpaceRow;

/// `before` is the space as it was loaded.
pub async fn write(
    connection: &mut PgConnection,
    scope: &Scope,
    before: SpaceRow,
    plan: &Plan<'_>,
) -> Outcome<()> {
    let target = Target {
        tenant: scope.tenant.as_str(),
        space: before.id,
    };
    if !plan.turns.is_empty() {
        let sessions = save_sessions(connection, target, plan).await?;
        turns::store(connection, target, plan, &sessions).await?;
        turns::store_labels(connection, target, plan).await?;
        let turns = plan.turns.iter();
        let new: Vec<_> = turns
            .flat_map(|new| {
                let numbered = (new.first_passage..).zip(new.passages);
                numbered.map(|(number, passage)| (number, passage, new.slot))
            })
            .collect();
        passages::put(connection, target.tenant, target.space, &new).await?;
        end(connection, target, plan).await?;
        move_up(connection, target, plan).await?;
        revive(connection, target, &plan.revived).await?;
    }
    let settled: Vec<_> = plan.settled.clone().into_iter().collect();
    batches::put(connection, target.tenant, target.space, &settled).await?;
    save_space(connection, scope, before, plan).await
}

/// Where the rows go.
#[derive(Clone, Copy)]
struct Target<'t> {
    tenant: &'t str,
    space: i64,
}

/// The ids of sessions by their names.
type SessionIds = HashMap<String, i64>;

/// Writes the sessions that got turns. New ones get their ids in the order in which they began.
async fn save_sessions(
    connection: &mut PgConnection,
    target: Target<'_>,
    plan: &Plan<'_>,
) -> Outcome<SessionIds> {
    let begun = plan.begun.iter().map(|name| (*name, &plan.sessions[*name]));
    let others = plan.sessions.iter();
    let others = others.filter(|(_, session)| session.is_changed() && !session.is_new);
    let (names, sessions): (Vec<_>, Vec<_>) = begun.chain(others).unzip();
    let column = |value: fn(&OpenSession) -> i64| {
        let values = sessions.iter().map(|session| value(session));
        values.collect::<Vec<_>>()
    };
    let rows = sqlx::query(
        "INSERT INTO sessions (tenant, space, name, turns, started_at, first_at, last_at)
         SELECT $1, $2, * FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
         ON CONFLICT (tenant, space, name) DO UPDATE SET
             turns = excluded.turns, started_at = excluded.started_at, first_at = excluded.first_at, last_at = excluded.last_at
         RETURNING name, id",
    )
    .bind(target.tenant)
    .bind(target.space)
    .bind(names.iter().map(|name| name.as_str()).collect::<Vec<_>>())
    .bind(column(|session| session.turns))
    .bind(column(|session| session.started_at))
    .bind(column(|session| session.first_at))
    .bind(column(|session| session.last_at))
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

/// Ends the validity of turns that were replaced.
async fn end(connection: &mut PgConnection, target: Target<'_>, plan: &Plan<'_>) -> Outcome<()> {
    if plan.ended.is_empty() {
        return Ok(());
    }
    let ended = || plan.ended.values();
    sqlx::query(
        "UPDATE turns t SET change = e.change, replaced_by = e.by, replaced_at = e.at
         FROM unnest($3::uuid[], $4::bigint[], $5::uuid[], $6::bigint[]) AS e(id, change, by, at)
         WHERE t.tenant = $1 AND t.space = $2 AND t.id = e.id",
    )
    .bind(target.tenant)
    .bind(target.space)
    .bind(id_list(plan.ended.keys()))
    .bind(ended().map(|(change, _)| *change).collect::<Vec<_>>())
    .bind(id_list(ended().map(|(_, replacement)| &replacement.by)))
    .bind(
        ended()
            .map(|(_, replacement)| replacement.at.timestamp_micros())
            .collect::<Vec<_>>(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Turns that were accepted later than new ones before them.
async fn move_up(
    connection: &mut PgConnection,
    target: Target<'_>,
    plan: &Plan<'_>,
) -> Outcome<()> {
    let moved = plan.sessions.values().flat_map(OpenSession::moved);
    let (ids, positions): (Vec<_>, Vec<_>) = moved
        .map(|place| (from_turn_id(&place.id), i64::from(place.position)))
        .unzip();
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE turns t SET position = m.position FROM unnest($3::uuid[], $4::bigint[]) AS m(id, position)
         WHERE t.tenant = $1 AND t.space = $2 AND t.id = m.id",
    )
    .bind(target.tenant)
    .bind(target.space)
    .bind(ids)
    .bind(positions)
    .execute(connection)
    .await?;
    Ok(())
}

/// A turn that was forgotten with its whole space and is sent again is a turn like any other.
async fn revive(
    connection: &mut PgConnection,
    target: Target<'_>,
    revived: &[TurnId],
) -> Outcome<()> {
    if revived.is_empty() {
        return Ok(());
    }
    sqlx::query("DELETE FROM forgotten WHERE tenant = $1 AND space = $2 AND id = ANY ($3)")
        .bind(target.tenant)
        .bind(target.space)
        .bind(id_list(revived))
        .execute(connection)
        .await?;
    Ok(())
}

/// The counters, and the name of a space that was not there.
async fn save_space(
    connection: &mut PgConnection,
    scope: &Scope,
    before: SpaceRow,
    plan: &Plan<'_>,
) -> Outcome<()> {
    let is_same = before.is_alive && before.head == plan.space.head;
    if is_same && plan.language.is_none() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE spaces SET head = $3, next_passage = $4, language = coalesce(language, $5), name = $6,
             accepted = greatest(accepted, $8),
             created_at = CASE WHEN name IS NULL THEN $7 ELSE created_at END,
             embedding = $9, embedded = coalesce(embedded, $10), second_embedded = coalesce(second_embedded, $11)
         WHERE tenant = $1 AND id = $2",
    )
    .bind(scope.tenant.as_str())
    .bind(before.id)
    .bind(plan.space.head)
    .bind(i64::from(plan.space.next_passage))
    .bind(plan.language)
    .bind(scope.space.as_str())
    .bind(plan.named_at.timestamp_micros())
    .bind(plan.accepted)
    .bind(plan.space.slots.first)
    .bind(plan.lacking.first)
    .bind(plan.lacking.second)
    .execute(connection)
    .await?;
    Ok(())
}
