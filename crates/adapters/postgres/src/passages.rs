//! Passages with their vectors and the postings of their terms: written and removed alike for turns and for what is derived.

mod postings;

use memfleet_columns::{VectorSlot, block, from_floats, from_set, from_terms, term_key, to_terms};
use memfleet_ports::ledger::Passage;
use sqlx::{PgConnection, Row};

use self::postings::Gone;
use crate::failure::Outcome;
use crate::ledger::{Numbered, from_sentence, put_second, put_tokens};
use crate::rows::{from_u32, to_u32};

/// A passage with its number, and the place of its vectors; to none, they are left out.
pub type NewPassage<'p> = (u32, &'p Passage, Option<VectorSlot>);

/// Stores passages; the space is locked, and their numbers are the next ones.
pub async fn put(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    new: &[NewPassage<'_>],
) -> Outcome<()> {
    if new.is_empty() {
        return Ok(());
    }
    put_rows(connection, tenant, space, new).await?;
    postings::append(connection, tenant, space, new).await?;
    let to = |place| {
        let there = new.iter().filter(move |(.., slot)| *slot == Some(place));
        let vectors =
            there.filter_map(|(number, passage, _)| Some((*number, passage.vectors.as_ref()?)));
        vectors.collect::<Vec<Numbered<'_>>>()
    };
    put_tokens(connection, tenant, space, &to(VectorSlot::First)).await?;
    put_second(connection, tenant, space, &to(VectorSlot::Second)).await
}

async fn put_rows(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    new: &[NewPassage<'_>],
) -> Outcome<()> {
    let passages = || new.iter().map(|(_, passage, _)| *passage);
    let vectors = || {
        new.iter().map(|(_, passage, slot)| {
            let vectors = passage.vectors.as_ref();
            vectors.filter(|_| *slot == Some(VectorSlot::First))
        })
    };
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
    .bind(tenant)
    .bind(space)
    .bind(from_u32(new.iter().map(|(number, ..)| *number)))
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

/// Removes the passages of these runs (first number, first after); the space is locked.
pub async fn remove(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    runs: Vec<(u32, u32)>,
) -> Outcome<()> {
    let (firsts, pasts): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    let (firsts, pasts) = (from_u32(firsts), from_u32(pasts));
    for delete in [
        "DELETE FROM token_vectors v USING unnest($3::integer[], $4::integer[]) AS run(first, past)
         WHERE v.tenant = $1 AND v.space = $2 AND v.passage >= run.first AND v.passage < run.past",
        "DELETE FROM second_vectors v USING unnest($3::integer[], $4::integer[]) AS run(first, past)
         WHERE (SELECT p.second_embedding IS NOT NULL OR p.emptying FROM spaces p WHERE p.tenant = $1 AND p.id = $2)
             AND v.tenant = $1 AND v.space = $2 AND v.passage >= run.first AND v.passage < run.past",
    ] {
        sqlx::query(delete)
            .bind(tenant)
            .bind(space)
            .bind(&firsts)
            .bind(&pasts)
            .execute(&mut *connection)
            .await?;
    }
    let passages = sqlx::query(
        "DELETE FROM passages g USING unnest($3::integer[], $4::integer[]) AS run(first, past)
         WHERE g.tenant = $1 AND g.space = $2 AND g.passage >= run.first AND g.passage < run.past
         RETURNING g.passage, g.terms",
    )
    .bind(tenant)
    .bind(space)
    .bind(&firsts)
    .bind(&pasts)
    .fetch_all(&mut *connection)
    .await?;
    // Postings are found by the terms, which only the passage knows.
    let mut gone = Gone::default();
    for row in passages {
        let number = to_u32(row.try_get(0)?);
        gone.passages.insert(number);
        for (term, _) in to_terms(row.try_get(1)?)? {
            gone.blocks.insert((term_key(&term), block(number)));
        }
    }
    postings::remove(connection, tenant, space, &gone).await
}
