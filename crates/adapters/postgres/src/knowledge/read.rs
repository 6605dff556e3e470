//! Derivations as they are or were, their versions, what changed them, and their conflicts.

use std::collections::HashMap;

use memfleet_columns::{
    asked_keys, from_kind, from_token, json, page, status_numbers, term_key, time, to_status,
    to_token,
};
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Change, Conflict, Derivation, Kind, Status};
use memfleet_domain::ids::{ChangeId, DerivationId, TurnId};
use memfleet_domain::time::AsOf;
use memfleet_ports::knowledge::{ChangeFilter, Chronicle, Question, Recorded};
use memfleet_ports::ledger::{Page, PageToken};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, QueryBuilder, Row};
use uuid::Uuid;

use crate::failure::Outcome;
use crate::rows::{from_change_id, from_derivation_id, id_list, to_change_id};
use crate::scope;

/// The columns that [`derivation`] reads.
const COLUMNS: &str = "SELECT d.document, d.known_from, d.known_until, d.first, coalesce(d.valid_from, d.known_from) FROM derivations d WHERE d.tenant = ";

pub(super) fn select(scope: &Scope, space: i64) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push_bind(scope.tenant.as_str().to_owned());
    query.push(" AND d.space = ").push_bind(space);
    query
}

/// The derivations that match, in the order of their first writing.
pub async fn derivations(
    connection: &mut PgConnection,
    scope: &Scope,
    question: &Question,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Derivation>> {
    let [first] = after.map_or(Ok([i64::MIN]), from_token)?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let mut query = select(scope, space.id);
    query.push(" AND d.first > ").push_bind(first);
    push_conditions(&mut query, scope, space.id, question);
    query
        .push(" ORDER BY d.first LIMIT ")
        .push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(connection).await?;
    page(&rows, limit as usize, derivation, |row| {
        Ok(to_token([row.try_get(3)?]))
    })
}

fn push_conditions(
    query: &mut QueryBuilder<Postgres>,
    scope: &Scope,
    space: i64,
    question: &Question,
) {
    let (kind, subject) = asked_keys(question);
    if let Some(kind) = kind {
        query.push(" AND d.kind = ").push_bind(kind as i16);
    }
    if !question.ids.is_empty() {
        let ids = question.ids.iter().map(|id| from_derivation_id(*id));
        query
            .push(" AND d.id = ANY (")
            .push_bind(ids.collect::<Vec<_>>())
            .push(")");
    }
    for (column, key) in [
        (" AND d.subject = ", subject.as_deref()),
        (" AND d.attribute = ", question.attribute.as_deref()),
    ] {
        if let Some(key) = key {
            query.push(column).push_bind(term_key(key));
        }
    }
    push_turns(query, scope, space, &question.turns);
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

fn push_turns(query: &mut QueryBuilder<Postgres>, scope: &Scope, space: i64, turns: &[TurnId]) {
    if turns.is_empty() {
        return;
    }
    query
        .push(" AND d.id = ANY (ARRAY(SELECT derivation FROM derivation_turns WHERE tenant = ")
        .push_bind(scope.tenant.as_str().to_owned());
    query.push(" AND space = ").push_bind(space);
    query
        .push(" AND turn = ANY (")
        .push_bind(id_list(turns))
        .push(")))");
}

/// The derivations of a chronicle, in the order in which they begin.
pub async fn chronicle(
    connection: &mut PgConnection,
    scope: &Scope,
    chronicle: &Chronicle,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Derivation>> {
    let [began, first] = after.map_or(Ok([i64::MIN; 2]), from_token)?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let mut query = select(scope, space.id);
    query
        .push(" AND (coalesce(d.valid_from, d.known_from), d.first) > (")
        .push_bind(began);
    query.push(", ").push_bind(first).push(")");
    push_chronicle(&mut query, scope, space.id, chronicle);
    query
        .push(" ORDER BY coalesce(d.valid_from, d.known_from), d.first LIMIT ")
        .push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(connection).await?;
    page(&rows, limit as usize, derivation, |row| {
        Ok(to_token([row.try_get(4)?, row.try_get(3)?]))
    })
}

fn push_chronicle(
    query: &mut QueryBuilder<Postgres>,
    scope: &Scope,
    space: i64,
    chronicle: &Chronicle,
) {
    if !chronicle.kinds.is_empty() {
        let kinds = chronicle.kinds.iter().map(|kind| from_kind(*kind) as i16);
        query
            .push(" AND d.kind = ANY (")
            .push_bind(kinds.collect::<Vec<_>>())
            .push(")");
    }
    if !chronicle.subjects.is_empty() {
        let subjects = chronicle.subjects.iter().map(|key| term_key(key));
        query
            .push(" AND d.subject = ANY (")
            .push_bind(subjects.collect::<Vec<_>>())
            .push(")");
    }
    push_turns(query, scope, space, &chronicle.turns);
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
fn push_instants(query: &mut QueryBuilder<Postgres>, as_of: AsOf) {
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
    connection: &mut PgConnection,
    scope: &Scope,
    subject: &str,
    as_of: AsOf,
    limit: u32,
) -> Outcome<Vec<Derivation>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let mut query = select(scope, space.id);
    query
        .push(" AND d.kind = ")
        .push_bind(from_kind(Kind::Fact) as i16);
    query.push(" AND d.subject = ").push_bind(term_key(subject));
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

/// `Derivation::worth` of a row. Operators of JSON would fail on every row of which a string has an
/// escaped zero. Keys are found in the text instead: within a string their quotes are escaped.
const WORTH: &str = r#"CASE WHEN strpos(d.document, '"origin":"corrected"') > 0 THEN 1.0
     ELSE substring(d.document from '"keep":([-+.0-9eE]+)')::float8 END"#;

/// Every version of a derivation.
pub async fn versions(
    connection: &mut PgConnection,
    scope: &Scope,
    id: DerivationId,
) -> Outcome<Vec<Derivation>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let mut query = select(scope, space.id);
    query.push(" AND d.id = ").push_bind(from_derivation_id(id));
    query.push(" ORDER BY d.version");
    let rows = query.build().fetch_all(connection).await?;
    rows.iter().map(derivation).collect()
}

/// What changed, newest first.
pub async fn changes(
    connection: &mut PgConnection,
    scope: &Scope,
    filter: &ChangeFilter,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Recorded>> {
    let [number] = after.map_or(Ok([i64::MAX]), from_token)?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let mut query = QueryBuilder::new(
        "SELECT c.document, c.reverted_by, c.number FROM changes c WHERE c.tenant = ",
    );
    query.push_bind(scope.tenant.as_str());
    query.push(" AND c.space = ").push_bind(space.id);
    query.push(" AND c.number < ").push_bind(number);
    if let Some(derivation) = filter.derivation {
        query
            .push(" AND c.id = ANY (ARRAY(SELECT written_by FROM derivations WHERE tenant = ")
            .push_bind(scope.tenant.as_str());
        query.push(" AND space = ").push_bind(space.id);
        query
            .push(" AND id = ")
            .push_bind(from_derivation_id(derivation))
            .push("))");
    }
    if !filter.ids.is_empty() {
        let ids = filter.ids.iter().map(|id| from_change_id(*id));
        query
            .push(" AND c.id = ANY (")
            .push_bind(ids.collect::<Vec<_>>())
            .push(")");
    }
    query
        .push(" ORDER BY c.number DESC LIMIT ")
        .push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(&mut *connection).await?;
    let mut page = page(&rows, limit as usize, recorded, |row| {
        Ok(to_token([row.try_get(2)?]))
    })?;
    let ids = page.items.iter().map(|recorded| recorded.change.id);
    let mut wrote = written_by(connection, scope, space.id, ids).await?;
    for recorded in &mut page.items {
        recorded.wrote = wrote.remove(&recorded.change.id).unwrap_or_default();
    }
    Ok(page)
}

fn recorded(row: &PgRow) -> Outcome<Recorded> {
    Ok(Recorded {
        change: json::<Change>(row.try_get(0)?)?,
        wrote: Vec::new(),
        reverted_by: row.try_get::<Option<Uuid>, _>(1)?.map(to_change_id),
    })
}

/// What these changes wrote, each in its order.
async fn written_by(
    connection: &mut PgConnection,
    scope: &Scope,
    space: i64,
    changes: impl Iterator<Item = ChangeId>,
) -> Outcome<HashMap<ChangeId, Vec<Derivation>>> {
    let mut query = select(scope, space);
    query
        .push(" AND d.written_by = ANY (")
        .push_bind(changes.map(from_change_id).collect::<Vec<_>>());
    query.push(") ORDER BY d.change, d.first");
    let rows = query.build().fetch_all(connection).await?;
    let mut wrote: HashMap<ChangeId, Vec<Derivation>> = HashMap::new();
    for row in &rows {
        let derivation = derivation(row)?;
        wrote.entry(derivation.change).or_default().push(derivation);
    }
    Ok(wrote)
}

/// Conflicts, oldest first.
pub async fn conflicts(
    connection: &mut PgConnection,
    scope: &Scope,
    statuses: &[Status],
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Conflict>> {
    let [number] = after.map_or(Ok([i64::MIN]), from_token)?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let rows = sqlx::query(
        "SELECT document, status, number FROM conflicts
         WHERE tenant = $1 AND space = $2 AND number > $3 AND status = ANY ($4) ORDER BY number LIMIT $5",
    )
    .bind(scope.tenant.as_str())
    .bind(space.id)
    .bind(number)
    .bind(numbers(statuses))
    .bind(i64::from(limit) + 1)
    .fetch_all(connection)
    .await?;
    page(&rows, limit as usize, conflict, |row| {
        Ok(to_token([row.try_get(2)?]))
    })
}

/// The conflicts in which one of these facts is, oldest first.
pub async fn conflicts_of(
    connection: &mut PgConnection,
    scope: &Scope,
    facts: &[DerivationId],
    statuses: &[Status],
) -> Outcome<Vec<Conflict>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let facts: Vec<Uuid> = facts.iter().map(|id| from_derivation_id(*id)).collect();
    let rows = sqlx::query(
        "SELECT document, status, number FROM conflicts
         WHERE tenant = $1 AND space = $2 AND (older = ANY ($3) OR newer = ANY ($3)) AND status = ANY ($4) ORDER BY number",
    )
    .bind(scope.tenant.as_str())
    .bind(space.id)
    .bind(facts)
    .bind(numbers(statuses))
    .fetch_all(connection)
    .await?;
    rows.iter().map(conflict).collect()
}

fn numbers(statuses: &[Status]) -> Vec<i16> {
    let statuses = status_numbers(statuses).into_iter();
    statuses.map(|status| status as i16).collect()
}

fn conflict(row: &PgRow) -> Outcome<Conflict> {
    let status = to_status(row.try_get::<i16, _>(1)?.into())?;
    let conflict: Conflict = json(row.try_get(0)?)?;
    Ok(Conflict { status, ..conflict })
}

/// The version in a row; its end is in a column, since it comes later.
pub(super) fn derivation(row: &PgRow) -> Outcome<Derivation> {
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
