//! Vectors of passages, and turns that wait for theirs.

use memfleet_columns::{name, to_json};
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};
use memfleet_domain::ids::{SpaceId, TenantId, TurnId};
use memfleet_ports::ledger::Unembedded;
use memfleet_ports::store::StoreError;
use sqlx::{Row, SqliteConnection};

use crate::failure::{Failure, Outcome};
use crate::passages;
use crate::rows::{self, BEHIND_TURN, turn_columns};
use crate::scope;

/// The number of an embedding space in this file.
pub async fn embedding_space(
    connection: &mut SqliteConnection,
    space: &EmbeddingSpace,
) -> Outcome<i64> {
    let name = to_json(space);
    if let Some(id) = find_embedding_space(connection, space).await? {
        return Ok(id);
    }
    let inserted =
        sqlx::query_scalar("INSERT INTO embedding_spaces (name) VALUES (?) RETURNING id");
    Ok(inserted.bind(name).fetch_one(connection).await?)
}

async fn find_embedding_space(
    connection: &mut SqliteConnection,
    space: &EmbeddingSpace,
) -> Outcome<Option<i64>> {
    let found = sqlx::query_scalar("SELECT id FROM embedding_spaces WHERE name = ?");
    Ok(found
        .bind(to_json(space))
        .fetch_optional(connection)
        .await?)
}

/// Turns without vectors in `space`, of any tenant.
pub async fn missing(
    connection: &mut SqliteConnection,
    space: &EmbeddingSpace,
    limit: u32,
) -> Outcome<Vec<Unembedded>> {
    let embedding = find_embedding_space(connection, space).await?.unwrap_or(0);
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        ", p.tenant, p.name, p.id, t.first_passage, t.passages
         FROM (SELECT key FROM turns WHERE embedding IS NULL
               UNION ALL SELECT key FROM turns WHERE embedding < ?1
               UNION ALL SELECT key FROM turns WHERE embedding > ?1 LIMIT ?2) AS waiting
         JOIN turns t ON t.key = waiting.key
         JOIN sessions s ON s.id = t.session
         JOIN spaces p ON p.id = t.space"
    ))
    .bind(embedding)
    .bind(limit)
    .fetch_all(&mut *connection)
    .await?;
    let mut unembedded = Vec::with_capacity(rows.len());
    for row in rows {
        let (first, count): (u32, u32) = (row.try_get("first_passage")?, row.try_get("passages")?);
        unembedded.push(Unembedded {
            scope: Scope {
                tenant: name(TenantId::new(row.try_get::<&str, _>(BEHIND_TURN)?))?,
                space: name(SpaceId::new(row.try_get::<&str, _>(BEHIND_TURN + 1)?))?,
            },
            turn: rows::turn(&row)?,
            first_passage: first,
            ranges: ranges(connection, row.try_get(BEHIND_TURN + 2)?, first, count).await?,
        });
    }
    Ok(unembedded)
}

async fn ranges(
    connection: &mut SqliteConnection,
    space: i64,
    first: u32,
    count: u32,
) -> Outcome<Vec<(u32, u32)>> {
    let first = passages::key(space, first);
    let rows =
        sqlx::query("SELECT start, length FROM passages WHERE key >= ? AND key < ? ORDER BY key")
            .bind(first)
            .bind(first + i64::from(count))
            .fetch_all(connection)
            .await?;
    rows.iter()
        .map(|row| {
            let (start, length): (u32, u32) = (row.try_get(0)?, row.try_get(1)?);
            Ok((start, start + length))
        })
        .collect()
}

/// Adds the vectors of a turn and lets the feed bring it again.
pub async fn attach(
    connection: &mut SqliteConnection,
    scope: &Scope,
    turn: TurnId,
    embedding: &EmbeddingSpace,
    vectors: &[PassageVectors],
) -> Outcome<()> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(());
    };
    let row =
        sqlx::query("SELECT key, first_passage, passages FROM turns WHERE space = ? AND id = ?")
            .bind(space.id)
            .bind(turn.as_bytes().as_slice())
            .fetch_optional(&mut *connection)
            .await?;
    let Some(row) = row else { return Ok(()) };
    let (key, first, count): (i64, u32, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if count != vectors.len() as i64 {
        return Err(Failure(StoreError::Unexpected(format!(
            "{} vectors were given for {count} passages",
            vectors.len()
        ))));
    }
    let numbered = (first..).zip(vectors);
    let keyed = numbered.map(|(number, vectors)| (passages::key(space.id, number), vectors));
    passages::put_vectors(connection, &keyed.collect::<Vec<_>>()).await?;
    let embedding = embedding_space(connection, embedding).await?;
    sqlx::query("UPDATE turns SET embedding = ?, change = ? WHERE key = ?")
        .bind(embedding)
        .bind(space.head + 1)
        .bind(key)
        .execute(&mut *connection)
        .await?;
    sqlx::query("UPDATE spaces SET head = head + 1 WHERE id = ?")
        .bind(space.id)
        .execute(connection)
        .await?;
    Ok(())
}
