//! Changes after a sequence number: turns and what is derived from them in their present state, and tombstones.

use std::collections::HashMap;

use memfleet_columns::{
    derived_change, json, name, runs, time, to_floats, to_lengths, to_role, to_set, to_terms,
};
use memfleet_domain::Scope;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_ports::feed::{Change, Changes, IndexedPassage, IndexedTurn, words};
use pgvector::HalfVector;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::ledger::to_sentence;
use crate::rows::{find_session, from_u32, id_list, to_derivation_id, to_turn_id, to_u32};
use crate::scope;

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

/// The changes of a space after `after`.
pub async fn after(
    connection: &mut PgConnection,
    scope: &Scope,
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
    let tenant = scope.tenant.as_str();
    let stored = stored_after(connection, tenant, space.id, after, limit, depth).await?;
    let mut changes: Vec<(i64, Change)> = stored
        .into_iter()
        .map(|(change, turn)| (change, Change::Stored(Box::new(turn))))
        .collect();
    changes.extend(forgotten_after(connection, tenant, space.id, after, limit).await?);
    if depth == Depth::Whole {
        changes.extend(derived_after(connection, tenant, space.id, after, limit).await?);
        changes.extend(removed_after(connection, tenant, space.id, after, limit).await?);
    }
    let full = changes.len() >= limit as usize;
    changes.sort_by_key(|(change, _)| *change);
    changes.truncate(limit as usize);
    let reached = match changes.last() {
        Some((change, _)) if full => *change,
        _ => space.head.max(after),
    };
    Ok(Changes {
        changes: changes.into_iter().map(|(_, change)| change).collect(),
        reached: reached as u64,
        more: reached < space.head,
    })
}

async fn forgotten_after(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    after: i64,
    limit: u32,
) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, id FROM forgotten WHERE tenant = $1 AND space = $2 AND change > $3 ORDER BY change LIMIT $4",
    )
    .bind(tenant)
    .bind(space)
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    let forgotten = rows.iter().map(|row| {
        let id = to_turn_id(row.try_get(1)?);
        Ok((row.try_get(0)?, Change::Forgotten(id)))
    });
    forgotten.collect()
}

async fn derived_after(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    after: i64,
    limit: u32,
) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, passage, document FROM derivations
         WHERE tenant = $1 AND space = $2 AND change > $3 AND known_until IS NULL ORDER BY change LIMIT $4",
    )
    .bind(tenant)
    .bind(space)
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    let derived = rows.iter().map(|row| {
        let derivation: Derivation = json(row.try_get(2)?)?;
        Ok((row.try_get(0)?, to_u32(row.try_get(1)?), derivation))
    });
    let derived: Vec<(i64, u32, Derivation)> = derived.collect::<Outcome<_>>()?;
    let runs = runs(derived.iter().map(|(_, number, _)| (*number, 1)));
    let mut passages = load_passages(connection, tenant, space, &runs).await?;
    let changes = derived.into_iter().map(|(change, number, derivation)| {
        let passage = passages.remove(&number);
        (change, derived_change(derivation, number, passage))
    });
    Ok(changes.collect())
}

/// What was derived and was removed: by retention, or with a turn that it drew on.
async fn removed_after(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    after: i64,
    limit: u32,
) -> Outcome<Vec<(i64, Change)>> {
    let rows = sqlx::query(
        "SELECT change, id FROM removed_derivations WHERE tenant = $1 AND space = $2 AND change > $3 ORDER BY change LIMIT $4",
    )
    .bind(tenant)
    .bind(space)
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    let removed = rows.iter().map(|row| {
        let id = to_derivation_id(row.try_get(1)?);
        Ok((row.try_get(0)?, Change::Withdrawn(id)))
    });
    removed.collect()
}

async fn stored_after(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    after: i64,
    limit: u32,
    depth: Depth,
) -> Outcome<Vec<(i64, IndexedTurn)>> {
    // The limit comes first, so that no plan joins all that is left.
    let rows = sqlx::query(concat!(
        columns!(),
        "FROM (SELECT * FROM turns WHERE tenant = $1 AND space = $2 AND change > $3 ORDER BY change LIMIT $4) t",
        find_session!(),
        "ORDER BY t.change"
    ))
    .bind(tenant)
    .bind(space)
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    match depth {
        Depth::Whole => with_passages(connection, tenant, space, &rows).await,
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
    let turns = with_passages(connection, tenant, space.id, &rows).await?;
    Ok(turns.into_iter().map(|(_, turn)| turn).collect())
}

/// Each with the change that brought its state.
async fn with_passages(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    rows: &[PgRow],
) -> Outcome<Vec<(i64, IndexedTurn)>> {
    let mut turns = rows.iter().map(turn).collect::<Outcome<Vec<_>>>()?;
    let ranges = turns
        .iter()
        .map(|(_, turn)| (turn.first_passage, turn.passages.len() as u32));
    let mut passages = load_passages(connection, tenant, space, &runs(ranges)).await?;
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
    runs: &[(u32, u32)],
) -> Outcome<HashMap<u32, IndexedPassage>> {
    if runs.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(
        "SELECT g.passage, g.length, g.terms, g.features, g.sentence, g.pieces
         FROM unnest($3::integer[], $4::integer[]) AS run(first, past)
         JOIN passages g ON g.tenant = $1 AND g.space = $2 AND g.passage >= run.first AND g.passage < run.past",
    )
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
