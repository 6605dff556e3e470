//! Writing a plan: one statement a table, whatever the number of rows.

use std::collections::BTreeMap;

use memfleet_columns::{from_kind, from_status, lookup_keys, term_key, to_json};
use memfleet_domain::derivation::{Conflict, Derivation, Status};
use memfleet_domain::ids::ConflictId;
use memfleet_domain::time::Timestamp;
use sqlx::PgConnection;

use super::plan::Plan;
use crate::failure::Outcome;
use crate::passages;
use crate::rows::{from_change_id, from_conflict_id, from_derivation_id, from_turn_id, from_u32};

pub async fn write(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    plan: &Plan<'_>,
) -> Outcome<()> {
    if plan.changes.is_empty() {
        return Ok(());
    }
    put_changes(connection, tenant, space, plan).await?;
    mark_reverted(connection, tenant, space, plan).await?;
    end(connection, tenant, space, plan).await?;
    passages::put(connection, tenant, space, &plan.passages).await?;
    put_versions(connection, tenant, space, plan).await?;
    let derivations = plan.versions.iter().map(|new| new.derivation);
    lineage(connection, tenant, space, derivations).await
}

/// Numbered in the order of the work. A change that is listed already comes with a history from
/// elsewhere and wrote other derivations too. It takes on what the history says of it, unless
/// callers decided about one of these, or one was known when a legal hold began.
async fn put_changes(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    plan: &Plan<'_>,
) -> Outcome<()> {
    let changes = || plan.changes.iter();
    sqlx::query(
        "INSERT INTO changes (tenant, space, id, document)
         SELECT $1, $2, id, document FROM unnest($3::uuid[], $4::text[]) WITH ORDINALITY AS new(id, document, place)
         ORDER BY place
         ON CONFLICT (tenant, space, id) DO UPDATE SET document = excluded.document WHERE NOT EXISTS (
             SELECT FROM derivations d JOIN spaces p ON p.tenant = d.tenant AND p.id = d.space
             WHERE d.tenant = $1 AND d.space = $2 AND d.written_by = changes.id AND (d.known_from < p.held_since OR EXISTS (
                 SELECT FROM derivations v JOIN changes c ON c.tenant = v.tenant AND c.space = v.space AND c.id = v.written_by
                 WHERE v.tenant = $1 AND v.space = $2 AND v.id = d.id
                     AND c.document::json ->> 'kind' IN ('corrected', 'reverted'))))",
    )
    .bind(tenant)
    .bind(space)
    .bind(column(changes(), |change| from_change_id(change.id)))
    .bind(column(changes(), to_json))
    .execute(connection)
    .await?;
    Ok(())
}

async fn mark_reverted(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    plan: &Plan<'_>,
) -> Outcome<()> {
    let changes = plan.changes.iter();
    let (reverted, by): (Vec<_>, Vec<_>) = changes
        .filter_map(|change| Some((from_change_id(change.reverts?), from_change_id(change.id))))
        .unzip();
    if reverted.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE changes c SET reverted_by = r.by FROM unnest($3::uuid[], $4::uuid[]) AS r(id, by)
         WHERE c.tenant = $1 AND c.space = $2 AND c.id = r.id",
    )
    .bind(tenant)
    .bind(space)
    .bind(reverted)
    .bind(by)
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends the versions that are current.
async fn end(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    plan: &Plan<'_>,
) -> Outcome<()> {
    if plan.ended.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE derivations d SET known_until = greatest(d.known_from, e.at) FROM unnest($3::uuid[], $4::bigint[]) AS e(id, at)
         WHERE d.tenant = $1 AND d.space = $2 AND d.id = e.id AND d.known_until IS NULL",
    )
    .bind(tenant)
    .bind(space)
    .bind(column(plan.ended.keys(), |id| from_derivation_id(*id)))
    .bind(column(plan.ended.values(), |at| *at))
    .execute(connection)
    .await?;
    Ok(())
}

async fn put_versions(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    plan: &Plan<'_>,
) -> Outcome<()> {
    let versions = || plan.versions.iter();
    let derivations = || versions().map(|new| new.derivation);
    let micros = |time: Option<Timestamp>| time.map(|time| time.timestamp_micros());
    sqlx::query(
        "INSERT INTO derivations (tenant, space, id, first, change, known_from, known_until, valid_from, valid_until, subject,
             attribute, written_by, succeeded_by, version, passage, kind, document)
         SELECT $1, $2, * FROM unnest($3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
             $9::bigint[], $10::bigint[], $11::bigint[], $12::uuid[], $13::uuid[], $14::integer[], $15::integer[],
             $16::smallint[], $17::text[])",
    )
    .bind(tenant)
    .bind(space)
    .bind(column(derivations(), |derivation| from_derivation_id(derivation.id)))
    .bind(column(versions(), |new| new.first))
    .bind(column(versions(), |new| new.change))
    .bind(column(versions(), |new| new.known_from))
    .bind(column(versions(), |new| new.known_until))
    .bind(column(derivations(), |derivation| micros(derivation.valid.start)))
    .bind(column(derivations(), |derivation| micros(derivation.valid.end)))
    .bind(column(derivations(), |derivation| lookup_keys(derivation).0.as_deref().map(term_key)))
    .bind(column(derivations(), |derivation| lookup_keys(derivation).1.map(term_key)))
    .bind(column(derivations(), |derivation| from_change_id(derivation.change)))
    .bind(column(derivations(), |derivation| derivation.succeeded_by.map(from_derivation_id)))
    .bind(from_u32(derivations().map(|derivation| derivation.version)))
    .bind(from_u32(versions().map(|new| new.passage)))
    .bind(column(derivations(), |derivation| from_kind(derivation.kind()) as i16))
    .bind(column(derivations(), to_json::<Derivation>))
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes which turns they draw on; what an earlier version drew on stays.
pub async fn lineage(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    derivations: impl Iterator<Item = &Derivation>,
) -> Outcome<()> {
    let (turns, drawing): (Vec<_>, Vec<_>) = derivations
        .flat_map(|derivation| {
            derivation
                .turns
                .iter()
                .map(move |turn| (turn, derivation.id))
        })
        .map(|(turn, id)| (from_turn_id(turn), from_derivation_id(id)))
        .unzip();
    sqlx::query(
        "INSERT INTO derivation_turns (tenant, space, turn, derivation)
         SELECT $1, $2, * FROM unnest($3::uuid[], $4::uuid[]) ON CONFLICT DO NOTHING",
    )
    .bind(tenant)
    .bind(space)
    .bind(turns)
    .bind(drawing)
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes conflicts that are not known, were settled and are there again, or were only possible;
/// whether there was one.
pub async fn find(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    found: &[Conflict],
) -> Outcome<bool> {
    if found.is_empty() {
        return Ok(false);
    }
    let noted = sqlx::query(
        "INSERT INTO conflicts (tenant, space, id, older, newer, status, document)
         SELECT $1, $2, id, older, newer, status, document
         FROM unnest($3::uuid[], $4::uuid[], $5::uuid[], $6::smallint[], $7::text[]) WITH ORDINALITY
             AS new(id, older, newer, status, document, place)
         ORDER BY place ON CONFLICT (tenant, space, id) DO UPDATE
             SET older = excluded.older, newer = excluded.newer, status = excluded.status, document = excluded.document
             WHERE conflicts.status = $9 OR (conflicts.status = $8 AND excluded.status <> $9)",
    )
    .bind(tenant)
    .bind(space)
    .bind(column(found, |conflict| from_conflict_id(conflict.id)))
    .bind(column(found, |conflict| from_derivation_id(conflict.older)))
    .bind(column(found, |conflict| from_derivation_id(conflict.newer)))
    .bind(column(found, |conflict| {
        from_status(conflict.status) as i16
    }))
    .bind(column(found, to_json::<Conflict>))
    .bind(from_status(Status::Settled) as i16)
    .bind(from_status(Status::Possible) as i16)
    .execute(connection)
    .await?;
    Ok(noted.rows_affected() > 0)
}

/// True where one of the conflicts that are to be settled or opened was dismissed meanwhile.
pub async fn are_dismissed(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    settled: &[(ConflictId, Status)],
) -> Outcome<bool> {
    let settled = settled.iter();
    let ids: Vec<_> = settled
        .filter(|(_, status)| *status != Status::Dismissed)
        .map(|(id, _)| from_conflict_id(*id))
        .collect();
    if ids.is_empty() {
        return Ok(false);
    }
    let are_dismissed = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM conflicts WHERE tenant = $1 AND space = $2 AND id = ANY ($3) AND status = $4)",
    )
    .bind(tenant)
    .bind(space)
    .bind(ids)
    .bind(from_status(Status::Dismissed) as i16)
    .fetch_one(connection)
    .await?;
    Ok(are_dismissed)
}

/// Notes what became of conflicts; whether that is news.
pub async fn settle(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    settled: &[(ConflictId, Status)],
) -> Outcome<bool> {
    // The last word counts.
    let settled: BTreeMap<ConflictId, Status> = settled.iter().copied().collect();
    if settled.is_empty() {
        return Ok(false);
    }
    let changed = sqlx::query(
        "UPDATE conflicts c SET status = s.status FROM unnest($3::uuid[], $4::smallint[]) AS s(id, status)
         WHERE c.tenant = $1 AND c.space = $2 AND c.id = s.id AND c.status <> s.status",
    )
    .bind(tenant)
    .bind(space)
    .bind(column(settled.keys(), |id| from_conflict_id(*id)))
    .bind(column(settled.values(), |status| from_status(*status) as i16))
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() > 0)
}

/// The counters of the space.
pub async fn save_space(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    head: i64,
    plan: &Plan<'_>,
) -> Outcome<()> {
    sqlx::query(
        "UPDATE spaces SET head = $3, next_passage = $4, embedded = coalesce(embedded, $5),
             second_embedded = coalesce(second_embedded, $6) WHERE tenant = $1 AND id = $2",
    )
    .bind(tenant)
    .bind(space)
    .bind(head)
    .bind(i64::from(plan.next_passage))
    .bind(plan.lacking.first)
    .bind(plan.lacking.second)
    .execute(connection)
    .await?;
    Ok(())
}

fn column<S, T>(rows: impl IntoIterator<Item = S>, value: impl Fn(S) -> T) -> Vec<T> {
    rows.into_iter().map(value).collect()
}
