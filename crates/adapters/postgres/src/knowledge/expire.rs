//! Versions that hold no longer and are past their time go, as [`Erasure::expire`](memfleet_ports::erasure::Erasure::expire) has it.
//! The space is locked.

use memfleet_domain::Scope;
use memfleet_ports::outbox::Kind;
use sqlx::PgConnection;
use uuid::Uuid;

use super::forget::{Forgetting, Removed};
use crate::failure::Outcome;
use crate::outbox;
use crate::scope::SpaceRow;

/// Removes about `most` versions that ceased to be current before an instant, and as many facts and episodes of which the last one
/// did; how many versions that were.
pub async fn superseded(
    connection: &mut PgConnection,
    scope: &Scope,
    space: SpaceRow,
    before: i64,
    most: u32,
) -> Outcome<u64> {
    let mut forgetting = Forgetting {
        connection,
        tenant: scope.tenant.as_str(),
        space,
    };
    let versions = earlier(&mut forgetting, before, most).await?;
    let (whole, ids) = whole(&mut forgetting, before, most).await?;
    if ids.is_empty() {
        return Ok(versions);
    }
    let head = forgetting.bury(&ids).await?;
    sqlx::query("UPDATE spaces SET head = $3 WHERE tenant = $1 AND id = $2")
        .bind(forgetting.tenant)
        .bind(space.id)
        .bind(head)
        .execute(&mut *forgetting.connection)
        .await?;
    outbox::note(connection, scope, Kind::Forgotten, space.head, head).await?;
    Ok(versions + whole)
}

/// Versions before one that was current at the instant already and that no conflict made: a forget of what made it would need the
/// version before. So what is left of a history are always its last versions.
async fn earlier(forgetting: &mut Forgetting<'_>, before: i64, most: u32) -> Outcome<u64> {
    let rows = sqlx::query(
        "DELETE FROM derivations d USING (
             SELECT o.id, o.version FROM derivations o
             WHERE o.tenant = $1 AND o.space = $2 AND o.known_until < $3 AND EXISTS (
                 SELECT FROM derivations l WHERE l.tenant = $1 AND l.space = $2 AND l.id = o.id AND l.version > o.version
                     AND l.succeeded_by IS NULL AND l.known_from < $3)
             ORDER BY o.id, o.version LIMIT $4) AS gone(id, version)
         WHERE d.tenant = $1 AND d.space = $2 AND d.id = gone.id AND d.version = gone.version
         RETURNING d.id, d.passage, d.written_by",
    )
    .bind(forgetting.tenant)
    .bind(forgetting.space.id)
    .bind(before)
    .bind(i64::from(most))
    .fetch_all(&mut *forgetting.connection)
    .await?;
    let removed = Removed::of(&rows)?;
    let versions = removed.versions;
    forgetting.sweep(removed).await?;
    Ok(versions)
}

/// Facts and episodes that hold no longer, with all their versions.
async fn whole(
    forgetting: &mut Forgetting<'_>,
    before: i64,
    most: u32,
) -> Outcome<(u64, Vec<Uuid>)> {
    // An interval that had ended when its first version was written was told as past: it says what was, and nothing took its place.
    // What a caller said last stays. Each is looked up by itself, as a plan that joins would read all of them. Documents are read as text: one may hold an escaped zero, which no JSON operator takes, and what
    // somebody said has its quotes escaped.
    let ids: Vec<Uuid> = sqlx::query_scalar(
        r#"SELECT d.id FROM derivations d
         WHERE d.tenant = $1 AND d.space = $2 AND d.known_until IS NULL AND d.known_from < $3
             AND d.valid_until IS NOT NULL AND (d.valid_until < $3 OR d.valid_until <= d.valid_from)
             AND (d.version > 1 OR d.valid_until > d.known_from)
             AND (SELECT true FROM changes c WHERE c.tenant = $1 AND c.space = $2 AND c.id = d.written_by
                 AND (c.document LIKE '%"kind":"corrected"%' OR c.document LIKE '%"kind":"reverted"%')) IS NULL
             AND (SELECT true FROM derivations o WHERE o.tenant = $1 AND o.space = $2 AND o.succeeded_by = d.id LIMIT 1) IS NULL
         ORDER BY d.first LIMIT $4"#,
    )
    .bind(forgetting.tenant)
    .bind(forgetting.space.id)
    .bind(before)
    .bind(i64::from(most))
    .fetch_all(&mut *forgetting.connection)
    .await?;
    if ids.is_empty() {
        return Ok((0, ids));
    }
    let rows = sqlx::query(
        "DELETE FROM derivations WHERE tenant = $1 AND space = $2 AND id = ANY ($3) RETURNING id, passage, written_by",
    )
    .bind(forgetting.tenant)
    .bind(forgetting.space.id)
    .bind(&ids)
    .fetch_all(&mut *forgetting.connection)
    .await?;
    let mut removed = Removed::of(&rows)?;
    let versions = removed.versions;
    let staged = forgetting.remove_staged(&ids).await?;
    removed.passages.extend(staged);
    forgetting.sweep(removed).await?;
    forgetting.remove_relations(&ids).await?;
    Ok((versions, ids))
}
