//! The rows of passages, of their vectors, and of their terms.

use std::collections::BTreeMap;

use memfleet_columns::{block, from_floats, from_set, from_terms, put_posting, term_key};
use memfleet_ports::ledger::Passage;
use sqlx::PgConnection;

use super::Target;
use crate::failure::Outcome;
use crate::ledger::commit::plan::Plan;
use crate::ledger::vectors::{Numbered, from_sentence, put_tokens};
use crate::rows::from_u32;

/// A passage with its number.
type New<'b> = (u32, &'b Passage);

pub async fn store(
    connection: &mut PgConnection,
    target: Target<'_>,
    plan: &Plan<'_>,
) -> Outcome<()> {
    let turns = plan.turns.iter();
    let passages: Vec<New<'_>> = turns
        .flat_map(|new| (new.first_passage..).zip(new.passages))
        .collect();
    store_rows(connection, target, &passages).await?;
    store_postings(connection, target, &passages).await?;
    let vectors: Vec<Numbered<'_>> = passages
        .iter()
        .filter_map(|(number, passage)| Some((*number, passage.vectors.as_ref()?)))
        .collect();
    put_tokens(connection, target.tenant, target.space, &vectors).await
}

async fn store_rows(
    connection: &mut PgConnection,
    target: Target<'_>,
    new: &[New<'_>],
) -> Outcome<()> {
    let passages = || new.iter().map(|(_, passage)| *passage);
    let vectors = || passages().map(|passage| passage.vectors.as_ref());
    let pieces = vectors().map(|vectors| match vectors {
        Some(vectors) => from_set(&vectors.tokens.pieces),
        None => Vec::new(),
    });
    let sentences = vectors().map(|vectors| from_sentence(&vectors?.sentence));
    sqlx::query(
        "INSERT INTO passages (tenant, space, passage, start, length, terms, features, pieces, sentence)
         SELECT $1, $2, * FROM unnest($3::integer[], $4::integer[], $5::integer[], $6::bytea[], $7::bytea[], $8::bytea[],
             $9::halfvec[])",
    )
    .bind(target.tenant)
    .bind(target.space)
    .bind(from_u32(new.iter().map(|(number, _)| *number)))
    .bind(from_u32(passages().map(|passage| passage.start)))
    .bind(from_u32(passages().map(|passage| passage.end - passage.start)))
    .bind(passages().map(|passage| from_terms(&passage.terms)).collect::<Vec<_>>())
    .bind(passages().map(|passage| from_floats(&passage.features)).collect::<Vec<_>>())
    .bind(pieces.collect::<Vec<_>>())
    .bind(sentences.collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

async fn store_postings(
    connection: &mut PgConnection,
    target: Target<'_>,
    new: &[New<'_>],
) -> Outcome<()> {
    // In the order of the index; two terms of one hash count as one.
    let mut counts: BTreeMap<(i64, u32), u16> = BTreeMap::new();
    for (number, passage) in new {
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
    .bind(target.tenant)
    .bind(target.space)
    .bind(blocks.keys().map(|(term, _)| *term).collect::<Vec<_>>())
    .bind(from_u32(blocks.keys().map(|(_, block)| *block)))
    .bind(blocks.into_values().collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}
