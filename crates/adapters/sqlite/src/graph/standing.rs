//! What of a write still stands: a forget may come between what it was read from and the write, and has scrubbed the file by then.

use std::collections::HashSet;

use memfleet_columns::{to_derivation_id, to_json};
use memfleet_domain::graph::Triplet;
use memfleet_domain::ids::{DerivationId, EntityId, TurnId};
use memfleet_ports::graph::GraphWrite;
use sqlx::SqliteConnection;

use crate::failure::Outcome;
use crate::rows::id_list;
use crate::scope::SpaceRow;
use crate::tombstones;

/// The write without triplets that a forgotten turn or a removed fact says, and without entities that are named in no other.
pub(super) async fn standing(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    mut write: GraphWrite,
) -> Outcome<GraphWrite> {
    let turns: Vec<TurnId> = write
        .triplets
        .iter()
        .flat_map(|it| it.turns.clone())
        .collect();
    let forgotten = tombstones::of(connection, space, &id_list(&turns)).await?;
    let removed = removed(connection, space, &write.triplets).await?;
    let stands = |it: &Triplet| {
        let is_forgotten = it.turns.iter().any(|turn| forgotten.contains_key(turn));
        !is_forgotten && !removed.contains(&it.fact)
    };
    let before = write.triplets.len();
    write.triplets.retain(stands);
    if write.triplets.len() < before {
        let ends = write.triplets.iter().flat_map(|it| [it.subject, it.object]);
        let ends: HashSet<EntityId> = ends.collect();
        write.entities.retain(|entity| ends.contains(&entity.id));
    }
    Ok(write)
}

async fn removed(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    triplets: &[Triplet],
) -> Outcome<HashSet<DerivationId>> {
    let facts: Vec<DerivationId> = triplets.iter().map(|it| it.fact).collect();
    let removed: Vec<Vec<u8>> = sqlx::query_scalar(
        "SELECT id FROM removed_derivations r WHERE space = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?))
             AND NOT EXISTS (SELECT 1 FROM derivations d WHERE d.space = r.space AND d.id = r.id)",
    )
    .bind(space.id)
    .bind(to_json(&facts))
    .fetch_all(connection)
    .await?;
    let ids = removed.iter().map(|id| Ok(to_derivation_id(id)?));
    ids.collect()
}
