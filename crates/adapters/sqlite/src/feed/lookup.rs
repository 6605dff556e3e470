//! What the retriever asks for by number or by label.

use std::collections::HashMap;
use std::sync::Arc;

use memfleet_columns::{VectorSlot, json, label, to_json, to_token_vectors, to_turn_id};
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, TokenVectors};
use memfleet_domain::ids::TurnId;
use sqlx::{QueryBuilder, Row, SqliteConnection};

use crate::failure::{Outcome, damaged};
use crate::ledger::vectors;
use crate::passages::first_key;
use crate::scope;

/// Passages read by one query: their vectors are one value, and a passage has 17 KB of them at most.
const SLICE: usize = 1_024;

/// Token vectors of passages in an embedding space (absent: the served one), in the order asked.
pub async fn token_vectors(
    connection: &mut SqliteConnection,
    scope: &Scope,
    embedding: Option<&EmbeddingSpace>,
    passages: &[u32],
) -> Outcome<Vec<Option<Arc<TokenVectors>>>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(vec![None; passages.len()]);
    };
    let Some(slot) = vectors::slot(connection, space, embedding).await? else {
        return Ok(vec![None; passages.len()]);
    };
    let mut found = HashMap::with_capacity(passages.len());
    for slice in passages.chunks(SLICE) {
        found.extend(read(connection, space.id, slot, slice).await?);
    }
    Ok(passages
        .iter()
        .map(|number| found.get(number).cloned())
        .collect())
}

async fn read(
    connection: &mut SqliteConnection,
    space: i64,
    slot: VectorSlot,
    passages: &[u32],
) -> Outcome<impl Iterator<Item = (u32, Arc<TokenVectors>)>> {
    // One row for all of them: rows go from thread to thread one by one, which costs more than reading them. Blobs keep
    // their bytes as text, and on the way back.
    let row = sqlx::query(match slot {
        VectorSlot::First => {
            "SELECT json_group_array(key - ?1), CAST(group_concat(vectors, '') AS BLOB)
             FROM (SELECT key, vectors FROM token_vectors
                   WHERE key IN (SELECT ?1 + value FROM json_each(?2)) ORDER BY key)"
        }
        VectorSlot::Second => {
            "SELECT json_group_array(key - ?1), CAST(group_concat(vectors, '') AS BLOB)
             FROM (SELECT key, vectors FROM second_vectors
                   WHERE key IN (SELECT ?1 + value FROM json_each(?2)) ORDER BY key)"
        }
    })
    .bind(first_key(space))
    .bind(to_json(&passages))
    .fetch_one(connection)
    .await?;
    let numbers: Vec<u32> = json(row.try_get(0)?)?;
    let bytes: Option<&[u8]> = row.try_get(1)?;
    let vectors = to_token_vectors(bytes.unwrap_or_default())?;
    if vectors.len() != numbers.len() {
        return Err(damaged("token vectors have other lengths than they say"));
    }
    Ok(numbers.into_iter().zip(vectors.into_iter().map(Arc::new)))
}

/// The turns that carry all these labels.
pub async fn with_metadata(
    connection: &mut SqliteConnection,
    scope: &Scope,
    labels: &[(String, String)],
) -> Outcome<Vec<TurnId>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let mut query = QueryBuilder::new("SELECT t.id FROM turns t WHERE t.space = ");
    query.push_bind(space.id);
    for (key, value) in labels {
        query
            .push(" AND t.key IN (SELECT turn FROM labels WHERE space = ")
            .push_bind(space.id);
        query
            .push(" AND label = ")
            .push_bind(label(key, value))
            .push(")");
    }
    let rows = query.build().fetch_all(connection).await?;
    rows.iter()
        .map(|row| Ok(to_turn_id(row.try_get(0)?)?))
        .collect()
}
