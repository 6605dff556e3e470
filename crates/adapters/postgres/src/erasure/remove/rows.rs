//! The rows of turns, and all that hangs on them.

use memfleet_columns::{json, label, runs};
use memfleet_domain::turn::Metadata;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::erasure::find::Doomed;
use crate::failure::Outcome;
use crate::passages;
use crate::rows::id_list;

pub async fn remove(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    doomed: &Doomed,
) -> Outcome<()> {
    if doomed.turns.is_empty() {
        return Ok(());
    }
    let turns = doomed.turns.iter();
    let runs = runs(turns.map(|turn| (turn.first_passage, turn.passages)));
    passages::remove(connection, tenant, space, runs).await?;
    let ids = id_list(doomed.turns.iter().map(|turn| &turn.id));
    // A newer version that stays must not name what is gone.
    sqlx::query(
        "UPDATE turns SET replaces = NULL WHERE tenant = $1 AND space = $2 AND replaces = ANY ($3)",
    )
    .bind(tenant)
    .bind(space)
    .bind(&ids)
    .execute(&mut *connection)
    .await?;
    remove_turns(connection, tenant, space, &ids).await?;
    remove_sessions(connection, tenant, space, doomed).await
}

/// With their labels, which are found by what they say.
async fn remove_turns(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    ids: &[Uuid],
) -> Outcome<()> {
    let rows = sqlx::query(
        "DELETE FROM turns WHERE tenant = $1 AND space = $2 AND id = ANY ($3) RETURNING id, metadata",
    )
    .bind(tenant)
    .bind(space)
    .bind(ids)
    .fetch_all(&mut *connection)
    .await?;
    let (mut labels, mut turns): (Vec<i64>, Vec<Uuid>) = (Vec::new(), Vec::new());
    for row in rows {
        let Some(metadata) = row.try_get::<Option<&str>, _>(1)? else {
            continue;
        };
        for (key, value) in json::<Metadata>(metadata)? {
            labels.push(label(&key, &value));
            turns.push(row.try_get(0)?);
        }
    }
    sqlx::query(
        "DELETE FROM labels l USING unnest($3::bigint[], $4::uuid[]) AS gone(label, turn)
         WHERE l.tenant = $1 AND l.space = $2 AND l.label = gone.label AND l.turn = gone.turn",
    )
    .bind(tenant)
    .bind(space)
    .bind(labels)
    .bind(turns)
    .execute(connection)
    .await?;
    Ok(())
}

/// Sessions that are empty now go; the others lose their turns, and their times are looked for
/// among what is left.
async fn remove_sessions(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    doomed: &Doomed,
) -> Outcome<()> {
    let emptied = doomed.emptied.iter().map(|(id, _)| *id);
    sqlx::query("DELETE FROM sessions WHERE tenant = $1 AND space = $2 AND id = ANY ($3)")
        .bind(tenant)
        .bind(space)
        .bind(emptied.collect::<Vec<_>>())
        .execute(&mut *connection)
        .await?;
    let (thinned, gone): (Vec<i64>, Vec<i64>) = doomed.thinned.iter().copied().unzip();
    sqlx::query(
        "UPDATE sessions s SET turns = s.turns - thinned.gone,
             started_at = (SELECT min(recorded_at) FROM turns t WHERE t.tenant = $1 AND t.space = $2 AND t.session = s.id),
             first_at = (SELECT min(coalesce(event_time, recorded_at)) FROM turns t
                 WHERE t.tenant = $1 AND t.space = $2 AND t.session = s.id),
             last_at = (SELECT max(coalesce(event_time, recorded_at)) FROM turns t
                 WHERE t.tenant = $1 AND t.space = $2 AND t.session = s.id)
         FROM unnest($3::bigint[], $4::bigint[]) AS thinned(id, gone)
         WHERE s.tenant = $1 AND s.space = $2 AND s.id = thinned.id",
    )
    .bind(tenant)
    .bind(space)
    .bind(thinned)
    .bind(gone)
    .execute(connection)
    .await?;
    Ok(())
}
