//! Removing turns for good. One search decides what goes, for the plan and for the deed.

mod dependents;
mod expire;
mod prompts;
mod remove;
mod undelivered;

use std::collections::HashSet;

use async_trait::async_trait;
use memfleet_columns::{name, to_json, to_turn_id};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::erasure::{DependentCounts, Erased, Erasure};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::{Matching, Unreadable};
use sqlx::{QueryBuilder, Row, SqliteConnection};

use crate::failure::Outcome;
use crate::filter::push_conditions;
use crate::scope::{self, SpaceRow};
use crate::scrub;
use crate::store::SqliteStore;

#[async_trait]
impl Erasure for SqliteStore {
    async fn plan(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        self.list_waiting().await?;
        let mut read = self.read().await?;
        Ok(find(&mut read, scope, filter).await?.erased())
    }

    async fn remove(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        let mut write = self.write_as_worker().await?;
        dependents::list_waiting(&mut write).await?;
        let doomed = find(&mut write, scope, filter).await?;
        let erased = doomed.erased();
        let mut is_something = doomed.is_something();
        if is_something {
            remove::remove(&mut write, scope, &doomed).await?;
        }
        if doomed.everything {
            is_something |= prompts::of_space(&mut write, scope).await?;
        }
        if is_something {
            scrub::due(&mut write).await?;
            write.commit().await?;
        }
        Ok(erased)
    }

    async fn expire(&self, scope: &Scope, now: Timestamp, most: u32) -> Result<Erased> {
        let mut write = self.write_as_worker().await?;
        let erased = expire::expire(&mut write, scope, now, most).await?;
        if erased != Erased::default() {
            scrub::due(&mut write).await?;
            write.commit().await?;
        }
        Ok(erased)
    }

    async fn scrub(&self) -> Result<()> {
        Ok(scrub::finish(self).await?)
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<Scope>> {
        Ok(expire::expired(&mut *self.read().await?, now).await?)
    }
}

/// What a filter means, ready to be removed.
struct Doomed {
    space: Option<SpaceRow>,
    turns: Vec<DoomedTurn>,
    /// Sessions that lose turns, and the names of those that lose all.
    sessions: Vec<i64>,
    emptied_sessions: Vec<SessionId>,
    undelivered: Matching,
    dependents: DependentCounts,
    /// The filter means the whole space.
    everything: bool,
}

struct DoomedTurn {
    key: i64,
    id: TurnId,
    acceptance: i64,
    first_passage: u32,
    passages: u32,
}

impl Doomed {
    fn is_something(&self) -> bool {
        !self.turns.is_empty() || !self.undelivered.is_empty() || self.removes_space()
    }

    fn removes_space(&self) -> bool {
        self.everything && self.space.is_some()
    }

    fn keys(&self) -> String {
        to_json(&self.turns.iter().map(|turn| turn.key).collect::<Vec<_>>())
    }

    /// Every turn that goes, stored or not.
    fn ids(&self) -> HashSet<TurnId> {
        let undelivered = self.undelivered.all();
        let undelivered = undelivered.flat_map(|parted| parted.gone.iter().copied());
        let stored = self.turns.iter().map(|turn| turn.id);
        stored.chain(undelivered).collect()
    }

    /// Turns that go and were not stored yet.
    fn undelivered_alone(&self) -> u64 {
        let stored: HashSet<TurnId> = self.turns.iter().map(|turn| turn.id).collect();
        let undelivered = self.undelivered.all();
        let undelivered = undelivered.flat_map(|parted| &parted.gone);
        undelivered.filter(|turn| !stored.contains(turn)).count() as u64
    }

    fn erased(&self) -> Erased {
        Erased {
            turns: self.turns.iter().map(|turn| turn.id).collect(),
            emptied_sessions: self.emptied_sessions.clone(),
            passages: self.turns.iter().map(|turn| u64::from(turn.passages)).sum(),
            undelivered: self.undelivered_alone(),
            unreadable: self.undelivered.unreadable(),
            versions: 0,
            dependents: self.dependents,
            space: self.removes_space(),
        }
    }
}

/// What a filter means; refused of a space on hold.
async fn find(
    connection: &mut SqliteConnection,
    scope: &Scope,
    filter: &TurnFilter,
) -> Outcome<Doomed> {
    let filter = TurnFilter {
        include_replaced: true,
        ..filter.clone()
    };
    let space = scope::find(connection, scope).await?;
    let turns = match space {
        Some(space) => {
            space.refuse_hold()?;
            find_turns(connection, space.id, &filter).await?
        }
        None => Vec::new(),
    };
    let stored = turns.iter().map(|turn| turn.id).collect();
    let undelivered =
        undelivered::find(connection, scope, Some(&filter), &stored, Unreadable::All).await?;
    let everything = filter.is_everything();
    let mut doomed = doom(connection, space, turns, undelivered, everything).await?;
    doomed.dependents = dependents::count(connection, scope, &doomed).await?;
    Ok(doomed)
}

/// These turns of a space, with what hangs on them.
async fn doom(
    connection: &mut SqliteConnection,
    space: Option<SpaceRow>,
    turns: Vec<DoomedTurn>,
    undelivered: Matching,
    everything: bool,
) -> Outcome<Doomed> {
    let mut doomed = Doomed {
        space: None,
        turns,
        sessions: Vec::new(),
        emptied_sessions: Vec::new(),
        undelivered,
        dependents: DependentCounts::default(),
        everything,
    };
    let Some(space) = space else {
        return Ok(doomed);
    };
    doomed.space = alive(connection, space.id).await?.then_some(space);
    let rows = sqlx::query(
        "SELECT s.id, s.name, NOT EXISTS (
             SELECT 1 FROM turns t WHERE t.session = s.id AND t.key NOT IN (SELECT value FROM json_each(?1)))
         FROM sessions s WHERE s.id IN (
             SELECT session FROM turns WHERE key IN (SELECT value FROM json_each(?1))) ORDER BY s.started_at, s.id",
    )
    .bind(doomed.keys())
    .fetch_all(connection)
    .await?;
    for row in rows {
        doomed.sessions.push(row.try_get(0)?);
        if row.try_get(2)? {
            doomed
                .emptied_sessions
                .push(name(SessionId::new(row.try_get::<&str, _>(1)?))?);
        }
    }
    Ok(doomed)
}

async fn alive(connection: &mut SqliteConnection, space: i64) -> Outcome<bool> {
    let alive = sqlx::query_scalar("SELECT name IS NOT NULL FROM spaces WHERE id = ?");
    Ok(alive.bind(space).fetch_one(connection).await?)
}

/// The turns that match, and every older version of them.
async fn find_turns(
    connection: &mut SqliteConnection,
    space: i64,
    filter: &TurnFilter,
) -> Outcome<Vec<DoomedTurn>> {
    let mut query = QueryBuilder::new(
        "WITH RECURSIVE doomed(key, replaces) AS (
             SELECT t.key, t.replaces FROM turns t JOIN sessions s ON s.id = t.session WHERE t.space = ",
    );
    query.push_bind(space);
    push_conditions(&mut query, filter);
    query.push(" UNION SELECT o.key, o.replaces FROM doomed d JOIN turns o ON o.id = d.replaces AND o.space = ");
    query.push_bind(space);
    query.push(
        ") SELECT t.key, t.id, t.acceptance, t.first_passage, t.passages FROM doomed d JOIN turns t ON t.key = d.key
         ORDER BY t.session, t.acceptance, t.ordinal",
    );
    let rows = query.build().fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            Ok(DoomedTurn {
                key: row.try_get(0)?,
                id: to_turn_id(row.try_get(1)?)?,
                acceptance: row.try_get(2)?,
                first_passage: row.try_get(3)?,
                passages: row.try_get(4)?,
            })
        })
        .collect()
}
