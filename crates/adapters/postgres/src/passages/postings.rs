//! Writing passages into the blocks of their terms, and taking them out.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use memfleet_columns::{block, put_posting, term_key, without};
use sqlx::{PgConnection, Row};

use super::NewPassage;
use crate::failure::Outcome;
use crate::rows::{from_u32, to_u32};

/// Passages that are gone, and the blocks of terms that name them.
#[derive(Debug, Default)]
pub struct Gone {
    pub passages: HashSet<u32>,
    pub blocks: BTreeSet<(i64, u32)>,
}

/// The numbers are higher than all that the blocks hold.
pub async fn append(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    new: &[NewPassage<'_>],
) -> Outcome<()> {
    // In the order of the index; two terms of one hash count as one.
    let mut counts: BTreeMap<(i64, u32), u16> = BTreeMap::new();
    for (number, passage, _) in new {
        for (term, count) in &passage.terms {
            let sum = counts.entry((term_key(term), *number)).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    let mut blocks: BTreeMap<(i64, u32), Vec<u8>> = BTreeMap::new();
    for ((term, number), count) in counts {
        let bytes = blocks.entry((term, block(number))).or_default();
        put_posting(bytes, number, count);
    }
    if blocks.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO postings AS p (tenant, space, term, block, passages)
         SELECT $1, $2, * FROM unnest($3::bigint[], $4::integer[], $5::bytea[])
         ON CONFLICT (tenant, space, term, block) DO UPDATE SET passages = p.passages || excluded.passages",
    )
    .bind(tenant)
    .bind(space)
    .bind(blocks.keys().map(|(term, _)| *term).collect::<Vec<_>>())
    .bind(from_u32(blocks.keys().map(|(_, block)| *block)))
    .bind(blocks.into_values().collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
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
