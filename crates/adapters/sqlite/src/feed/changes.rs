//! Changes after a sequence number: turns and what is derived from them in their present state, and tombstones.

use std::collections::HashMap;

use memfleet_columns::{
    VectorSlot, derived_change, json, name, runs, time, to_components, to_derivation_id, to_floats,
    to_role, to_set, to_terms, to_turn_id,
};
use memfleet_domain::Scope;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_ports::feed::{Change, Changes, IndexedPassage, IndexedTurn, words};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::ledger::vectors;
use crate::passages::first_key;
use crate::rows::id_list;
use crate::scope::{self, SpaceRow};

/// What [`turn`] reads.
macro_rules! columns {
    () => {
        "SELECT t.change, t.id, s.name, t.acceptance, t.ordinal, t.speaker, t.role, t.event_time, t.recorded_at,
             t.replaced_at, t.first_passage, t.passages
         FROM turns t JOIN sessions s ON s.id = t.session "
    };
}

/// The changes of a space after `after`, with vectors of this embedding space (absent: the served
/// one).
pub async fn after(
    connection: &mut SqliteConnection,
    scope: &Scope,
    embedding: Option<&EmbeddingSpace>,
    after: i64,
    limit: u32,
) -> Outcome<Changes> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Changes {
            changes: Vec::new(),
            reached: after as u64,
            more: false,
        });
    };
    let page = Page {
        space: space.id,
        slot: vectors::slot(connection, space, embedding).await?,
        after,
        reached: reached(connection, space, after, limit).await?,
    };
    let stored = stored_in(connection, page).await?;
    let mut changes: Vec<(i64, Change)> = stored
        .into_iter()
        .map(|(change, turn)| (change, Change::Stored(Box::new(turn))))
        .collect();
    changes.extend(forgotten_in(connection, page).await?);
    changes.extend(derived_in(connection, page).await?);
    changes.extend(removed_in(connection, page).await?);
    changes.sort_by_key(|(change, _)| *change);
    Ok(Changes {
        changes: changes.into_iter().map(|(_, change)| change).collect(),
        reached: page.reached as u64,
        more: page.reached < space.head,
    })
}

/// A stretch of a space's changes: after one number up to another.
#[derive(Debug, Clone, Copy)]
struct Page {
    space: i64,
    /// The place of the vectors.
    slot: Option<VectorSlot>,
    after: i64,
    reached: i64,
}

/// The number of the `limit`-th change, with which a page ends: changes that share a number are never parted. Where fewer are left, the
/// head of the space.
async fn reached(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    after: i64,
    limit: u32,
) -> Outcome<i64> {
    let last: Option<i64> = sqlx::query_scalar(
        "SELECT change FROM (
             SELECT change FROM (SELECT change FROM turns WHERE space = ?1 AND change > ?2 ORDER BY change LIMIT ?3)
             UNION ALL SELECT change FROM (SELECT change FROM forgotten WHERE space = ?1 AND change > ?2 ORDER BY change LIMIT ?3)
             UNION ALL SELECT change FROM (SELECT change FROM derivations
                 WHERE space = ?1 AND change > ?2 AND known_until IS NULL ORDER BY change LIMIT ?3)
             UNION ALL SELECT change FROM (SELECT change FROM removed_derivations
                 WHERE space = ?1 AND change > ?2 ORDER BY change LIMIT ?3))
         ORDER BY change LIMIT 1 OFFSET max(?3, 1) - 1",
    )
    .bind(space.id)
    .bind(after)
    .bind(limit)
    .fetch_optional(connection)
    .await?;
    Ok(last.unwrap_or(space.head.max(after)))
}

async fn forgotten_in(
    connection: &mut SqliteConnection,
    page: Page,
) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, id FROM forgotten WHERE space = ? AND change > ? AND change <= ? ORDER BY change",
    )
    .bind(page.space)
    .bind(page.after)
    .bind(page.reached)
    .fetch_all(connection)
    .await?;
    let forgotten = rows.iter().map(|row| {
        let id = to_turn_id(row.try_get(1)?)?;
        Ok((row.try_get(0)?, Change::Forgotten(id)))
    });
    forgotten.collect()
}

async fn derived_in(connection: &mut SqliteConnection, page: Page) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, passage, document FROM derivations
         WHERE space = ? AND change > ? AND change <= ? AND known_until IS NULL ORDER BY change",
    )
    .bind(page.space)
    .bind(page.after)
    .bind(page.reached)
    .fetch_all(&mut *connection)
    .await?;
    let derived = rows.iter().map(|row| {
        let derivation: Derivation = json(row.try_get(2)?)?;
        Ok((row.try_get(0)?, row.try_get(1)?, derivation))
    });
    let derived: Vec<(i64, u32, Derivation)> = derived.collect::<Outcome<_>>()?;
    let mut passages = HashMap::new();
    for (first, end) in runs(derived.iter().map(|(_, number, _)| (*number, 1))) {
        load_passages(
            connection,
            page.space,
            (first, end),
            page.slot,
            &mut passages,
        )
        .await?;
    }
    let changes = derived.into_iter().map(|(change, number, derivation)| {
        let passage = passages.remove(&number);
        (change, derived_change(derivation, number, passage))
    });
    Ok(changes.collect())
}

/// Derivations that were removed: by retention, or with a turn that they drew on.
async fn removed_in(connection: &mut SqliteConnection, page: Page) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, id FROM removed_derivations WHERE space = ? AND change > ? AND change <= ? ORDER BY change",
    )
    .bind(page.space)
    .bind(page.after)
    .bind(page.reached)
    .fetch_all(connection)
    .await?;
    let removed = rows.iter().map(|row| {
        let id = to_derivation_id(row.try_get(1)?)?;
        Ok((row.try_get(0)?, Change::Withdrawn(id)))
    });
    removed.collect()
}

async fn stored_in(
    connection: &mut SqliteConnection,
    page: Page,
) -> Outcome<Vec<(i64, IndexedTurn)>> {
    let rows = sqlx::query(concat!(
        columns!(),
        "WHERE t.space = ? AND t.change > ? AND t.change <= ? ORDER BY t.change"
    ))
    .bind(page.space)
    .bind(page.after)
    .bind(page.reached)
    .fetch_all(&mut *connection)
    .await?;
    with_passages(connection, page.space, page.slot, &rows).await
}

/// These turns of a space.
pub async fn indexed(
    connection: &mut SqliteConnection,
    scope: &Scope,
    ids: &[TurnId],
) -> Outcome<Vec<IndexedTurn>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let rows = sqlx::query(concat!(
        columns!(),
        "WHERE t.space = ? AND t.id IN (SELECT unhex(value, '-') FROM json_each(?))"
    ))
    .bind(space.id)
    .bind(id_list(ids))
    .fetch_all(&mut *connection)
    .await?;
    let turns = with_passages(connection, space.id, space.slots.served(), &rows).await?;
    Ok(turns.into_iter().map(|(_, turn)| turn).collect())
}

/// Each with the change that brought its state.
async fn with_passages(
    connection: &mut SqliteConnection,
    space: i64,
    slot: Option<VectorSlot>,
    rows: &[SqliteRow],
) -> Outcome<Vec<(i64, IndexedTurn)>> {
    let mut turns = rows.iter().map(turn).collect::<Outcome<Vec<_>>>()?;
    let runs = runs(
        turns
            .iter()
            .map(|(_, turn, count)| (turn.first_passage, *count)),
    );
    let mut passages = HashMap::new();
    for (first, end) in runs {
        load_passages(connection, space, (first, end), slot, &mut passages).await?;
    }
    for (_, turn, count) in &mut turns {
        let numbers = turn.first_passage..turn.first_passage + *count;
        turn.passages = numbers
            .filter_map(|number| passages.remove(&number))
            .collect();
    }
    Ok(turns
        .into_iter()
        .map(|(change, turn, _)| (change, turn))
        .collect())
}

/// Change, turn without its passages, and how many it has.
fn turn(row: &SqliteRow) -> Outcome<(i64, IndexedTurn, u32)> {
    let optional_time = |index: usize| {
        row.try_get::<Option<i64>, _>(index)
            .map(|micros| micros.map(time))
    };
    let turn = IndexedTurn {
        id: to_turn_id(row.try_get(1)?)?,
        session: name(SessionId::new(row.try_get::<&str, _>(2)?))?,
        order: (row.try_get::<i64, _>(3)? as u64, row.try_get(4)?),
        speaker: name(Speaker::new(row.try_get::<&str, _>(5)?))?,
        role: to_role(row.try_get(6)?)?,
        event_time: optional_time(7)?.transpose()?,
        recorded_at: time(row.try_get(8)?)?,
        replaced_at: optional_time(9)?.transpose()?,
        first_passage: row.try_get(10)?,
        passages: Vec::new(),
    };
    Ok((row.try_get(0)?, turn, row.try_get(11)?))
}

async fn load_passages(
    connection: &mut SqliteConnection,
    space: i64,
    (first, end): (u32, u32),
    slot: Option<VectorSlot>,
    passages: &mut HashMap<u32, IndexedPassage>,
) -> Outcome<()> {
    let base = first_key(space);
    let rows = sqlx::query(match slot {
        Some(VectorSlot::First) => {
            "SELECT key - ?1, length, terms, features, sentence, pieces FROM passages
             WHERE key >= ?1 + ?2 AND key < ?1 + ?3"
        }
        Some(VectorSlot::Second) => {
            "SELECT g.key - ?1, g.length, g.terms, g.features, v.sentence, coalesce(v.pieces, x'')
             FROM passages g LEFT JOIN second_vectors v ON v.key = g.key
             WHERE g.key >= ?1 + ?2 AND g.key < ?1 + ?3"
        }
        None => {
            "SELECT key - ?1, length, terms, features, NULL, x'' FROM passages
             WHERE key >= ?1 + ?2 AND key < ?1 + ?3"
        }
    })
    .bind(base)
    .bind(first)
    .bind(end)
    .fetch_all(connection)
    .await?;
    for row in rows {
        let terms = to_terms(row.try_get(2)?)?;
        let passage = IndexedPassage {
            length: row.try_get(1)?,
            words: words(&terms),
            terms,
            features: to_floats(row.try_get(3)?)?,
            sentence: row.try_get::<Option<&[u8]>, _>(4)?.map(to_components),
            pieces: to_set(row.try_get(5)?)?,
        };
        passages.insert(row.try_get(0)?, passage);
    }
    Ok(())
}
