//! What the retriever asks for by number or by label.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use memfleet_columns::{VectorSlot, label, space_key, to_token_vectors};
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, TokenVectors};
use memfleet_domain::ids::TurnId;
use memfleet_ports::store::StoreError;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::ledger::slot;
use crate::rows::{from_u32, to_turn_id, to_u32};
use crate::scope::{self, space_id};

/// Token vectors of passages in an embedding space (absent: the served one), in the order asked.
pub async fn token_vectors(
    connection: &mut PgConnection,
    scope: &Scope,
    embedding: Option<&EmbeddingSpace>,
    passages: &[u32],
) -> Outcome<Vec<Option<Arc<TokenVectors>>>> {
    let space = scope::find(connection, scope).await?;
    let Some((space, slot)) = space.and_then(|space| Some((space, slot(space, embedding)?))) else {
        return Ok(vec![None; passages.len()]);
    };
    let rows = sqlx::query(match slot {
        VectorSlot::First => {
            "SELECT passage, vectors FROM token_vectors WHERE tenant = $1 AND space = $2 AND passage = ANY ($3)"
        }
        VectorSlot::Second => {
            "SELECT passage, vectors FROM second_vectors WHERE tenant = $1 AND space = $2 AND passage = ANY ($3)"
        }
    })
    .bind(scope.tenant.as_str())
    .bind(space.id)
    .bind(from_u32(passages.iter().copied()))
    .fetch_all(connection)
    .await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let vectors = one(to_token_vectors(row.try_get(1)?)?)?;
        found.insert(to_u32(row.try_get(0)?), Arc::new(vectors));
    }
    Ok(passages
        .iter()
        .map(|number| found.get(number).cloned())
        .collect())
}

fn one(vectors: Vec<TokenVectors>) -> Outcome<TokenVectors> {
    let [vectors]: [_; 1] = vectors.try_into().map_err(|_| {
        StoreError::Damaged("token vectors have other lengths than they say".into())
    })?;
    Ok(vectors)
}

/// The turns that carry all these labels.
pub async fn with_metadata(
    connection: &mut PgConnection,
    scope: &Scope,
    labels: &[(String, String)],
) -> Outcome<Vec<TurnId>> {
    let labels = labels.iter().map(|(key, value)| label(key, value));
    let labels: BTreeSet<i64> = labels.collect();
    let rows = if labels.is_empty() {
        sqlx::query(concat!(
            "SELECT id FROM turns WHERE tenant = $1 AND space = ",
            space_id!()
        ))
    } else {
        // A turn has a label once.
        sqlx::query(concat!(
            "SELECT turn FROM labels WHERE tenant = $1 AND space = ",
            space_id!(),
            " AND label = ANY ($3) GROUP BY turn HAVING count(*) = cardinality($3)"
        ))
    };
    let mut rows = rows.bind(scope.tenant.as_str()).bind(space_key(scope));
    if !labels.is_empty() {
        rows = rows.bind(Vec::from_iter(labels));
    }
    let rows = rows.fetch_all(connection).await?;
    rows.iter()
        .map(|row| Ok(to_turn_id(row.try_get(0)?)))
        .collect()
}
