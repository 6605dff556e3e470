//! Rows of passages, in tables that are keyed by space and number. Many are written by one
//! statement: each statement is a round trip to the thread of the connection, and a large batch has
//! thousands of passages.

use memfleet_columns::{
    VectorSlot, from_components, from_floats, from_set, from_terms, from_token_vectors,
};
use memfleet_domain::embedding::PassageVectors;
use memfleet_ports::ledger::Passage;
use sqlx::{QueryBuilder, SqliteConnection};

use crate::failure::Outcome;

/// Rows that a statement writes, the largest number first: few, so that each statement is prepared
/// once.
const STATEMENT_ROWS: [usize; 4] = [64, 16, 4, 1];

/// The key of passage 0 of a space.
pub fn first_key(space: i64) -> i64 {
    space << 32
}

/// The key of a passage of a space.
pub fn key(space: i64, number: u32) -> i64 {
    first_key(space) | i64::from(number)
}

/// Writes passages with their keys, and the vectors of those that have some to this place; to none,
/// they are left out.
pub async fn put(
    connection: &mut SqliteConnection,
    passages: &[(i64, &Passage)],
    slot: Option<VectorSlot>,
) -> Outcome<()> {
    let is_first = slot == Some(VectorSlot::First);
    for rows in by_statement(passages) {
        let mut insert = QueryBuilder::new(
            "INSERT INTO passages (key, start, length, terms, features, pieces, sentence) ",
        );
        insert.push_values(rows, |mut row, (key, passage)| {
            let vectors = passage.vectors.as_ref().filter(|_| is_first);
            let pieces = vectors.map(|vectors| from_set(&vectors.tokens.pieces));
            row.push_bind(*key)
                .push_bind(passage.start)
                .push_bind(passage.end - passage.start)
                .push_bind(from_terms(&passage.terms))
                .push_bind(from_floats(&passage.features))
                .push_bind(pieces.unwrap_or_default())
                .push_bind(vectors.map(|vectors| from_components(&vectors.sentence)));
        });
        insert.build().execute(&mut *connection).await?;
    }
    let vectors = passages.iter();
    let vectors: Vec<_> = vectors
        .filter_map(|(key, passage)| Some((*key, passage.vectors.as_ref()?)))
        .collect();
    match slot {
        Some(VectorSlot::First) => put_token_vectors(connection, &vectors).await,
        Some(VectorSlot::Second) => put_second(connection, &vectors).await,
        None => Ok(()),
    }
}

/// Writes the vectors of passages that are there to a place, over what they had in it.
pub async fn put_vectors(
    connection: &mut SqliteConnection,
    vectors: &[(i64, &PassageVectors)],
    slot: VectorSlot,
) -> Outcome<()> {
    if slot == VectorSlot::Second {
        return put_second(connection, vectors).await;
    }
    for rows in by_statement(vectors) {
        let mut update = QueryBuilder::new(
            "UPDATE passages SET sentence = new.column2, pieces = new.column3 FROM (",
        );
        update.push_values(rows, |mut row, (key, vectors)| {
            row.push_bind(*key)
                .push_bind(from_components(&vectors.sentence))
                .push_bind(from_set(&vectors.tokens.pieces));
        });
        update.push(") AS new WHERE passages.key = new.column1");
        update.build().execute(&mut *connection).await?;
    }
    put_token_vectors(connection, vectors).await
}

async fn put_token_vectors(
    connection: &mut SqliteConnection,
    vectors: &[(i64, &PassageVectors)],
) -> Outcome<()> {
    for rows in by_statement(vectors) {
        let mut insert = QueryBuilder::new("INSERT OR REPLACE INTO token_vectors (key, vectors) ");
        insert.push_values(rows, |mut row, (key, vectors)| {
            row.push_bind(*key)
                .push_bind(from_token_vectors(&vectors.tokens));
        });
        insert.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn put_second(
    connection: &mut SqliteConnection,
    vectors: &[(i64, &PassageVectors)],
) -> Outcome<()> {
    for rows in by_statement(vectors) {
        let mut insert = QueryBuilder::new(
            "INSERT OR REPLACE INTO second_vectors (key, pieces, sentence, vectors) ",
        );
        insert.push_values(rows, |mut row, (key, vectors)| {
            row.push_bind(*key)
                .push_bind(from_set(&vectors.tokens.pieces))
                .push_bind(from_components(&vectors.sentence))
                .push_bind(from_token_vectors(&vectors.tokens));
        });
        insert.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// The rows of each statement, see [`STATEMENT_ROWS`].
fn by_statement<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let count = STATEMENT_ROWS
            .into_iter()
            .find(|count| *count <= rows.len())?;
        let (next, rest) = rows.split_at(count);
        rows = rest;
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_statement_and_statements_are_few() {
        let rows: Vec<usize> = (0..87).collect();
        let statements: Vec<_> = by_statement(&rows).collect();
        assert_eq!(statements.concat(), rows);
        let counts: Vec<_> = statements.iter().map(|rows| rows.len()).collect();
        assert_eq!(counts, [64, 16, 4, 1, 1, 1]);
        assert_eq!(by_statement::<usize>(&[]).count(), 0);
    }
}
