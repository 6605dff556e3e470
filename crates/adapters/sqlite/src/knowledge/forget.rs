//! What is derived from forgotten turns goes with them: all its versions, what it is found by, conflicts that name it, changes that
//! wrote nothing else. What such a derivation had closed is open again.

use memfleet_columns::{from_kind, to_json};
use memfleet_domain::derivation::Kind;
use memfleet_ports::knowledge::WINDOW;
use sqlx::SqliteConnection;

use crate::failure::Outcome;
use crate::graph;
use crate::passages::first_key;
use crate::scope::SpaceRow;

/// Those that draw on turns that are about to go (a JSON list of keys); the answer is the space's change sequence after it.
pub async fn of_turns(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    keys: &str,
) -> Outcome<i64> {
    let doomed: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT hex(derivation) FROM derivation_turns
         WHERE space = ?1 AND turn IN (SELECT id FROM turns WHERE key IN (SELECT value FROM json_each(?2)))",
    )
    .bind(space.id)
    .bind(keys)
    .fetch_all(&mut *connection)
    .await?;
    if doomed.is_empty() {
        return Ok(space.head);
    }
    let count = doomed.len() as i64;
    let doomed = to_json(&doomed);
    let neighbours = neighbours(connection, space.id, keys, &doomed).await?;
    let head = reopen(connection, space, &doomed).await?;
    remove(connection, space.id, &doomed).await?;
    // Who follows knows the turns of the last version alone, and an earlier one may have drawn on these.
    bury(connection, space.id, head, &doomed).await?;
    touch(connection, space.id, head + count, &neighbours).await
}

/// Writes a tombstone for each of these derivations (a JSON list of ids), in the changes after `head`.
pub(super) async fn bury(
    connection: &mut SqliteConnection,
    space: i64,
    head: i64,
    ids: &str,
) -> Outcome<()> {
    sqlx::query(
        "INSERT OR REPLACE INTO removed_derivations (space, id, change)
         SELECT ?1, unhex(value), ?2 + 1 + key FROM json_each(?3)",
    )
    .bind(space)
    .bind(head)
    .bind(ids)
    .execute(connection)
    .await?;
    Ok(())
}

/// Everything derived in a space.
pub async fn of_space(connection: &mut SqliteConnection, space: i64) -> Outcome<()> {
    for delete in [
        "DELETE FROM derivations WHERE space = ?",
        "DELETE FROM derivation_turns WHERE space = ?",
        "DELETE FROM changes WHERE space = ?",
        "DELETE FROM conflicts WHERE space = ?",
        "DELETE FROM progress WHERE space = ?",
        "DELETE FROM staged WHERE space = ?",
        "DELETE FROM removed_derivations WHERE space = ?",
    ] {
        sqlx::query(delete)
            .bind(space)
            .execute(&mut *connection)
            .await?;
    }
    graph::remove_all(connection, space).await
}

/// A version that ends because of what goes was never written: the one before it is current again.
async fn reopen(connection: &mut SqliteConnection, space: SpaceRow, doomed: &str) -> Outcome<i64> {
    let removed: Vec<(String, i64, String)> = sqlx::query_as(
        "DELETE FROM derivations WHERE space = ? AND succeeded_by IN (SELECT unhex(value) FROM json_each(?))
         RETURNING hex(id), passage, hex(written_by)",
    )
    .bind(space.id)
    .bind(doomed)
    .fetch_all(&mut *connection)
    .await?;
    if removed.is_empty() {
        return Ok(space.head);
    }
    let (mut reopened, mut passages, mut writers) = (Vec::new(), Vec::new(), Vec::new());
    for (id, passage, writer) in removed {
        reopened.push(id);
        passages.push(passage);
        writers.push(writer);
    }
    remove_passages(connection, space.id, &passages).await?;
    remove_changes(connection, space.id, &to_json(&writers)).await?;
    lengthen(connection, space.id, &to_json(&reopened)).await?;
    // An earlier version may have nothing in a place that was filled while a later one was current.
    sqlx::query(
        "UPDATE spaces SET embedded = iif(embedding IS NULL, embedded, coalesce(embedded, ?1)),
             second_embedded = iif(second_embedding IS NULL, NULL, coalesce(second_embedded, ?1)) WHERE id = ?2",
    )
    .bind(space.head)
    .bind(space.id)
    .execute(&mut *connection)
    .await?;
    // Each has a change number of its own, as pages of changes end between two of them.
    let opened = sqlx::query(
        "UPDATE derivations SET known_until = NULL, change = ?3 + latest.number FROM (
             SELECT d.key, row_number() OVER (ORDER BY d.first) AS number FROM derivations d
             WHERE d.space = ?1 AND d.id IN (SELECT unhex(value) FROM json_each(?2))
                 AND d.version = (SELECT max(version) FROM derivations o WHERE o.space = ?1 AND o.id = d.id)) AS latest
         WHERE derivations.key = latest.key",
    )
    .bind(space.id)
    .bind(to_json(&reopened))
    .bind(space.head)
    .execute(&mut *connection)
    .await?;
    Ok(space.head + opened.rows_affected() as i64)
}

/// Versions of these derivations (a JSON list of ids) that end before the next one came were current
/// until then.
async fn lengthen(connection: &mut SqliteConnection, space: i64, ids: &str) -> Outcome<()> {
    sqlx::query(
        "UPDATE derivations SET known_until = later.known_from FROM (
             SELECT d.key, lead(d.known_from) OVER (PARTITION BY d.id ORDER BY d.version) AS known_from FROM derivations d
             WHERE d.space = ?1 AND d.id IN (SELECT unhex(value) FROM json_each(?2))) AS later
         WHERE derivations.key = later.key AND derivations.known_until < later.known_from",
    )
    .bind(space)
    .bind(ids)
    .execute(connection)
    .await?;
    Ok(())
}

/// Those that no version is found by any more.
pub(super) async fn remove_passages(
    connection: &mut SqliteConnection,
    space: i64,
    passages: &[i64],
) -> Outcome<()> {
    for delete in [
        "DELETE FROM passages WHERE key IN (SELECT ?3 + value FROM json_each(?2) WHERE value NOT IN (
             SELECT passage FROM derivations WHERE space = ?1))",
        "DELETE FROM token_vectors WHERE key IN (SELECT ?3 + value FROM json_each(?2) WHERE value NOT IN (
             SELECT passage FROM derivations WHERE space = ?1))",
        "DELETE FROM second_vectors WHERE key IN (SELECT ?3 + value FROM json_each(?2) WHERE value NOT IN (
             SELECT passage FROM derivations WHERE space = ?1))",
    ] {
        sqlx::query(delete)
            .bind(space)
            .bind(to_json(&passages))
            .bind(first_key(space))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Derivations (a JSON list of ids) with all that belongs to them.
pub(super) async fn remove(
    connection: &mut SqliteConnection,
    space: i64,
    doomed: &str,
) -> Outcome<()> {
    let writers: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT hex(written_by) FROM derivations WHERE space = ? AND id IN (SELECT unhex(value) FROM json_each(?))",
    )
    .bind(space)
    .bind(doomed)
    .fetch_all(&mut *connection)
    .await?;
    for delete in [
        "DELETE FROM passages WHERE key IN (
             SELECT ?3 + passage FROM derivations WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2)))",
        "DELETE FROM token_vectors WHERE key IN (
             SELECT ?3 + passage FROM derivations WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2)))",
        "DELETE FROM second_vectors WHERE key IN (
             SELECT ?3 + passage FROM derivations WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2)))",
        "DELETE FROM conflicts WHERE space = ?1 AND (
             older IN (SELECT unhex(value) FROM json_each(?2)) OR newer IN (SELECT unhex(value) FROM json_each(?2)))",
        "DELETE FROM passages WHERE key IN (
             SELECT ?3 + passage FROM staged WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2)))",
        "DELETE FROM token_vectors WHERE key IN (
             SELECT ?3 + passage FROM staged WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2)))",
        "DELETE FROM second_vectors WHERE key IN (
             SELECT ?3 + passage FROM staged WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2)))",
        "DELETE FROM staged WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2))",
        "DELETE FROM derivation_turns WHERE space = ?1 AND derivation IN (SELECT unhex(value) FROM json_each(?2))",
        "DELETE FROM derivations WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2))",
    ] {
        sqlx::query(delete)
            .bind(space)
            .bind(doomed)
            .bind(first_key(space))
            .execute(&mut *connection)
            .await?;
    }
    graph::remove(connection, space, doomed).await?;
    remove_changes(connection, space, &to_json(&writers)).await
}

/// Those of these changes (a JSON list of ids) of which no version is left.
pub(super) async fn remove_changes(
    connection: &mut SqliteConnection,
    space: i64,
    writers: &str,
) -> Outcome<()> {
    sqlx::query(
        "DELETE FROM changes WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2)) AND NOT EXISTS (
             SELECT 1 FROM derivations d WHERE d.space = ?1 AND d.written_by = changes.id)",
    )
    .bind(space)
    .bind(writers)
    .execute(connection)
    .await?;
    Ok(())
}

/// The keys of turns that stay and may be read otherwise without those that go: those with which something was derived, a story
/// apart, and the next ones of the session, which were read in their light.
async fn neighbours(
    connection: &mut SqliteConnection,
    space: i64,
    keys: &str,
    doomed: &str,
) -> Outcome<Vec<i64>> {
    let neighbours = sqlx::query_scalar(
        "SELECT t.key FROM derivation_turns s JOIN turns t ON t.space = s.space AND t.id = s.turn
         WHERE s.space = ?1 AND s.derivation IN (SELECT unhex(value) FROM json_each(?3))
             AND s.derivation NOT IN (SELECT id FROM derivations
                 WHERE space = ?1 AND kind = ?4 AND id IN (SELECT unhex(value) FROM json_each(?3)))
             AND t.key NOT IN (SELECT value FROM json_each(?2))
         UNION
         SELECT near.value FROM turns g, json_each((SELECT json_group_array(key) FROM (
             SELECT n.key FROM turns n WHERE n.session = g.session AND (n.acceptance, n.ordinal) > (g.acceptance, g.ordinal)
                 AND n.replaced_by IS NULL
             ORDER BY n.acceptance, n.ordinal LIMIT ?5))) near
         WHERE g.key IN (SELECT value FROM json_each(?2)) AND near.value NOT IN (SELECT value FROM json_each(?2))",
    )
    .bind(space)
    .bind(keys)
    .bind(doomed)
    .bind(from_kind(Kind::Narrative))
    .bind(WINDOW)
    .fetch_all(connection)
    .await?;
    Ok(neighbours)
}

/// Has stages read these turns again, and the episodes that hold them, as changes after `head`; the change sequence after it. A rebuild that is under way
/// reads as far.
async fn touch(
    connection: &mut SqliteConnection,
    space: i64,
    head: i64,
    turns: &[i64],
) -> Outcome<i64> {
    let keys = to_json(&turns);
    let touched = sqlx::query(
        "UPDATE turns SET change = ?2 + 1 + touched.key FROM json_each(?1) AS touched WHERE turns.key = touched.value",
    )
    .bind(&keys)
    .bind(head)
    .execute(&mut *connection)
    .await?;
    let head = head + touched.rows_affected() as i64;
    let touched = sqlx::query(
        "UPDATE derivations SET change = ?2 + touched.number FROM (
             SELECT d.key, row_number() OVER (ORDER BY d.first) AS number FROM derivations d
             WHERE d.space = ?3 AND d.kind = ?4 AND d.known_until IS NULL AND d.id IN (
                 SELECT s.derivation FROM turns t JOIN derivation_turns s ON s.space = t.space AND s.turn = t.id
                 WHERE t.key IN (SELECT value FROM json_each(?1)))) AS touched
         WHERE derivations.key = touched.key",
    )
    .bind(&keys)
    .bind(head)
    .bind(space)
    .bind(from_kind(Kind::Episode))
    .execute(&mut *connection)
    .await?;
    let head = head + touched.rows_affected() as i64;
    sqlx::query("UPDATE progress SET goal = max(goal, ?2) WHERE space = ?1 AND goal IS NOT NULL")
        .bind(space)
        .bind(head)
        .execute(connection)
        .await?;
    Ok(head)
}
