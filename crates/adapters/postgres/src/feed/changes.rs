//! Changes after a sequence number: turns and what is derived from them in their present state, and tombstones.

use std::collections::HashMap;

use memfleet_columns::{
    VectorSlot, derived_change, json, name, runs, time, to_floats, to_lengths, to_role, to_set,
    to_terms,
};
use memfleet_domain::Scope;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_ports::feed::{Change, Changes, IndexedPassage, IndexedTurn, words};
use pgvector::HalfVector;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::ledger::{slot, to_sentence};
use crate::rows::{find_session, from_u32, id_list, to_derivation_id, to_turn_id, to_u32};
use crate::scope::{self, SpaceRow};

/// What [`turn`] reads of a turn `t` and its session `s`.
macro_rules! columns {
    () => {
        "SELECT t.change, t.id, s.name, t.acceptance, t.ordinal, t.speaker, t.role, t.event_time, t.recorded_at,
             t.replaced_at, t.first_passage, t.lengths "
    };
}

/// How much is told of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Whole,
    /// Lengths instead of passages, and nothing derived.
    Outline,
}

/// The changes of a space after `after`, with vectors of this embedding space (absent: the served
/// one).
pub async fn after(
    connection: &mut PgConnection,
    scope: &Scope,
    embedding: Option<&EmbeddingSpace>,
    after: i64,
    limit: u32,
    depth: Depth,
) -> Outcome<Changes> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Changes {
            changes: Vec::new(),
            reached: after as u64,
            more: false,
        });
    };
    let page = Page {
        tenant: scope.tenant.as_str(),
        space: space.id,
        slot: slot(space, embedding),
        after,
        reached: reached(connection, scope, space, after, limit, depth).await?,
    };
    let stored = stored_in(connection, page, depth).await?;
    let mut changes: Vec<(i64, Change)> = stored
        .into_iter()
        .map(|(change, turn)| (change, Change::Stored(Box::new(turn))))
        .collect();
    changes.extend(forgotten_in(connection, page).await?);
    if depth == Depth::Whole {
        changes.extend(derived_in(connection, page).await?);
        changes.extend(removed_in(connection, page).await?);
    }
    changes.sort_by_key(|(change, _)| *change);
    Ok(Changes {
        changes: changes.into_iter().map(|(_, change)| change).collect(),
        reached: page.reached as u64,
        more: page.reached < space.head,
    })
}

/// A stretch of a space's changes: after one number up to another.
#[derive(Debug, Clone, Copy)]
struct Page<'t> {
    tenant: &'t str,
    space: i64,
    /// The place of the vectors.
    slot: Option<VectorSlot>,
    after: i64,
    reached: i64,
}

/// The number of the `limit`-th change, with which a page ends: changes that share a number are never parted. Where fewer are left, the
/// head of the space.
async fn reached(
    connection: &mut PgConnection,
    scope: &Scope,
    space: SpaceRow,
    after: i64,
    limit: u32,
    depth: Depth,
) -> Outcome<i64> {
    let query = match depth {
        Depth::Outline => {
            "SELECT change FROM (
                 (SELECT change FROM turns WHERE tenant = $1 AND space = $2 AND change > $3 ORDER BY change LIMIT $4)
                 UNION ALL (SELECT change FROM forgotten WHERE tenant = $1 AND space = $2 AND change > $3 ORDER BY change LIMIT $4)) AS next
             ORDER BY change LIMIT 1 OFFSET greatest($4, 1) - 1"
        }
        Depth::Whole => {
            "SELECT change FROM (
                 (SELECT change FROM turns WHERE tenant = $1 AND space = $2 AND change > $3 ORDER BY change LIMIT $4)
                 UNION ALL (SELECT change FROM forgotten WHERE tenant = $1 AND space = $2 AND change > $3 ORDER BY change LIMIT $4)
                 UNION ALL (SELECT change FROM derivations
                     WHERE tenant = $1 AND space = $2 AND change > $3 AND known_until IS NULL ORDER BY change LIMIT $4)
                 UNION ALL (SELECT change FROM removed_derivations
                     WHERE tenant = $1 AND space = $2 AND change > $3 ORDER BY change LIMIT $4)) AS next
             ORDER BY change LIMIT 1 OFFSET greatest($4, 1) - 1"
        }
    };
    let last: Option<i64> = sqlx::query_scalar(query)
        .bind(scope.tenant.as_str())
        .bind(space.id)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_optional(connection)
        .await?;
    Ok(last.unwrap_or(space.head.max(after)))
}

async fn forgotten_in(
    connection: &mut PgConnection,
    page: Page<'_>,
) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, id FROM forgotten WHERE tenant = $1 AND space = $2 AND change > $3 AND change <= $4 ORDER BY change",
    )
    .bind(page.tenant)
    .bind(page.space)
    .bind(page.after)
    .bind(page.reached)
    .fetch_all(connection)
    .await?;
    let forgotten = rows.iter().map(|row| {
        let id = to_turn_id(row.try_get(1)?);
        Ok((row.try_get(0)?, Change::Forgotten(id)))
    });
    forgotten.collect()
}

async fn derived_in(connection: &mut PgConnection, page: Page<'_>) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, passage, document FROM derivations
         WHERE tenant = $1 AND space = $2 AND change > $3 AND change <= $4 AND known_until IS NULL ORDER BY change",
    )
    .bind(page.tenant)
    .bind(page.space)
    .bind(page.after)
    .bind(page.reached)
    .fetch_all(&mut *connection)
    .await?;
    let derived = rows.iter().map(|row| {
        let derivation: Derivation = json(row.try_get(2)?)?;
        Ok((row.try_get(0)?, to_u32(row.try_get(1)?), derivation))
    });
    let derived: Vec<(i64, u32, Derivation)> = derived.collect::<Outcome<_>>()?;
    let runs = runs(derived.iter().map(|(_, number, _)| (*number, 1)));
    let mut passages = load_passages(connection, page.tenant, page.space, page.slot, &runs).await?;
    let changes = derived.into_iter().map(|(change, number, derivation)| {
        let passage = passages.remove(&number);
        (change, derived_change(derivation, number, passage))
    });
    Ok(changes.collect())
}

/// Derivations that were removed: by retention, or with a turn that they drew on.
async fn removed_in(connection: &mut PgConnection, page: Page<'_>) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, id FROM removed_derivations WHERE tenant = $1 AND space = $2 AND change > $3 AND change <= $4 ORDER BY change",
    )
    .bind(page.tenant)
    .bind(page.space)
    .bind(page.after)
    .bind(page.reached)
    .fetch_all(connection)
    .await?;
    let removed = rows.iter().map(|row| {
        let id = to_derivation_id(row.try_get(1)?);
        Ok((row.try_get(0)?, Change::Withdrawn(id)))
    });
    removed.collect()
}

async fn stored_in(
    connection: &mut PgConnection,
    page: Page<'_>,
    depth: Depth,
) -> Outcome<Vec<(i64, IndexedTurn)>> {
    let rows = sqlx::query(concat!(
        columns!(),
        "FROM (SELECT * FROM turns WHERE tenant = $1 AND space = $2 AND change > $3 AND change <= $4 ORDER BY change OFFSET 0) t",
        find_session!(),
        "ORDER BY t.change"
    ))
    .bind(page.tenant)
    .bind(page.space)
    .bind(page.after)
    .bind(page.reached)
    .fetch_all(&mut *connection)
    .await?;
    match depth {
        Depth::Whole => with_passages(connection, page.tenant, page.space, page.slot, &rows).await,
        Depth::Outline => rows.iter().map(turn).collect(),
    }
}

/// These turns of a space.
pub async fn indexed(
    connection: &mut PgConnection,
    scope: &Scope,
    ids: &[TurnId],
) -> Outcome<Vec<IndexedTurn>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let tenant = scope.tenant.as_str();
    let rows = sqlx::query(concat!(
        columns!(),
        "FROM (SELECT * FROM turns WHERE tenant = $1 AND space = $2 AND id = ANY ($3)) t",
        find_session!(),
    ))
    .bind(tenant)
    .bind(space.id)
    .bind(id_list(ids))
    .fetch_all(&mut *connection)
    .await?;
    let turns = with_passages(connection, tenant, space.id, space.slots.served(), &rows).await?;
    Ok(turns.into_iter().map(|(_, turn)| turn).collect())
}

/// Each with the change that brought its state.
async fn with_passages(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    slot: Option<VectorSlot>,
    rows: &[PgRow],
) -> Outcome<Vec<(i64, IndexedTurn)>> {
    let mut turns = rows.iter().map(turn).collect::<Outcome<Vec<_>>>()?;
    let ranges = turns
        .iter()
        .map(|(_, turn)| (turn.first_passage, turn.passages.len() as u32));
    let mut passages = load_passages(connection, tenant, space, slot, &runs(ranges)).await?;
    for (_, turn) in &mut turns {
        let numbers = turn.first_passage..turn.first_passage + turn.passages.len() as u32;
        turn.passages = numbers
            .filter_map(|number| passages.remove(&number))
            .collect();
    }
    Ok(turns)
}

/// Change, and turn with the lengths of its passages.
fn turn(row: &PgRow) -> Outcome<(i64, IndexedTurn)> {
    let optional_time = |index: usize| {
        row.try_get::<Option<i64>, _>(index)
            .map(|micros| micros.map(time))
    };
    let turn = IndexedTurn {
        id: to_turn_id(row.try_get(1)?),
        session: name(SessionId::new(row.try_get::<&str, _>(2)?))?,
        order: (row.try_get::<i64, _>(3)? as u64, to_u32(row.try_get(4)?)),
        speaker: name(Speaker::new(row.try_get::<&str, _>(5)?))?,
        role: to_role(row.try_get::<i16, _>(6)?.into())?,
        event_time: optional_time(7)?.transpose()?,
        recorded_at: time(row.try_get(8)?)?,
        replaced_at: optional_time(9)?.transpose()?,
        first_passage: to_u32(row.try_get(10)?),
        passages: to_lengths(row.try_get(11)?)?
            .into_iter()
            .map(|(length, words)| outlined(length, words))
            .collect(),
    };
    Ok((row.try_get(0)?, turn))
}

fn outlined(length: u32, words: u32) -> IndexedPassage {
    IndexedPassage {
        length,
        words,
        terms: Vec::new(),
        features: Vec::new(),
        sentence: None,
        pieces: Vec::new(),
    }
}

/// The passages in these runs, by their numbers.
pub async fn load_passages(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    slot: Option<VectorSlot>,
    runs: &[(u32, u32)],
) -> Outcome<HashMap<u32, IndexedPassage>> {
    if runs.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(match slot {
        Some(VectorSlot::First) => {
            "SELECT g.passage, g.length, g.terms, g.features, g.sentence, g.pieces
             FROM unnest($3::integer[], $4::integer[]) AS run(first, past)
             JOIN passages g ON g.tenant = $1 AND g.space = $2 AND g.passage >= run.first AND g.passage < run.past"
        }
        Some(VectorSlot::Second) => {
            "SELECT g.passage, g.length, g.terms, g.features, v.sentence, coalesce(v.pieces, '')
             FROM unnest($3::integer[], $4::integer[]) AS run(first, past)
             JOIN passages g ON g.tenant = $1 AND g.space = $2 AND g.passage >= run.first AND g.passage < run.past
             LEFT JOIN second_vectors v ON v.tenant = $1 AND v.space = $2 AND v.passage = g.passage"
        }
        None => {
            "SELECT g.passage, g.length, g.terms, g.features, NULL::halfvec, ''::bytea
             FROM unnest($3::integer[], $4::integer[]) AS run(first, past)
             JOIN passages g ON g.tenant = $1 AND g.space = $2 AND g.passage >= run.first AND g.passage < run.past"
        }
    })
    .bind(tenant)
    .bind(space)
    .bind(from_u32(runs.iter().map(|(first, _)| *first)))
    .bind(from_u32(runs.iter().map(|(_, past)| *past)))
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| Ok((to_u32(row.try_get(0)?), passage(row)?)))
        .collect()
}

fn passage(row: &PgRow) -> Outcome<IndexedPassage> {
    let sentence: Option<HalfVector> = row.try_get(4)?;
    let terms = to_terms(row.try_get(2)?)?;
    Ok(IndexedPassage {
        length: to_u32(row.try_get(1)?),
        words: words(&terms),
        terms,
        features: to_floats(row.try_get(3)?)?,
        sentence: sentence.as_ref().map(to_sentence),
        pieces: to_set(row.try_get(5)?)?,
    })
}
