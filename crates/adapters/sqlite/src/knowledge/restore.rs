//! Histories that callers decided about: which there are, and one in place of what is known.

use std::collections::HashSet;

use memfleet_columns::{from_kind, to_derivation_id, to_json};
use memfleet_domain::Scope;
use memfleet_domain::derivation::Kind;
use memfleet_domain::ids::{ChangeId, DerivationId};
use memfleet_ports::knowledge::{Applied, RestoredHistory, Revision};
use sqlx::SqliteConnection;

use super::apply::Applying;
use super::forget;
use crate::failure::Outcome;
use crate::rows::id_list;
use crate::scope;

/// Facts and namings of which a decision wrote a version, by id.
pub async fn decided(
    connection: &mut SqliteConnection,
    scope: &Scope,
    limit: u32,
    after: Option<DerivationId>,
) -> Outcome<Vec<DerivationId>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let ids: Vec<Vec<u8>> = sqlx::query_scalar(
        "SELECT DISTINCT d.id FROM changes c JOIN derivations d ON d.space = c.space AND d.written_by = c.id
         WHERE c.space = ?1 AND c.document ->> 'kind' IN ('corrected', 'reverted') AND d.kind IN (?2, ?3) AND d.id > ?4
         ORDER BY d.id LIMIT ?5",
    )
    .bind(space.id)
    .bind(from_kind(Kind::Fact))
    .bind(from_kind(Kind::Identity))
    .bind(after.map_or(Vec::new(), |id| id.as_bytes().to_vec()))
    .bind(limit)
    .fetch_all(connection)
    .await?;
    ids.iter().map(|id| Ok(to_derivation_id(id)?)).collect()
}

/// Replaces what is known of a derivation, or says that it is stale; then nothing may be committed.
pub async fn restore(
    connection: &mut SqliteConnection,
    scope: &Scope,
    restoration: &RestoredHistory,
) -> Outcome<Applied> {
    let memory = &restoration.memory;
    let (Some(space), Some(id)) = (scope::find_alive(connection, scope).await?, memory.id()) else {
        return Ok(Applied::Stale);
    };
    let mut applying = Applying::new(connection, space);
    if !applying.rests_on(id, restoration).await? {
        return Ok(Applied::Stale);
    }
    let ids = to_json(&[hex(id)]);
    forget::remove(applying.connection, space.id, &ids).await?;
    let mut recorded: HashSet<ChangeId> = HashSet::new();
    let mut ended = None;
    for (version, passage) in memory.versions.iter().zip(&restoration.passages) {
        if recorded.insert(version.change.id) {
            applying.record(&version.change).await?;
        }
        let revision = Revision {
            derivation: version.derivation.clone(),
            passage: passage.clone(),
        };
        let known = version.derivation.known;
        let at = known.start.unwrap_or(version.change.at);
        applying.write(&revision, ended.unwrap_or(at), at).await?;
        ended = known.end;
    }
    for conflict in &memory.conflicts {
        applying.find(conflict).await?;
    }
    applying.read_again(restoration).await?;
    applying.finish().await
}

fn hex(id: DerivationId) -> String {
    id.to_string().replace('-', "")
}

impl Applying<'_> {
    /// True where the version that goes is the one that is known, and all turns are stored. Refused
    /// where it was known before a legal hold began.
    async fn rests_on(&mut self, id: DerivationId, restoration: &RestoredHistory) -> Outcome<bool> {
        let (known, known_from): (Option<u32>, Option<i64>) = sqlx::query_as(
            "SELECT max(version), min(known_from) FROM derivations WHERE space = ? AND id = ?",
        )
        .bind(self.space.id)
        .bind(id.as_bytes().as_slice())
        .fetch_one(&mut *self.connection)
        .await?;
        self.space.refuse_hold_since(known_from)?;
        let turns = restoration.memory.turns();
        let stored: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM turns WHERE space = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?))",
        )
        .bind(self.space.id)
        .bind(id_list(&turns))
        .fetch_one(&mut *self.connection)
        .await?;
        Ok(known.unwrap_or(0) == restoration.instead_of && stored == turns.len() as i64)
    }

    /// Has agents read its turns again: one that read them before the history came may have derived
    /// it, and what is beside it, in a change that counts as made now.
    async fn read_again(&mut self, restoration: &RestoredHistory) -> Outcome<()> {
        let touched = sqlx::query(
            "UPDATE turns SET change = ?2 + 1 + touched.key FROM json_each(?3) AS touched
             WHERE turns.space = ?1 AND turns.id = unhex(touched.value, '-')",
        )
        .bind(self.space.id)
        .bind(self.space.head)
        .bind(id_list(&restoration.memory.turns()))
        .execute(&mut *self.connection)
        .await?;
        self.space.head += touched.rows_affected() as i64;
        Ok(())
    }
}
