//! Reading turns: by id, page by page, and version by version.

use std::collections::HashMap;

use futures::TryStreamExt;
use memfleet_columns::{GrowingPage, from_token, space_key, to_token};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{Page, PageToken};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, QueryBuilder, Row};

use crate::failure::Outcome;
use crate::filter::push_conditions;
use crate::rows::{self, find_session, from_turn_id, id_list, join_sessions, turn_columns};
use crate::scope::space_id;

/// The turns with these ids, in the order of the ids.
pub async fn turns(
    connection: &mut PgConnection,
    scope: &Scope,
    ids: &[TurnId],
) -> Outcome<Vec<Turn>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM turns t",
        join_sessions!(),
        "WHERE t.tenant = $1 AND t.space = ",
        space_id!(),
        " AND t.id = ANY ($3)"
    ))
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(id_list(ids))
    .fetch_all(connection)
    .await?;
    let found = rows.iter().map(rows::turn).collect::<Outcome<Vec<_>>>()?;
    let by_id: HashMap<TurnId, Turn> = found
        .into_iter()
        .map(|turn| (turn.accepted.id, turn))
        .collect();
    Ok(ids.iter().filter_map(|id| by_id.get(id).cloned()).collect())
}

/// Every version of a turn, oldest first.
pub async fn history(
    connection: &mut PgConnection,
    scope: &Scope,
    turn: TurnId,
) -> Outcome<Vec<Turn>> {
    let rows = sqlx::query(concat!(
        "WITH RECURSIVE
           here(space) AS MATERIALIZED ",
        space_id!(),
        ",
           older(id, replaces) AS (
             SELECT t.id, t.replaces FROM turns t
             WHERE t.tenant = $1 AND t.space = (SELECT space FROM here) AND t.id = $3
             UNION SELECT o.id, o.replaces FROM older n
             JOIN turns o ON o.tenant = $1 AND o.space = (SELECT space FROM here) AND o.id = n.replaces),
           newer(id) AS (
             SELECT $3
             UNION SELECT n.id FROM newer o
             JOIN turns n ON n.tenant = $1 AND n.space = (SELECT space FROM here) AND n.replaces = o.id)
         SELECT ",
        turn_columns!(),
        " FROM (SELECT id FROM older UNION SELECT id FROM newer) versions
         JOIN turns t ON t.tenant = $1 AND t.space = (SELECT space FROM here) AND t.id = versions.id",
        join_sessions!(),
        "ORDER BY t.acceptance, t.ordinal, t.change"
    ))
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(from_turn_id(&turn))
    .fetch_all(connection)
    .await?;
    rows.iter().map(rows::turn).collect()
}

/// The turns right before one in its session, oldest first.
pub async fn preceding(
    connection: &mut PgConnection,
    scope: &Scope,
    turn: TurnId,
    limit: u32,
) -> Outcome<Vec<Turn>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM turns o JOIN turns t ON t.tenant = o.tenant AND t.space = o.space AND t.session = o.session",
        join_sessions!(),
        "WHERE o.tenant = $1 AND o.space = ",
        space_id!(),
        " AND o.id = $3 AND (t.acceptance, t.ordinal) < (o.acceptance, o.ordinal) AND t.replaced_by IS NULL
         ORDER BY t.acceptance DESC, t.ordinal DESC LIMIT $4"
    ))
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(from_turn_id(&turn))
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    rows.iter().rev().map(rows::turn).collect()
}

/// The turns that a session ends with, oldest first.
pub async fn latest(
    connection: &mut PgConnection,
    scope: &Scope,
    session: &SessionId,
    limit: u32,
) -> Outcome<Vec<Turn>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM turns t",
        join_sessions!(),
        "WHERE t.tenant = $1 AND t.space = ",
        space_id!(),
        " AND s.name = $3 AND t.replaced_by IS NULL
         ORDER BY t.acceptance DESC, t.ordinal DESC LIMIT $4"
    ))
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(session.as_str())
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    rows.iter().rev().map(rows::turn).collect()
}

/// Where a page ended: start and id of the session, then the order inside it.
type Place = [i64; 4];

/// A page of the turns that match. It first finishes the session in which the page before ended, then goes on with the
/// sessions after it: both are ranges of an index.
pub async fn list(
    connection: &mut PgConnection,
    scope: &Scope,
    filter: &TurnFilter,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Turn>> {
    let place: Option<Place> = after.map(from_token).transpose()?;
    let mut page = GrowingPage::new(limit);
    if let Some([_, session, acceptance, ordinal]) = place {
        let mut query = select(scope);
        query.push(" AND t.session = ").push_bind(session);
        push_accepted_after(
            &mut query,
            [acceptance, ordinal],
            filter,
            page.wanted() as i64,
        );
        fill(&mut page, connection, &mut query, place_in_sessions).await?;
    }
    if !page.is_over() {
        let mut query = select_by_session(scope, place, filter, page.wanted() as i64);
        fill(&mut page, connection, &mut query, place_in_sessions).await?;
    }
    Ok(page.done())
}

/// Adds the turns of a query to a page until that is over: what does not belong to it is not kept.
async fn fill(
    page: &mut GrowingPage<Turn>,
    connection: &mut PgConnection,
    query: &mut QueryBuilder<Postgres>,
    token: impl Fn(&PgRow) -> Outcome<PageToken>,
) -> Outcome<()> {
    let mut rows = query.build().fetch(connection);
    while !page.is_over()
        && let Some(row) = rows.try_next().await?
    {
        let turn = rows::turn(&row)?;
        let bytes = turn.accepted.bytes();
        page.add(turn, bytes, token(&row)?);
    }
    Ok(())
}

fn place_in_sessions(row: &PgRow) -> Outcome<PageToken> {
    let ordinal: i32 = row.try_get(16)?;
    Ok(to_token([
        row.try_get(17)?,
        row.try_get(18)?,
        row.try_get(15)?,
        ordinal.into(),
    ]))
}

/// A page of the turns that match, in the order of acceptance.
pub async fn list_accepted(
    connection: &mut PgConnection,
    scope: &Scope,
    filter: &TurnFilter,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Turn>> {
    let after = after.map_or(Ok([i64::MIN, i64::MIN]), from_token)?;
    let mut query = select(scope);
    push_accepted_after(&mut query, after, filter, i64::from(limit) + 1);
    let mut page = GrowingPage::new(limit);
    let token = |row: &PgRow| {
        let ordinal: i32 = row.try_get(16)?;
        Ok(to_token([row.try_get(15)?, ordinal.into()]))
    };
    fill(&mut page, connection, &mut query, token).await?;
    Ok(page.done())
}

/// Turns of a space.
fn select(scope: &Scope) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM turns t",
        find_session!(),
        "WHERE t.tenant = "
    ));
    query.push_bind(scope.tenant.as_str().to_owned());
    query.push(" AND t.space = ");
    push_space(&mut query, scope);
    query
}

/// Turns of the sessions after a place. Sessions lead, and each gives what a page can use of it at most: so both indexes give the
/// order, and of a long session no more is read than of a short one.
fn select_by_session(
    scope: &Scope,
    place: Option<Place>,
    filter: &TurnFilter,
    wanted: i64,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM sessions s CROSS JOIN LATERAL (
             SELECT t.* FROM turns t WHERE t.tenant = s.tenant AND t.space = s.space AND t.session = s.id"
    ));
    push_conditions(&mut query, filter);
    query
        .push(" ORDER BY t.acceptance, t.ordinal LIMIT ")
        .push_bind(wanted);
    query.push(") t WHERE s.tenant = ");
    query.push_bind(scope.tenant.as_str().to_owned());
    query.push(" AND s.space = ");
    push_space(&mut query, scope);
    if let Some([started, session, ..]) = place {
        query
            .push(" AND (s.started_at, s.id) > (")
            .push_bind(started);
        query.push(", ").push_bind(session).push(")");
    }
    query.push(" ORDER BY s.started_at, s.id, t.acceptance, t.ordinal LIMIT ");
    query.push_bind(wanted);
    query
}

fn push_space(query: &mut QueryBuilder<Postgres>, scope: &Scope) {
    query.push("(SELECT id FROM spaces WHERE tenant = ");
    query.push_bind(scope.tenant.as_str().to_owned());
    query
        .push(" AND key = ")
        .push_bind(space_key(scope))
        .push(")");
}

/// What was accepted after a place (acceptance, ordinal), and matches, in that order.
fn push_accepted_after(
    query: &mut QueryBuilder<Postgres>,
    [acceptance, ordinal]: [i64; 2],
    filter: &TurnFilter,
    limit: i64,
) {
    query
        .push(" AND (t.acceptance, t.ordinal) > (")
        .push_bind(acceptance);
    query.push(", ").push_bind(ordinal).push(")");
    push_conditions(query, filter);
    query
        .push(" ORDER BY t.acceptance, t.ordinal LIMIT ")
        .push_bind(limit);
}
