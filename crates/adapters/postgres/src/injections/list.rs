//! The statement that lists injections, from the table that has those that match in order.

use memfleet_columns::bounds;
use memfleet_domain::ids::{InjectionId, TenantId};
use memfleet_ports::injections::InjectionFilter;
use sqlx::{Postgres, QueryBuilder};

use super::from_injection_id;

/// What is selected of as many as `limit` of those before `place`, the newest first.
pub fn query(
    select: &'static str,
    tenant: &TenantId,
    filter: &InjectionFilter,
    place: (i64, InjectionId),
    limit: u32,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(select);
    let table = push_matching(&mut query, tenant, filter);
    let (at, id) = place;
    query.push(format_args!(" AND ({table}.at, {table}.id) < ("));
    query.push_bind(at).push(", ");
    query.push_bind(from_injection_id(id));
    query.push(format_args!(
        ") ORDER BY {table}.at DESC, {table}.id DESC LIMIT "
    ));
    query.push_bind(i64::from(limit));
    query
}

/// From where injections come that match, each once; the answer is the table that has them in order.
fn push_matching(
    query: &mut QueryBuilder<Postgres>,
    tenant: &TenantId,
    filter: &InjectionFilter,
) -> &'static str {
    let table = match (&filter.turn, &filter.space) {
        (Some((space, turn)), _) => {
            query.push(" FROM injection_turns n JOIN injections i ON i.tenant = n.tenant AND i.id = n.id WHERE n.space = ");
            query.push_bind(space.as_str().to_owned());
            query.push(" AND n.turn = ");
            query.push_bind(crate::rows::from_turn_id(turn));
            "n"
        }
        (None, Some(space)) => {
            query.push(" FROM injection_spaces n JOIN injections i ON i.tenant = n.tenant AND i.id = n.id WHERE n.space = ");
            query.push_bind(space.as_str().to_owned());
            "n"
        }
        (None, None) => {
            query.push(" FROM injections i WHERE true");
            "i"
        }
    };
    query.push(format_args!(" AND {table}.tenant = "));
    query.push_bind(tenant.as_str().to_owned());
    if let (Some(_), Some(space)) = (&filter.turn, &filter.space) {
        query.push(" AND EXISTS (SELECT FROM injection_spaces o WHERE o.tenant = i.tenant AND o.id = i.id AND o.space = ");
        query.push_bind(space.as_str().to_owned()).push(")");
    }
    if let Some(session) = &filter.session {
        query.push(" AND i.session = ");
        query.push_bind(session.as_str().to_owned());
    }
    let [start, end] = bounds(&filter.time);
    query
        .push(format_args!(" AND {table}.at >= "))
        .push_bind(start);
    query
        .push(format_args!(" AND {table}.at < "))
        .push_bind(end);
    table
}
