//! [`TurnFilter`] as SQL conditions over `turns t JOIN sessions s`.

use memfleet_columns::{from_role, label, to_json};
use memfleet_domain::time::Timestamp;
use memfleet_ports::filter::TurnFilter;
use sqlx::{QueryBuilder, Sqlite};

use crate::rows::id_list;

/// Adds ` AND …` for each condition.
pub fn push_conditions(query: &mut QueryBuilder<Sqlite>, filter: &TurnFilter) {
    if !filter.turns.is_empty() {
        query.push(" AND t.id IN (SELECT unhex(value, '-') FROM json_each(");
        query.push_bind(id_list(&filter.turns)).push("))");
    }
    push_list(query, " AND s.name IN ", &filter.sessions);
    push_list(query, " AND s.name NOT IN ", &filter.excluded_sessions);
    push_list(query, " AND t.speaker IN ", &filter.speakers);
    let roles: Vec<i64> = filter.roles.iter().copied().map(from_role).collect();
    push_list(query, " AND t.role IN ", &roles);
    let effective = " AND coalesce(t.event_time, t.recorded_at) ";
    push_time(query, effective, ">= ", filter.time.start);
    push_time(query, effective, "< ", filter.time.end);
    push_time(query, effective, "<= ", filter.as_of.happened_by);
    push_time(query, " AND t.recorded_at ", "<= ", filter.as_of.known_at);
    for (key, value) in &filter.metadata {
        query.push(" AND EXISTS (SELECT 1 FROM labels l WHERE l.space = t.space AND l.turn = t.key AND l.label = ");
        query.push_bind(label(key, value)).push(")");
    }
    if !filter.include_replaced {
        query.push(" AND (t.replaced_at IS NULL");
        push_time(query, " OR t.replaced_at ", "> ", filter.as_of.known_at);
        query.push(")");
    }
}

fn push_list<T: serde::Serialize>(query: &mut QueryBuilder<Sqlite>, condition: &str, values: &[T]) {
    if !values.is_empty() {
        query.push(condition).push("(SELECT value FROM json_each(");
        query.push_bind(to_json(&values)).push("))");
    }
}

fn push_time(
    query: &mut QueryBuilder<Sqlite>,
    left: &str,
    comparison: &str,
    instant: Option<Timestamp>,
) {
    if let Some(instant) = instant {
        query.push(left).push(comparison);
        query.push_bind(instant.timestamp_micros());
    }
}
