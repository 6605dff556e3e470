//! Taking passages out of the blocks of their terms.

use std::collections::{BTreeSet, HashSet};

use memfleet_columns::without;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::rows::{from_u32, to_u32};

/// Passages that are gone, and the blocks of terms that name them.
#[derive(Debug, Default)]
pub struct Gone {
    pub passages: HashSet<u32>,
    pub blocks: BTreeSet<(i64, u32)>,
}

/// The space is locked: nobody appends meanwhile.
pub async fn remove(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    gone: &Gone,
) -> Outcome<()> {
    let (terms, blocks): (Vec<_>, Vec<_>) = gone.blocks.iter().copied().unzip();
    let rows = sqlx::query(
        "SELECT p.term, p.block, p.passages FROM unnest($3::bigint[], $4::integer[]) AS touched(term, block)
         JOIN postings p ON p.tenant = $1 AND p.space = $2 AND p.term = touched.term AND p.block = touched.block",
    )
    .bind(tenant)
    .bind(space)
    .bind(terms)
    .bind(from_u32(blocks))
    .fetch_all(&mut *connection)
    .await?;
    let (mut thinned, mut emptied) = (Blocks::default(), Blocks::default());
    for row in rows {
        let (term, block): (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
        let left = without(to_u32(block), row.try_get(2)?, |passage| {
            gone.passages.contains(&passage)
        })?;
        let blocks = if left.is_empty() {
            &mut emptied
        } else {
            &mut thinned
        };
        blocks.terms.push(term);
        blocks.numbers.push(block);
        blocks.passages.push(left);
    }
    sqlx::query(
        "UPDATE postings p SET passages = n.passages
         FROM unnest($3::bigint[], $4::integer[], $5::bytea[]) AS n(term, block, passages)
         WHERE p.tenant = $1 AND p.space = $2 AND p.term = n.term AND p.block = n.block",
    )
    .bind(tenant)
    .bind(space)
    .bind(thinned.terms)
    .bind(thinned.numbers)
    .bind(thinned.passages)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "DELETE FROM postings p USING unnest($3::bigint[], $4::integer[]) AS n(term, block)
         WHERE p.tenant = $1 AND p.space = $2 AND p.term = n.term AND p.block = n.block",
    )
    .bind(tenant)
    .bind(space)
    .bind(emptied.terms)
    .bind(emptied.numbers)
    .execute(connection)
    .await?;
    Ok(())
}

/// Columns of some blocks.
#[derive(Default)]
struct Blocks {
    terms: Vec<i64>,
    numbers: Vec<i32>,
    passages: Vec<Vec<u8>>,
}
