//! Derivations as they are or were, their versions, what changed them, and their conflicts.

use memfleet_columns::{
    asked_keys, cut, from_kind, from_token, json, page, status_numbers, time, to_change_id,
    to_json, to_status, to_token,
};
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Change, Conflict, Derivation, Kind, Status};
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::time::AsOf;
use memfleet_ports::knowledge::{ChangeFilter, Chronicle, Question, Recorded};
use memfleet_ports::ledger::{Page, PageToken};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use crate::failure::Outcome;
use crate::rows::id_list;
use crate::scope;

/// The columns that [`derivation`] reads.
pub(super) const COLUMNS: &str = "SELECT d.document, d.known_from, d.known_until, d.first, coalesce(d.valid_from, d.known_from) FROM derivations d WHERE d.space = ";

/// The derivations that match, in the order of their first writing.
pub async fn derivations(
    connection: &mut SqliteConnection,
    scope: &Scope,
    question: &Question,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Derivation>> {
    let [key] = after.map_or(Ok([i64::MIN]), from_token)?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    // What names few derivations is looked up by that name: the index of the order would go through all of the space.
    let first = if is_narrow(question) {
        "+d.first"
    } else {
        "d.first"
    };
    let mut query = QueryBuilder::new(COLUMNS);
    query.push_bind(space.id);
    query.push(" AND ").push(first).push(" > ").push_bind(key);
    push_conditions(&mut query, space.id, question);
    query
        .push(" ORDER BY ")
        .push(first)
        .push(" LIMIT ")
        .push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(connection).await?;
    page(&rows, limit as usize, derivation, |row| {
        Ok(to_token([row.try_get(3)?]))
    })
}

fn is_narrow(question: &Question) -> bool {
    let is_named = question.subject.is_some() || question.narrative.is_some();
    is_named || !question.ids.is_empty() || !question.turns.is_empty()
}

fn push_conditions(query: &mut QueryBuilder<Sqlite>, space: i64, question: &Question) {
    let (kind, subject) = asked_keys(question);
    if let Some(kind) = kind {
        query.push(" AND d.kind = ").push_bind(kind);
    }
    if !question.ids.is_empty() {
        query
            .push(" AND d.id IN (SELECT unhex(value, '-') FROM json_each(")
            .push_bind(to_json(&question.ids))
            .push("))");
    }
    for (column, key) in [
        (" AND d.subject = ", subject.as_deref()),
        (" AND d.attribute = ", question.attribute.as_deref()),
    ] {
        if let Some(key) = key {
            query.push(column).push_bind(key.to_owned());
        }
    }
    push_turns(query, space, &question.turns);
    if question.after > 0 {
        query
            .push(" AND d.change > ")
            .push_bind(question.after.cast_signed());
    }
    push_instants(query, question.as_of);
    if !question.withdrawn {
        query.push(HELD);
    }
}

/// That it holds at some instant.
const HELD: &str = " AND coalesce(d.valid_from < d.valid_until, true)";

fn push_turns(query: &mut QueryBuilder<Sqlite>, space: i64, turns: &[TurnId]) {
    if turns.is_empty() {
        return;
    }
    query
        .push(" AND d.id IN (SELECT derivation FROM derivation_turns WHERE space = ")
        .push_bind(space);
    query
        .push(" AND turn IN (SELECT unhex(value, '-') FROM json_each(")
        .push_bind(id_list(turns))
        .push(")))");
}

/// The derivations of a chronicle, in the order in which they begin.
pub async fn chronicle(
    connection: &mut SqliteConnection,
    scope: &Scope,
    chronicle: &Chronicle,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Derivation>> {
    let [began, first] = after.map_or(Ok([i64::MIN; 2]), from_token)?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let mut query = QueryBuilder::new(COLUMNS);
    query.push_bind(space.id);
    query
        .push(" AND (coalesce(d.valid_from, d.known_from), d.first) > (")
        .push_bind(began);
    query.push(", ").push_bind(first).push(")");
    push_chronicle(&mut query, space.id, chronicle);
    query
        .push(" ORDER BY coalesce(d.valid_from, d.known_from), d.first LIMIT ")
        .push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(connection).await?;
    page(&rows, limit as usize, derivation, |row| {
        Ok(to_token([row.try_get(4)?, row.try_get(3)?]))
    })
}

fn push_chronicle(query: &mut QueryBuilder<Sqlite>, space: i64, chronicle: &Chronicle) {
    if !chronicle.kinds.is_empty() {
        let kinds: Vec<i64> = chronicle.kinds.iter().copied().map(from_kind).collect();
        query
            .push(" AND d.kind IN (SELECT value FROM json_each(")
            .push_bind(to_json(&kinds))
            .push("))");
    }
    if !chronicle.subjects.is_empty() {
        query
            .push(" AND d.subject IN (SELECT value FROM json_each(")
            .push_bind(to_json(&chronicle.subjects))
            .push("))");
    }
    push_turns(query, space, &chronicle.turns);
    for (comparison, instant) in [
        (" >= ", chronicle.begins.start),
        (" < ", chronicle.begins.end),
    ] {
        if let Some(instant) = instant {
            query
                .push(" AND coalesce(d.valid_from, d.known_from)")
                .push(comparison)
                .push_bind(instant.timestamp_micros());
        }
    }
    push_instants(query, chronicle.as_of);
    query.push(HELD);
}

/// The version that was known at an instant, and whether it held at one.
fn push_instants(query: &mut QueryBuilder<Sqlite>, as_of: AsOf) {
    match as_of.known_at {
        None => _ = query.push(" AND d.known_until IS NULL"),
        Some(instant) => {
            let micros = instant.timestamp_micros();
            query.push(" AND d.known_from <= ").push_bind(micros);
            query
                .push(" AND coalesce(d.known_until > ")
                .push_bind(micros)
                .push(", true)");
        }
    }
    if let Some(instant) = as_of.happened_by {
        let micros = instant.timestamp_micros();
        query
            .push(" AND coalesce(d.valid_from <= ")
            .push_bind(micros)
            .push(", true)");
        query
            .push(" AND coalesce(d.valid_until > ")
            .push_bind(micros)
            .push(", true)");
    }
}

/// Facts of a subject that have a worth, by it.
pub async fn worthiest(
    connection: &mut SqliteConnection,
    scope: &Scope,
    subject: &str,
    as_of: AsOf,
    limit: u32,
) -> Outcome<Vec<Derivation>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let mut query = QueryBuilder::new(COLUMNS);
    query.push_bind(space.id);
    let kind = from_kind(Kind::Fact);
    query.push(" AND d.kind = ").push_bind(kind);
    query
        .push(" AND d.subject = ")
        .push_bind(subject.to_owned());
    push_instants(&mut query, as_of);
    query.push(HELD);
    // The worth of a row is dear: it is told once, and those without one come last.
    query
        .push(" ORDER BY ")
        .push(WORTH)
        .push(" DESC NULLS LAST, coalesce(d.valid_from, d.known_from), d.id LIMIT ")
        .push_bind(i64::from(limit));
    let rows = query.build().fetch_all(connection).await?;
    let mut facts: Vec<Derivation> = rows.iter().map(derivation).collect::<Outcome<_>>()?;
    facts.retain(|fact| fact.worth().is_some());
    Ok(facts)
}

/// `Derivation::worth` of a row.
const WORTH: &str = "CASE WHEN json_extract(d.document, '$.origin') = 'corrected' THEN 1.0 \
     ELSE json_extract(d.document, '$.body.fact.statement.keep') END";

/// Every version of a derivation.
pub async fn versions(
    connection: &mut SqliteConnection,
    scope: &Scope,
    id: DerivationId,
) -> Outcome<Vec<Derivation>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let mut query = QueryBuilder::new(COLUMNS);
    query.push_bind(space.id);
    query.push(" AND d.id = ").push_bind(id.as_bytes().to_vec());
    query.push(" ORDER BY d.version");
    let rows = query.build().fetch_all(connection).await?;
    rows.iter().map(derivation).collect()
}

/// What changed, newest first.
pub async fn changes(
    connection: &mut SqliteConnection,
    scope: &Scope,
    filter: &ChangeFilter,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Recorded>> {
    let [key] = after.map_or(Ok([i64::MAX]), from_token)?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let mut query = QueryBuilder::new(
        "SELECT c.document, c.reverted_by, c.key, c.id FROM changes c WHERE c.space = ",
    );
    query.push_bind(space.id);
    query.push(" AND c.key < ").push_bind(key);
    if let Some(derivation) = filter.derivation {
        query
            .push(" AND c.id IN (SELECT written_by FROM derivations WHERE space = ")
            .push_bind(space.id);
        query
            .push(" AND id = ")
            .push_bind(derivation.as_bytes().to_vec())
            .push(")");
    }
    if !filter.ids.is_empty() {
        query
            .push(" AND c.id IN (SELECT unhex(value, '-') FROM json_each(")
            .push_bind(to_json(&filter.ids))
            .push("))");
    }
    query
        .push(" ORDER BY c.key DESC LIMIT ")
        .push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(&mut *connection).await?;
    let mut recorded = Vec::with_capacity(rows.len());
    for row in rows {
        let change: Change = json(row.try_get(0)?)?;
        let by = row
            .try_get::<Option<&[u8]>, _>(1)?
            .map(to_change_id)
            .transpose()?;
        let wrote = written_by(connection, space.id, row.try_get(3)?).await?;
        recorded.push((
            Recorded {
                change,
                wrote,
                reverted_by: by,
            },
            row.try_get::<i64, _>(2)?,
        ));
    }
    let page = cut(recorded, limit, |(_, key)| to_token([*key]));
    Ok(Page {
        items: page
            .items
            .into_iter()
            .map(|(recorded, _)| recorded)
            .collect(),
        next: page.next,
    })
}

async fn written_by(
    connection: &mut SqliteConnection,
    space: i64,
    change: &[u8],
) -> Outcome<Vec<Derivation>> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push_bind(space);
    query
        .push(" AND d.written_by = ")
        .push_bind(change.to_vec());
    query.push(" ORDER BY d.key");
    let rows = query.build().fetch_all(connection).await?;
    rows.iter().map(derivation).collect()
}

/// Conflicts, oldest first.
pub async fn conflicts(
    connection: &mut SqliteConnection,
    scope: &Scope,
    statuses: &[Status],
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Conflict>> {
    let [key] = after.map_or(Ok([i64::MIN]), from_token)?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let rows = sqlx::query(
        "SELECT document, status, key FROM conflicts
         WHERE space = ? AND key > ? AND status IN (SELECT value FROM json_each(?)) ORDER BY key LIMIT ?",
    )
    .bind(space.id)
    .bind(key)
    .bind(to_json(&status_numbers(statuses)))
    .bind(i64::from(limit) + 1)
    .fetch_all(connection)
    .await?;
    page(&rows, limit as usize, conflict, |row| {
        Ok(to_token([row.try_get(2)?]))
    })
}

/// The conflicts in which one of these facts is, oldest first.
pub async fn conflicts_of(
    connection: &mut SqliteConnection,
    scope: &Scope,
    facts: &[DerivationId],
    statuses: &[Status],
) -> Outcome<Vec<Conflict>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let rows = sqlx::query(
        "WITH facts AS (SELECT unhex(value, '-') AS id FROM json_each(?2))
         SELECT document, status, key FROM conflicts WHERE key IN (
             SELECT key FROM conflicts WHERE space = ?1 AND older IN (SELECT id FROM facts)
             UNION SELECT key FROM conflicts WHERE space = ?1 AND newer IN (SELECT id FROM facts))
         AND status IN (SELECT value FROM json_each(?3)) ORDER BY key",
    )
    .bind(space.id)
    .bind(to_json(&facts))
    .bind(to_json(&status_numbers(statuses)))
    .fetch_all(connection)
    .await?;
    rows.iter().map(conflict).collect()
}

fn conflict(row: &SqliteRow) -> Outcome<Conflict> {
    let status = to_status(row.try_get(1)?)?;
    let conflict: Conflict = json(row.try_get(0)?)?;
    Ok(Conflict { status, ..conflict })
}

/// The version in a row; its end is in a column, since it comes later.
pub(super) fn derivation(row: &SqliteRow) -> Outcome<Derivation> {
    let mut derivation: Derivation = json(row.try_get(0)?)?;
    derivation.known.start = Some(time(row.try_get(1)?)?);
    derivation.known.end = row.try_get::<Option<i64>, _>(2)?.map(time).transpose()?;
    Ok(derivation)
}

fn nothing<T>() -> Page<T> {
    Page {
        items: Vec::new(),
        next: None,
    }
}
