//! Conversations without a name.

use memfleet_columns::{json, name, time, to_json};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SessionId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::conversations::{Ancestor, Conversation, FOUND, Sought};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;

/// Those that a request may belong to.
pub async fn find(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    sought: &Sought,
    now: Timestamp,
) -> Outcome<Vec<Conversation>> {
    let rows = sqlx::query(
        "SELECT session, opening, key, state, lineage, heard_at, expires_at FROM conversations
         WHERE expires_at > ?6 AND id IN (
             SELECT id FROM (SELECT c.id FROM json_each(?4) k
                 JOIN conversations c ON c.tenant = ?1 AND c.space = ?2 AND c.caller = ?3 AND c.key = k.value
                 ORDER BY k.key, c.heard_at DESC LIMIT ?7)
             UNION SELECT id FROM (SELECT id FROM conversations
                 WHERE tenant = ?1 AND space = ?2 AND caller = ?3 AND opening = ?5 ORDER BY heard_at DESC LIMIT ?8)
             UNION SELECT id FROM (SELECT id FROM conversations
                 WHERE tenant = ?1 AND space = ?2 AND caller = ?3 ORDER BY heard_at DESC LIMIT ?9))
         ORDER BY heard_at DESC, session",
    )
    .bind(tenant.as_str())
    .bind(sought.owner.space.as_str())
    .bind(&sought.owner.caller)
    .bind(to_json(&sought.keys))
    .bind(&sought.opening)
    .bind(now.timestamp_micros())
    .bind(FOUND[0])
    .bind(FOUND[1])
    .bind(FOUND[2])
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| kept(row, sought)).collect()
}

fn kept(row: &SqliteRow, sought: &Sought) -> Outcome<Conversation> {
    let lineage: Vec<(SessionId, u32)> = json(row.try_get(4)?)?;
    let ancestor = |(session, shared)| Ancestor { session, shared };
    Ok(Conversation {
        session: name(SessionId::new(row.try_get::<&str, _>(0)?))?,
        owner: sought.owner.clone(),
        opening: row.try_get(1)?,
        key: row.try_get(2)?,
        state: row.try_get(3)?,
        lineage: lineage.into_iter().map(ancestor).collect(),
        heard_at: time(row.try_get(5)?)?,
        expires_at: time(row.try_get(6)?)?,
    })
}

/// Writes a conversation in place of what is there.
pub async fn put(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    conversation: &Conversation,
) -> Outcome<()> {
    let lineage = conversation.lineage.iter();
    let lineage: Vec<_> = lineage.map(|it| (&it.session, it.shared)).collect();
    sqlx::query(
        "INSERT INTO conversations (tenant, session, space, caller, opening, key, state, lineage, heard_at, expires_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (tenant, session) DO UPDATE SET space = excluded.space, caller = excluded.caller, opening = excluded.opening,
             key = excluded.key, state = excluded.state, lineage = excluded.lineage, heard_at = excluded.heard_at,
             expires_at = excluded.expires_at",
    )
    .bind(tenant.as_str())
    .bind(conversation.session.as_str())
    .bind(conversation.owner.space.as_str())
    .bind(&conversation.owner.caller)
    .bind(&conversation.opening)
    .bind(&conversation.key)
    .bind(&conversation.state)
    .bind(to_json(&lineage))
    .bind(conversation.heard_at.timestamp_micros())
    .bind(conversation.expires_at.timestamp_micros())
    .execute(connection)
    .await?;
    Ok(())
}

/// Takes the digests of what was said in a space. What names a conversation and its last request stays, as ids do, where it has the key of
/// the space.
pub async fn forget(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<()> {
    sqlx::query(
        "UPDATE conversations SET state = '', opening = '', key = iif(key GLOB '[0-9a-f]*', '', key)
         WHERE tenant = ? AND space = ? AND (state <> '' OR opening <> '' OR key GLOB '[0-9a-f]*')",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes all conversations of a space; whether there was one.
pub async fn of_space(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<bool> {
    let gone = sqlx::query("DELETE FROM conversations WHERE tenant = ? AND space = ?")
        .bind(scope.tenant.as_str())
        .bind(scope.space.as_str())
        .execute(connection)
        .await?;
    Ok(gone.rows_affected() > 0)
}
