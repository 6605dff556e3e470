//! Storing batches: what is known is loaded, what becomes of the turns is decided in memory, and what is new is written, each in
//! a few statements whatever the number of turns. Spaces are locked in their order, so that two commits never wait for each other.

mod load;
mod plan;
mod session;
mod write;

use std::collections::BTreeMap;

use memfleet_columns::forgotten;
use memfleet_domain::Scope;
use memfleet_ports::ledger::{Committed, IndexedBatch};
use memfleet_ports::outbox::Kind;
use memfleet_ports::store::StoreError;
use sqlx::PgConnection;

use crate::failure::Outcome;
use crate::outbox;
use crate::scope;
use crate::store::PostgresStore;
use crate::transaction::switch;

/// Stores what is new of the batches, in one transaction, and answers for each of their turns.
pub async fn commit(store: &PostgresStore, batches: &[IndexedBatch]) -> Outcome<Vec<Committed>> {
    if let Some(cause) = batches.iter().find_map(incomplete) {
        return Err(StoreError::Unexpected(cause.into()).into());
    }
    let mut scopes: BTreeMap<&Scope, Vec<(usize, &IndexedBatch)>> = BTreeMap::new();
    for (index, batch) in batches.iter().enumerate() {
        let of_scope = scopes.entry(&batch.batch.scope).or_default();
        of_scope.push((index, batch));
    }
    let Some((first, _)) = scopes.first_key_value() else {
        return Ok(Vec::new());
    };
    for embedding in batches
        .iter()
        .filter_map(|batch| batch.embedding_space.as_ref())
    {
        store.ensure_named(embedding).await?;
    }
    let mut tenant = &first.tenant;
    let mut write = store.write(tenant).await?;
    let mut committed = Vec::with_capacity(batches.len());
    for (scope, batches) in scopes {
        if scope.tenant != *tenant {
            tenant = &scope.tenant;
            switch(&mut write, tenant).await?;
        }
        committed.extend(commit_to_space(&mut write, scope, &batches).await?);
    }
    write.commit().await?;
    committed.sort_by_key(|(index, _)| *index);
    Ok(committed.into_iter().map(|(_, one)| one).collect())
}

fn incomplete(batch: &IndexedBatch) -> Option<&'static str> {
    let is_complete = batch.passages.len() == batch.batch.turns.len();
    (!is_complete).then_some("a batch has not as many lists of passages as turns")
}

/// The batches of one space, in the order given.
async fn commit_to_space(
    connection: &mut PgConnection,
    scope: &Scope,
    batches: &[(usize, &IndexedBatch)],
) -> Outcome<Vec<(usize, Committed)>> {
    let space = scope::lock_or_make(connection, scope).await?;
    // What was accepted before its space was forgotten as a whole leaves no row: the space stays gone, and the same batch may
    // come again as new.
    let is_gone = |batch: &IndexedBatch| space.is_erased_since(batch.acceptance as i64);
    let left = || batches.iter().filter(|(_, batch)| !is_gone(batch));
    let left_batches: Vec<_> = left().map(|(_, batch)| *batch).collect();
    let gone = batches.iter().filter(|(_, batch)| is_gone(batch));
    let mut committed: Vec<_> = gone
        .map(|(index, batch)| {
            let change = space.head as u64;
            let turns = forgotten(&batch.batch.turns);
            (*index, Committed { change, turns })
        })
        .collect();
    if left_batches.is_empty() {
        return Ok(committed);
    }
    let mut plan = load::load(connection, scope, space, &left_batches).await?;
    for (index, batch) in left() {
        committed.push((*index, plan.add(batch)));
    }
    write::write(connection, scope, space, &plan).await?;
    let (before, after) = (space.head, plan.space.head);
    outbox::note(connection, scope, Kind::Stored, before, after).await?;
    Ok(committed)
}
