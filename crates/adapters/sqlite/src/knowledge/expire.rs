//! Versions that hold no longer and are past their time go, as [`Erasure::expire`](memfleet_ports::erasure::Erasure::expire) has it.

use memfleet_columns::to_json;
use sqlx::SqliteConnection;

use super::forget::{bury, remove, remove_changes, remove_passages};
use crate::failure::Outcome;
use crate::scope::SpaceRow;

/// Removes about `most` versions that ceased to be current before an instant, and as many facts and episodes of which the last one
/// did; how many versions that were.
pub async fn superseded(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    before: i64,
    most: u32,
) -> Outcome<u64> {
    let versions = earlier(connection, space.id, before, most).await?;
    Ok(versions + whole(connection, space, before, most).await?)
}

/// Versions before one that was current at the instant already and that no conflict made: a forget of what made it would need the
/// version before. So what is left of a history are always its last versions.
async fn earlier(
    connection: &mut SqliteConnection,
    space: i64,
    before: i64,
    most: u32,
) -> Outcome<u64> {
    let removed: Vec<(i64, String)> = sqlx::query_as(
        "DELETE FROM derivations WHERE key IN (
             SELECT d.key FROM derivations d WHERE d.space = ?1 AND d.known_until < ?2 AND EXISTS (
                 SELECT 1 FROM derivations l WHERE l.space = ?1 AND l.id = d.id AND l.version > d.version
                     AND l.succeeded_by IS NULL AND l.known_from < ?2)
             ORDER BY d.id, d.version LIMIT ?3)
         RETURNING passage, hex(written_by)",
    )
    .bind(space)
    .bind(before)
    .bind(most)
    .fetch_all(&mut *connection)
    .await?;
    let versions = removed.len() as u64;
    let (passages, writers): (Vec<_>, Vec<_>) = removed.into_iter().unzip();
    remove_passages(connection, space, &passages).await?;
    remove_changes(connection, space, &to_json(&writers)).await?;
    Ok(versions)
}

/// Facts and episodes that hold no longer, with all their versions; indexes hear of it.
async fn whole(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    before: i64,
    most: u32,
) -> Outcome<u64> {
    // An interval that had ended when its first version was written was told as past: it says what was, and nothing took its place.
    // What a caller said last stays. Conditions on text, as in the other store: what somebody said has its quotes escaped.
    let doomed: Vec<(String, i64)> = sqlx::query_as(
        r#"SELECT hex(d.id), (SELECT count(*) FROM derivations v WHERE v.space = ?1 AND v.id = d.id)
         FROM derivations d WHERE d.space = ?1 AND d.known_until IS NULL AND d.known_from < ?2
             AND d.valid_until IS NOT NULL AND (d.valid_until < ?2 OR d.valid_until <= d.valid_from)
             AND (d.version > 1 OR d.valid_until > d.known_from)
             AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.space = ?1 AND c.id = d.written_by
                 AND (c.document LIKE '%"kind":"corrected"%' OR c.document LIKE '%"kind":"reverted"%'))
             AND NOT EXISTS (SELECT 1 FROM derivations o WHERE o.space = ?1 AND o.succeeded_by = d.id)
         ORDER BY d.first LIMIT ?3"#,
    )
    .bind(space.id)
    .bind(before)
    .bind(most)
    .fetch_all(&mut *connection)
    .await?;
    if doomed.is_empty() {
        return Ok(0);
    }
    let versions: i64 = doomed.iter().map(|(_, versions)| versions).sum();
    let ids: Vec<_> = doomed.into_iter().map(|(id, _)| id).collect();
    let count = ids.len() as i64;
    let ids = to_json(&ids);
    remove(connection, space.id, &ids).await?;
    bury(connection, space.id, space.head, &ids).await?;
    sqlx::query("UPDATE spaces SET head = ? WHERE id = ?")
        .bind(space.head + count)
        .bind(space.id)
        .execute(connection)
        .await?;
    Ok(versions.cast_unsigned())
}
