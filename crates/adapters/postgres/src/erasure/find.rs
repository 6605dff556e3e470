//! What a filter means, ready to be removed.

use std::collections::{HashMap, HashSet};

use memfleet_columns::name;
use memfleet_domain::Scope;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_ports::erasure::{DependentCounts, Erased};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::undelivered::Matching;
use sqlx::{PgConnection, QueryBuilder, Row};

use super::dependents;
use crate::failure::Outcome;
use crate::filter::push_conditions;
use crate::rows::{join_sessions, to_turn_id, to_u32};
use crate::scope::SpaceRow;

pub struct Doomed {
    /// Its row, alive or erased.
    pub space: Option<SpaceRow>,
    pub turns: Vec<DoomedTurn>,
    /// Sessions that lose all their turns, …
    pub emptied: Vec<(i64, SessionId)>,
    /// … and those that lose some, with how many.
    pub thinned: Vec<(i64, i64)>,
    pub undelivered: Matching,
    pub dependents: DependentCounts,
    /// The filter means the whole space.
    pub everything: bool,
}

pub struct DoomedTurn {
    pub id: TurnId,
    pub session: i64,
    pub acceptance: i64,
    pub first_passage: u32,
    pub passages: u32,
}

impl Doomed {
    pub fn is_something(&self) -> bool {
        !self.turns.is_empty() || !self.undelivered.is_empty() || self.removes_space()
    }

    fn removes_space(&self) -> bool {
        self.everything && self.space.is_some_and(|space| space.is_alive)
    }

    /// Every turn that goes, stored or not.
    pub fn ids(&self) -> HashSet<TurnId> {
        let undelivered = self.undelivered.all();
        let undelivered = undelivered.flat_map(|parted| parted.gone.iter().copied());
        let stored = self.turns.iter().map(|turn| turn.id);
        stored.chain(undelivered).collect()
    }

    pub fn erased(&self) -> Erased {
        let emptied = self.emptied.iter().map(|(_, name)| name.clone());
        Erased {
            turns: self.turns.iter().map(|turn| turn.id).collect(),
            emptied_sessions: emptied.collect(),
            passages: self.turns.iter().map(|turn| u64::from(turn.passages)).sum(),
            undelivered: self.undelivered.turns(),
            unreadable: self.undelivered.unreadable(),
            versions: 0,
            dependents: self.dependents,
            space: self.removes_space(),
        }
    }
}

/// What a filter that includes replaced turns means; refused of a space on hold.
pub async fn find(
    connection: &mut PgConnection,
    scope: &Scope,
    space: Option<SpaceRow>,
    filter: &TurnFilter,
    undelivered: Matching,
) -> Outcome<Doomed> {
    let found = match space {
        Some(space) => {
            space.refuse_hold()?;
            turns(connection, scope.tenant.as_str(), space.id, filter).await?
        }
        None => Vec::new(),
    };
    let everything = filter.is_everything();
    let mut doomed = doom(connection, scope, space, found, undelivered, everything).await?;
    doomed.dependents = dependents::count(connection, scope, &doomed).await?;
    Ok(doomed)
}

/// These turns of a space, with what hangs on them.
pub async fn doom(
    connection: &mut PgConnection,
    scope: &Scope,
    space: Option<SpaceRow>,
    turns: Vec<DoomedTurn>,
    undelivered: Matching,
    everything: bool,
) -> Outcome<Doomed> {
    let mut doomed = Doomed {
        space,
        turns,
        emptied: Vec::new(),
        thinned: Vec::new(),
        undelivered,
        dependents: DependentCounts::default(),
        everything,
    };
    let Some(space) = space else {
        return Ok(doomed);
    };
    let mut lost: HashMap<i64, i64> = HashMap::new();
    for turn in &doomed.turns {
        *lost.entry(turn.session).or_default() += 1;
    }
    let rows = sqlx::query(
        "SELECT id, name, turns FROM sessions WHERE tenant = $1 AND space = $2 AND id = ANY ($3) ORDER BY started_at, id",
    )
    .bind(scope.tenant.as_str())
    .bind(space.id)
    .bind(lost.keys().copied().collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    for row in rows {
        let session: i64 = row.try_get(0)?;
        let gone = lost[&session];
        if gone == row.try_get::<i64, _>(2)? {
            let name = name(SessionId::new(row.try_get::<&str, _>(1)?))?;
            doomed.emptied.push((session, name));
        } else {
            doomed.thinned.push((session, gone));
        }
    }
    Ok(doomed)
}

/// The turns that match, and every older version of them.
pub async fn turns(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    filter: &TurnFilter,
) -> Outcome<Vec<DoomedTurn>> {
    let mut query = QueryBuilder::new(concat!(
        "WITH RECURSIVE doomed(id, replaces, session, acceptance, ordinal, first_passage, passages) AS (
             SELECT t.id, t.replaces, t.session, t.acceptance, t.ordinal, t.first_passage, t.passages FROM turns t",
        join_sessions!(),
        "WHERE t.tenant = "
    ));
    query
        .push_bind(tenant)
        .push(" AND t.space = ")
        .push_bind(space);
    push_conditions(&mut query, filter);
    query.push(
        " UNION SELECT o.id, o.replaces, o.session, o.acceptance, o.ordinal, o.first_passage, o.passages
          FROM doomed d JOIN turns o ON o.id = d.replaces AND o.tenant = ",
    );
    query
        .push_bind(tenant)
        .push(" AND o.space = ")
        .push_bind(space);
    query.push(
        ") SELECT id, session, acceptance, first_passage, passages FROM doomed ORDER BY session, acceptance, ordinal",
    );
    let rows = query.build().fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            Ok(DoomedTurn {
                id: to_turn_id(row.try_get(0)?),
                session: row.try_get(1)?,
                acceptance: row.try_get(2)?,
                first_passage: to_u32(row.try_get(3)?),
                passages: to_u32(row.try_get(4)?),
            })
        })
        .collect()
}
