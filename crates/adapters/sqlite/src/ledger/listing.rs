//! Reading turns: by id, page by page, and version by version.

use std::collections::HashMap;

use futures::TryStreamExt;
use memfleet_columns::{GrowingPage, from_token, to_token};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{Page, PageToken};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use crate::failure::Outcome;
use crate::filter::push_conditions;
use crate::rows::{self, id_list, turn_columns};
use crate::scope;

/// The turns with these ids, in the order of the ids.
pub async fn turns(
    connection: &mut SqliteConnection,
    scope: &Scope,
    ids: &[TurnId],
) -> Outcome<Vec<Turn>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM turns t JOIN sessions s ON s.id = t.session
         WHERE t.space = ? AND t.id IN (SELECT unhex(value, '-') FROM json_each(?))"
    ))
    .bind(space.id)
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
    connection: &mut SqliteConnection,
    scope: &Scope,
    turn: TurnId,
) -> Outcome<Vec<Turn>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let rows = sqlx::query(concat!(
        "WITH RECURSIVE
           older(id, replaces) AS (
             SELECT id, replaces FROM turns WHERE space = ?1 AND id = ?2
             UNION SELECT o.id, o.replaces FROM older n JOIN turns o ON o.space = ?1 AND o.id = n.replaces),
           newer(id) AS (
             VALUES (?2)
             UNION SELECT n.id FROM newer o JOIN turns n ON n.space = ?1 AND n.replaces = o.id)
         SELECT ", turn_columns!(), " FROM turns t JOIN sessions s ON s.id = t.session
         WHERE t.space = ?1 AND t.id IN (SELECT id FROM older UNION SELECT id FROM newer)
         ORDER BY t.acceptance, t.ordinal, t.key"
    ))
    .bind(space.id)
    .bind(turn.as_bytes().as_slice())
    .fetch_all(connection)
    .await?;
    rows.iter().map(rows::turn).collect()
}

/// The turns right before one in its session, oldest first.
pub async fn preceding(
    connection: &mut SqliteConnection,
    scope: &Scope,
    turn: TurnId,
    limit: u32,
) -> Outcome<Vec<Turn>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM turns o JOIN turns t ON t.session = o.session JOIN sessions s ON s.id = t.session
         WHERE o.space = ? AND o.id = ? AND (t.acceptance, t.ordinal) < (o.acceptance, o.ordinal)
             AND t.replaced_by IS NULL
         ORDER BY t.acceptance DESC, t.ordinal DESC LIMIT ?"
    ))
    .bind(space.id)
    .bind(turn.as_bytes().as_slice())
    .bind(limit)
    .fetch_all(connection)
    .await?;
    rows.iter().rev().map(rows::turn).collect()
}

/// The turns that a session ends with, oldest first.
pub async fn latest(
    connection: &mut SqliteConnection,
    scope: &Scope,
    session: &SessionId,
    limit: u32,
) -> Outcome<Vec<Turn>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM sessions s JOIN turns t ON t.session = s.id
         WHERE s.space = ? AND s.name = ? AND t.replaced_by IS NULL
         ORDER BY t.acceptance DESC, t.ordinal DESC LIMIT ?"
    ))
    .bind(space.id)
    .bind(session.as_str())
    .bind(limit)
    .fetch_all(connection)
    .await?;
    rows.iter().rev().map(rows::turn).collect()
}

/// Where a page ended: start and id of the session, then the order inside it.
type Place = [i64; 4];

/// A page of the turns that match. It first finishes the session in which the page before ended, then goes on with the
/// sessions after it: both are ranges of an index.
pub async fn list(
    connection: &mut SqliteConnection,
    scope: &Scope,
    filter: &TurnFilter,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Turn>> {
    let empty = Page {
        items: Vec::new(),
        next: None,
    };
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(empty);
    };
    let place: Option<Place> = after.map(from_token).transpose()?;
    let mut page = GrowingPage::new(limit);
    if let Some([_, session, acceptance, ordinal]) = place {
        let mut query = select();
        query.push(" t.session = ").push_bind(session);
        query.push(" AND t.space = ").push_bind(space.id);
        push_accepted_after(
            &mut query,
            [acceptance, ordinal],
            filter,
            page.wanted() as i64,
        );
        fill(&mut page, connection, &mut query, place_in_sessions).await?;
    }
    if !page.is_over() {
        let mut query = select();
        query.push(" s.space = ").push_bind(space.id);
        if let Some([started, session, ..]) = place {
            query
                .push(" AND (s.started_at, s.id) > (")
                .push_bind(started);
            query.push(", ").push_bind(session).push(")");
        }
        push_conditions(&mut query, filter);
        query.push(" ORDER BY s.started_at, s.id, t.acceptance, t.ordinal LIMIT ");
        query.push_bind(page.wanted() as i64);
        fill(&mut page, connection, &mut query, place_in_sessions).await?;
    }
    Ok(page.done())
}

/// Adds the turns of a query to a page until that is over: what does not belong to it is not read.
async fn fill(
    page: &mut GrowingPage<Turn>,
    connection: &mut SqliteConnection,
    query: &mut QueryBuilder<Sqlite>,
    token: impl Fn(&SqliteRow) -> Outcome<PageToken>,
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

fn place_in_sessions(row: &SqliteRow) -> Outcome<PageToken> {
    Ok(to_token([
        row.try_get(17)?,
        row.try_get(18)?,
        row.try_get(15)?,
        row.try_get(16)?,
    ]))
}

/// A page of the turns that match, in the order of acceptance.
pub async fn list_accepted(
    connection: &mut SqliteConnection,
    scope: &Scope,
    filter: &TurnFilter,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Turn>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Page {
            items: Vec::new(),
            next: None,
        });
    };
    let after = after.map_or(Ok([i64::MIN, i64::MIN]), from_token)?;
    let mut query = QueryBuilder::<Sqlite>::new(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM turns t CROSS JOIN sessions s ON s.id = t.session WHERE t.space = "
    ));
    query.push_bind(space.id);
    push_accepted_after(&mut query, after, filter, i64::from(limit) + 1);
    let mut page = GrowingPage::new(limit);
    let token = |row: &SqliteRow| Ok(to_token([row.try_get(15)?, row.try_get(16)?]));
    fill(&mut page, connection, &mut query, token).await?;
    Ok(page.done())
}

/// Sessions lead, so that their index gives the order.
fn select() -> QueryBuilder<Sqlite> {
    QueryBuilder::new(concat!(
        "SELECT ",
        turn_columns!(),
        " FROM sessions s CROSS JOIN turns t ON t.session = s.id WHERE"
    ))
}

/// What was accepted after a place (acceptance, ordinal), and matches, in that order.
fn push_accepted_after(
    query: &mut QueryBuilder<Sqlite>,
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
