//! Vectors of passages, and turns that wait for theirs.

use std::collections::BTreeMap;

use memfleet_columns::{embedding_key, from_set, from_token_vectors, name};
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};
use memfleet_domain::ids::{SpaceId, TenantId, TurnId};
use memfleet_ports::ledger::Unembedded;
use memfleet_ports::store::StoreError;
use pgvector::HalfVector;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::failure::Outcome;
use crate::rows::{self, BEHIND_TURN, from_turn_id, join_sessions, to_u32, turn_columns};
use crate::scope;
use crate::store::PostgresStore;

/// Components as half-precision floats, which hold whole numbers up to 2,048 exactly. A vector without any has no place there.
pub fn from_sentence(components: &[i8]) -> Option<HalfVector> {
    let floats: Vec<f32> = components.iter().copied().map(f32::from).collect();
    (!floats.is_empty()).then(|| HalfVector::from_f32_slice(&floats))
}

/// The same components.
pub fn to_sentence(vector: &HalfVector) -> Vec<i8> {
    let components = vector.as_slice().iter();
    components
        .map(|component| component.to_f32() as i8)
        .collect()
}

/// Space and turn of those of a tenant that wait.
type Waiting = (Vec<i64>, Vec<Uuid>);

/// Turns without vectors in `space`, of any tenant.
pub async fn missing(
    store: &PostgresStore,
    space: &EmbeddingSpace,
    limit: u32,
) -> Outcome<Vec<Unembedded>> {
    let mut tenants: BTreeMap<String, Waiting> = BTreeMap::new();
    let rows = sqlx::query("SELECT tenant, space, id FROM turns_without_vectors($1, $2)")
        .bind(embedding_key(space))
        .bind(i64::from(limit))
        .fetch_all(&mut *store.sweep().await?)
        .await?;
    for row in rows {
        let (spaces, ids) = tenants.entry(row.try_get(0)?).or_default();
        spaces.push(row.try_get(1)?);
        ids.push(row.try_get(2)?);
    }
    let mut unembedded = Vec::new();
    for (tenant, waiting) in tenants {
        let tenant = name(TenantId::new(tenant))?;
        let mut read = store.read(&tenant).await?;
        unembedded.extend(of_tenant(&mut read, &tenant, waiting).await?);
    }
    Ok(unembedded)
}

async fn of_tenant(
    connection: &mut PgConnection,
    tenant: &TenantId,
    (spaces, ids): Waiting,
) -> Outcome<Vec<Unembedded>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        ", p.name, t.first_passage, ranges.starts, ranges.lengths
         FROM unnest($2::bigint[], $3::uuid[]) AS waiting(space, id)
         JOIN turns t ON t.tenant = $1 AND t.space = waiting.space AND t.id = waiting.id",
        join_sessions!(),
        "JOIN spaces p ON p.tenant = t.tenant AND p.id = t.space
         CROSS JOIN LATERAL (
             SELECT array_agg(g.start ORDER BY g.passage), array_agg(g.length ORDER BY g.passage) FROM passages g
             WHERE g.tenant = $1 AND g.space = t.space
                 AND g.passage >= t.first_passage AND g.passage < t.first_passage + t.passages) ranges(starts, lengths)"
    ))
    .bind(tenant.as_str())
    .bind(spaces)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| unembedded(row, tenant)).collect()
}

fn unembedded(row: &PgRow, tenant: &TenantId) -> Outcome<Unembedded> {
    let starts: Vec<i32> = row
        .try_get::<Option<_>, _>(BEHIND_TURN + 2)?
        .unwrap_or_default();
    let lengths: Vec<i32> = row
        .try_get::<Option<_>, _>(BEHIND_TURN + 3)?
        .unwrap_or_default();
    let range = |(start, length)| (to_u32(start), to_u32(start) + to_u32(length));
    Ok(Unembedded {
        scope: Scope {
            tenant: tenant.clone(),
            space: name(SpaceId::new(row.try_get::<&str, _>(BEHIND_TURN)?))?,
        },
        turn: rows::turn(row)?,
        first_passage: to_u32(row.try_get(BEHIND_TURN + 1)?),
        ranges: starts.into_iter().zip(lengths).map(range).collect(),
    })
}

/// Adds the vectors of a turn and lets the feed bring it again.
pub async fn attach(
    connection: &mut PgConnection,
    scope: &Scope,
    turn: TurnId,
    embedding: &EmbeddingSpace,
    vectors: &[PassageVectors],
) -> Outcome<()> {
    let tenant = scope.tenant.as_str();
    let Some(space) = scope::lock(connection, scope).await? else {
        return Ok(());
    };
    let row = sqlx::query(
        "UPDATE turns SET embedding = $4, change = $5 WHERE tenant = $1 AND space = $2 AND id = $3
         RETURNING first_passage, passages",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(from_turn_id(&turn))
    .bind(embedding_key(embedding))
    .bind(space.head + 1)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(()) };
    let (first, count) = (row.try_get(0)?, row.try_get::<i32, _>(1)?);
    if to_u32(count) as usize != vectors.len() {
        let given = vectors.len();
        let cause = format!("{given} vectors were given for {count} passages");
        return Err(StoreError::Unexpected(cause).into());
    }
    let numbered: Vec<_> = (to_u32(first)..).zip(vectors).collect();
    put_sentences(connection, tenant, space.id, &numbered).await?;
    put_tokens(connection, tenant, space.id, &numbered).await?;
    sqlx::query("UPDATE spaces SET head = head + 1 WHERE tenant = $1 AND id = $2")
        .bind(tenant)
        .bind(space.id)
        .execute(connection)
        .await?;
    Ok(())
}

/// Vectors with the number of their passage.
pub type Numbered<'v> = (u32, &'v PassageVectors);

async fn put_sentences(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    vectors: &[Numbered<'_>],
) -> Outcome<()> {
    let sentences = vectors
        .iter()
        .map(|(_, vectors)| from_sentence(&vectors.sentence));
    let pieces = vectors
        .iter()
        .map(|(_, vectors)| from_set(&vectors.tokens.pieces));
    sqlx::query(
        "UPDATE passages g SET sentence = n.sentence, pieces = n.pieces
         FROM unnest($3::integer[], $4::halfvec[], $5::bytea[]) AS n(passage, sentence, pieces)
         WHERE g.tenant = $1 AND g.space = $2 AND g.passage = n.passage",
    )
    .bind(tenant)
    .bind(space)
    .bind(rows::from_u32(vectors.iter().map(|(passage, _)| *passage)))
    .bind(sentences.collect::<Vec<_>>())
    .bind(pieces.collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes token vectors over what was there.
pub async fn put_tokens(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    vectors: &[Numbered<'_>],
) -> Outcome<()> {
    if vectors.is_empty() {
        return Ok(());
    }
    let tokens = vectors
        .iter()
        .map(|(_, vectors)| from_token_vectors(&vectors.tokens));
    sqlx::query(
        "INSERT INTO token_vectors (tenant, space, passage, vectors)
         SELECT $1, $2, * FROM unnest($3::integer[], $4::bytea[])
         ON CONFLICT (tenant, space, passage) DO UPDATE SET vectors = excluded.vectors",
    )
    .bind(tenant)
    .bind(space)
    .bind(rows::from_u32(vectors.iter().map(|(passage, _)| *passage)))
    .bind(tokens.collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_reads_back_exactly() {
        let all: Vec<i8> = (i8::MIN..=i8::MAX).collect();
        assert_eq!(to_sentence(&from_sentence(&all).unwrap()), all);
        assert_eq!(from_sentence(&[]), None);
    }
}
