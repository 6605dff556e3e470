//! Conversations without a name.

use memfleet_columns::{json, name, time, to_json};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SessionId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::conversations::{Ancestor, Conversation, FOUND, Sought};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;

/// Those that a request may belong to.
pub async fn find(
    connection: &mut PgConnection,
    tenant: &TenantId,
    sought: &Sought,
    now: Timestamp,
) -> Outcome<Vec<Conversation>> {
    let rows = sqlx::query(
        "WITH found AS (
             (SELECT c.session FROM unnest($4::text[]) WITH ORDINALITY AS k(key, place)
                 JOIN conversations c ON c.tenant = $1 AND c.space = $2 AND c.caller = $3 AND c.key = k.key
                 ORDER BY k.place, c.heard_at DESC LIMIT $7)
             UNION (SELECT session FROM conversations
                 WHERE tenant = $1 AND space = $2 AND caller = $3 AND opening = $5 ORDER BY heard_at DESC LIMIT $8)
             UNION (SELECT session FROM conversations
                 WHERE tenant = $1 AND space = $2 AND caller = $3 ORDER BY heard_at DESC LIMIT $9))
         SELECT c.session, c.opening, c.key, c.state, c.lineage, c.heard_at, c.expires_at
         FROM found JOIN conversations c ON c.tenant = $1 AND c.session = found.session
         WHERE c.expires_at > $6 ORDER BY c.heard_at DESC, c.session",
    )
    .bind(tenant.as_str())
    .bind(sought.owner.space.as_str())
    .bind(&sought.owner.caller)
    .bind(&sought.keys)
    .bind(&sought.opening)
    .bind(now.timestamp_micros())
    .bind(i64::from(FOUND[0]))
    .bind(i64::from(FOUND[1]))
    .bind(i64::from(FOUND[2]))
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| kept(row, sought)).collect()
}

fn kept(row: &PgRow, sought: &Sought) -> Outcome<Conversation> {
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
    connection: &mut PgConnection,
    tenant: &TenantId,
    conversation: &Conversation,
) -> Outcome<()> {
    let lineage = conversation.lineage.iter();
    let lineage: Vec<_> = lineage.map(|it| (&it.session, it.shared)).collect();
    sqlx::query(
        "INSERT INTO conversations (tenant, session, space, caller, opening, key, state, lineage, heard_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
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
pub async fn forget(connection: &mut PgConnection, scope: &Scope) -> Outcome<()> {
    sqlx::query(
        "UPDATE conversations SET state = '', opening = '', key = CASE WHEN key ~ '^[0-9a-f]' THEN '' ELSE key END
         WHERE tenant = $1 AND space = $2 AND (state <> '' OR opening <> '' OR key ~ '^[0-9a-f]')",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes all conversations of a space; whether there was one.
pub async fn of_space(connection: &mut PgConnection, scope: &Scope) -> Outcome<bool> {
    let gone = sqlx::query("DELETE FROM conversations WHERE tenant = $1 AND space = $2")
        .bind(scope.tenant.as_str())
        .bind(scope.space.as_str())
        .execute(connection)
        .await?;
    Ok(gone.rows_affected() > 0)
}
