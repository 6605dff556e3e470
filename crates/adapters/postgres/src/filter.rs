//! [`TurnFilter`] as SQL conditions over `turns t` and `sessions s`.

use memfleet_columns::{from_role, label};
use memfleet_domain::time::Timestamp;
use memfleet_ports::filter::TurnFilter;
use sqlx::{Postgres, QueryBuilder};

use crate::rows::id_list;

/// Adds ` AND …` for each condition.
pub fn push_conditions(query: &mut QueryBuilder<Postgres>, filter: &TurnFilter) {
    if !filter.turns.is_empty() {
        query.push(" AND t.id = ANY (");
        query.push_bind(id_list(&filter.turns)).push(")");
    }
    let texts = |names: &[memfleet_domain::ids::SessionId]| {
        let texts = names.iter().map(|name| name.as_str().to_owned());
        texts.collect::<Vec<_>>()
    };
    push_names(query, " AND s.name = ANY (", texts(&filter.sessions));
    push_names(
        query,
        " AND s.name <> ALL (",
        texts(&filter.excluded_sessions),
    );
    let speakers = filter.speakers.iter().map(|name| name.as_str().to_owned());
    push_names(query, " AND t.speaker = ANY (", speakers.collect());
    if !filter.roles.is_empty() {
        let roles = filter.roles.iter().map(|role| from_role(*role) as i16);
        query.push(" AND t.role = ANY (");
        query.push_bind(roles.collect::<Vec<_>>()).push(")");
    }
    let effective = " AND coalesce(t.event_time, t.recorded_at) ";
    push_time(query, effective, ">= ", filter.time.start);
    push_time(query, effective, "< ", filter.time.end);
    push_time(query, effective, "<= ", filter.as_of.happened_by);
    push_time(query, " AND t.recorded_at ", "<= ", filter.as_of.known_at);
    for (key, value) in &filter.metadata {
        query.push(
            " AND EXISTS (SELECT FROM labels l
                 WHERE l.tenant = t.tenant AND l.space = t.space AND l.turn = t.id AND l.label = ",
        );
        query.push_bind(label(key, value)).push(")");
    }
    if !filter.include_replaced {
        query.push(" AND (t.replaced_at IS NULL");
        push_time(query, " OR t.replaced_at ", "> ", filter.as_of.known_at);
        query.push(")");
    }
}

fn push_names(query: &mut QueryBuilder<Postgres>, condition: &str, names: Vec<String>) {
    if !names.is_empty() {
        query.push(condition).push_bind(names).push(")");
    }
}

fn push_time(
    query: &mut QueryBuilder<Postgres>,
    left: &str,
    comparison: &str,
    instant: Option<Timestamp>,
) {
    if let Some(instant) = instant {
        query.push(left).push(comparison);
        query.push_bind(instant.timestamp_micros());
    }
}
