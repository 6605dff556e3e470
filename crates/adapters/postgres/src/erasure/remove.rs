//! The deed: rows go, tombstones and receipts without content stay.

mod rows;

use std::collections::HashSet;

use memfleet_columns::{forget, settle, to_json};
use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::ledger::BatchStatus;
use memfleet_ports::outbox::Kind;
use memfleet_ports::store::StoreError;
use sqlx::PgConnection;

use super::find::Doomed;
use super::prompts;
use crate::failure::Outcome;
use crate::knowledge::forget as knowledge;
use crate::ledger::batches;
use crate::outbox;
use crate::rows::id_list;
use crate::scope::{self, SpaceRow};

/// `given_out` is the last position of acceptance of the queue.
pub async fn remove(
    connection: &mut PgConnection,
    scope: &Scope,
    doomed: &Doomed,
    given_out: i64,
) -> Outcome<()> {
    let tenant = scope.tenant.as_str();
    let mut space = match doomed.space {
        Some(space) => space,
        // Something waits for a space that has no row yet: its tombstones need one.
        None => scope::lock_or_make(connection, scope).await?,
    };
    let before = space.head;
    space.head = knowledge::of_turns(connection, tenant, space, doomed).await?;
    rows::remove(connection, tenant, space.id, doomed).await?;
    let ids = doomed.ids();
    let last = last_acceptance(doomed, given_out);
    let head = bury(connection, tenant, space, last, &ids).await?;
    outbox::note(connection, scope, Kind::Forgotten, before, head).await?;
    prompts::of_turns(connection, scope, &id_list(&ids)).await?;
    if doomed.everything {
        knowledge::of_space(connection, scope, space.id).await?;
        return remove_space(connection, tenant, space.id, last).await;
    }
    let touched = forget_receipts(connection, tenant, space.id, &ids).await?;
    let changed = settled(connection, tenant, space.id, head, doomed, touched).await?;
    batches::put(connection, tenant, space.id, &changed).await
}

/// The last position of acceptance that this forget covers: what was given out by now is from before it.
fn last_acceptance(doomed: &Doomed, given_out: i64) -> i64 {
    let stored = doomed.turns.iter().map(|turn| turn.acceptance);
    let undelivered = doomed.undelivered.all();
    let undelivered = undelivered.map(|parted| parted.acceptance as i64);
    stored.chain(undelivered).fold(given_out, i64::max)
}

/// Writes a tombstone a turn, so that indexes let go of it and a delivery that is under way does not bring it back.
/// The answer is the space's change sequence after it.
async fn bury(
    connection: &mut PgConnection,
    tenant: &str,
    space: SpaceRow,
    last: i64,
    ids: &HashSet<TurnId>,
) -> Outcome<i64> {
    sqlx::query(
        "INSERT INTO forgotten (tenant, space, id, change, acceptance)
         SELECT $1, $2, id, $3 + number, $4 FROM unnest($5::uuid[]) WITH ORDINALITY AS gone(id, number)
         ON CONFLICT (tenant, space, id) DO UPDATE SET change = excluded.change, acceptance = excluded.acceptance",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(space.head)
    .bind(last)
    .bind(id_list(ids))
    .execute(&mut *connection)
    .await?;
    let head = space.head + ids.len() as i64;
    sqlx::query(
        "UPDATE spaces SET head = $3, accepted = greatest(accepted, $4) WHERE tenant = $1 AND id = $2",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(head)
    .bind(last)
    .execute(connection)
    .await?;
    Ok(head)
}

/// What is known of the batches that held these turns: they keep the ids, and the hash of a payload that is gone goes too.
async fn forget_receipts(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    ids: &HashSet<TurnId>,
) -> Outcome<Vec<Settled>> {
    let mut touched = batches::holding(connection, tenant, space, ids).await?;
    for (_, status) in &mut touched {
        forget(&mut status.turns, |id| ids.contains(id));
        status.payload_hash = None;
    }
    Ok(touched)
}

/// A batch with what is known of it.
type Settled = (memfleet_domain::ids::BatchId, BatchStatus);

/// The same, and the batches of which nothing is left to deliver: whoever waits for one must not wait for ever. One that could not
/// be read is not among them: sent again, it is stored.
async fn settled(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    head: i64,
    doomed: &Doomed,
    touched: Vec<Settled>,
) -> Outcome<Vec<Settled>> {
    let emptied = doomed.undelivered.all().filter(|parted| parted.is_empty());
    let emptied: Vec<_> = emptied.filter(|parted| !parted.is_unreadable()).collect();
    let ids = emptied.iter().map(|parted| parted.batch);
    let mut known = batches::of(connection, tenant, space, ids).await?;
    known.extend(touched);
    for parted in &emptied {
        let status = known.entry(parted.batch).or_insert_with(|| BatchStatus {
            change: head as u64,
            payload_hash: None,
            turns: Vec::new(),
        });
        settle(&mut status.turns, &parted.gone);
    }
    Ok(known.into_iter().collect())
}

/// The row stays without name and settings, and with its counters; the name that a graph beside the store is cleared of goes with that. No delivery from up to `last` stores anything in it.
async fn remove_space(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    last: i64,
) -> Outcome<()> {
    // Whoever forgets a whole space and sends its turns again means it: no receipt may say that they are known.
    sqlx::query("DELETE FROM batches WHERE tenant = $1 AND space = $2")
        .bind(tenant)
        .bind(space)
        .execute(&mut *connection)
        .await?;
    let changed = sqlx::query(
        "UPDATE spaces SET name = NULL, language = NULL, settings = $3, retention_days = NULL, retention_turns = NULL,
             retention_superseded_days = NULL, erased = head,
             erased_acceptance = $4, embedding = NULL, second_embedding = NULL, serves_second = false, is_other_whole = false,
             embedded = NULL, second_embedded = NULL, emptying = NULL, comparison = NULL, language_embedding = NULL
         WHERE tenant = $1 AND id = $2",
    )
    .bind(tenant)
    .bind(space)
    .bind(to_json(&SpaceSettings::default()))
    .bind(last)
    .execute(connection)
    .await?;
    match changed.rows_affected() {
        1 => Ok(()),
        _ => Err(StoreError::Damaged("the row of a space is gone".into()).into()),
    }
}
