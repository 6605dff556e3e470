//! The ingestion queue: a table in the same file. What is taken is remembered in memory only, so that a restart hands it
//! out again.

mod depth;
mod letters;
pub(crate) mod publish;
pub(crate) mod taking;

use async_trait::async_trait;
use memfleet_columns::{json, space_key, to_json};
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::queue::{
    Bounds, DeadLetter, Delivery, Depth, Depths, IngestQueue, POSTPONED, Place, Published,
};
use memfleet_ports::store::Result;
use sqlx::{Row, SqliteConnection};
use tokio::time::Instant;

use self::depth::Waiting;
use crate::failure::Outcome;
use crate::store::SqliteStore;

#[async_trait]
impl IngestQueue for SqliteStore {
    async fn publish(&self, batch: &Batch, now: Timestamp, bounds: Bounds) -> Result<Published> {
        self.shared.publisher.publish(batch, now, bounds).await
    }

    async fn take(&self, turns: u32) -> Result<Vec<Delivery>> {
        let mut held = self.shared.held.lock().await;
        held.release_due(Instant::now());
        loop {
            let chosen = {
                let mut read = self.read().await?;
                taking::choose(&mut read, &held, turns).await?
            };
            if chosen.acceptances.is_empty() {
                return Ok(Vec::new());
            }
            let ids = to_json(&chosen.acceptances);
            let mut write = self.write_briefly_as_worker().await?;
            taking::count_attempts(&mut write, &ids).await?;
            write.commit().await?;
            let deliveries = match self.deliver(&ids).await {
                Ok(deliveries) => deliveries,
                Err(error) => {
                    // Nobody tried them.
                    let acceptances = chosen.acceptances.iter().map(|it| *it as u64);
                    self.discount(&acceptances.collect::<Vec<_>>()).await?;
                    return Err(error.into());
                }
            };
            // None is left when all were unreadable and are buried now: there may be others behind them.
            if !deliveries.is_empty() {
                held.note(&deliveries, chosen);
                return Ok(deliveries);
            }
        }
    }

    async fn acknowledge(&self, acceptances: &[u64]) -> Result<()> {
        let mut write = self.write_briefly_as_worker().await?;
        remove(&mut write, acceptances).await?;
        write.commit().await?;
        self.let_go(acceptances).await;
        Ok(())
    }

    async fn release(&self, acceptances: &[u64]) -> Result<()> {
        self.let_go(acceptances).await;
        self.shared.ready.notify_one();
        Ok(())
    }

    async fn release_untried(&self, acceptances: &[u64]) -> Result<()> {
        if acceptances.is_empty() {
            return Ok(());
        }
        let counted = self.discount(acceptances).await;
        // Given back in any case: what stays held would wait for a restart.
        self.release(acceptances).await?;
        Ok(counted?)
    }

    async fn postpone(&self, acceptances: &[u64]) -> Result<()> {
        if acceptances.is_empty() {
            return Ok(());
        }
        let counted = self.discount(acceptances).await;
        let due = Instant::now() + POSTPONED;
        self.shared.held.lock().await.postpone(acceptances, due);
        Ok(counted?)
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<()> {
        let mut write = self.write().await?;
        letters::put(&mut write, letter, &self.shared.letters).await?;
        remove(&mut write, &[letter.acceptance]).await?;
        write.commit().await?;
        self.let_go(&[letter.acceptance]).await;
        Ok(())
    }

    async fn place(&self, scope: &Scope, batch: BatchId) -> Result<Option<Place>> {
        Ok(place(&mut *self.look_up().await?, scope, batch).await?)
    }

    async fn waiting(&self, scope: &Scope, batch: BatchId) -> Result<Option<Batch>> {
        Ok(waiting(&mut *self.read().await?, scope, batch).await?)
    }

    async fn buried(&self, scope: &Scope, batch: BatchId) -> Result<Option<DeadLetter>> {
        Ok(letters::of_batch(&mut *self.read().await?, scope, batch).await?)
    }

    async fn waiting_span(&self, scope: &Scope) -> Result<Option<(u64, u64)>> {
        Ok(waiting_span(&mut *self.look_up().await?, scope).await?)
    }

    async fn waiting_spaces(&self, tenant: &TenantId, limit: usize) -> Result<Vec<SpaceId>> {
        Ok(waiting_spaces(&mut *self.read().await?, tenant, limit).await?)
    }

    async fn buried_spaces(&self, tenant: &TenantId) -> Result<Vec<SpaceId>> {
        Ok(letters::spaces(&mut *self.read().await?, tenant).await?)
    }

    async fn dead_letters(
        &self,
        tenant: &TenantId,
        space: Option<&SpaceId>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<DeadLetter>> {
        Ok(letters::list(&mut *self.read().await?, tenant, space, limit, after).await?)
    }

    async fn replay(&self, scope: &Scope, acceptances: &[u64]) -> Result<u64> {
        let mut write = self.write().await?;
        let batches = letters::replay(&mut write, scope, acceptances).await?;
        write.commit().await?;
        self.shared.ready.notify_one();
        Ok(batches)
    }

    async fn depth(&self, tenant: Option<&TenantId>) -> Result<Depths> {
        let waiting = Waiting::with_letters(&mut *self.read().await?).await?;
        Ok(waiting.depths(tenant.map(TenantId::as_str)))
    }

    async fn waiting_depth(&self, tenant: &TenantId) -> Result<Depth> {
        let waiting = Waiting::queued(&mut *self.read_once().await?).await?;
        Ok(waiting.depths(Some(tenant.as_str())).own)
    }

    async fn ready(&self) {
        let due = self.shared.held.lock().await.next_due();
        tokio::select! {
            () = self.shared.ready.notified() => {}
            () = until(due) => {}
        }
    }
}

impl SqliteStore {
    /// The chosen rows as deliveries. Those that are none become dead letters.
    async fn deliver(&self, chosen: &str) -> Outcome<Vec<Delivery>> {
        let taken = taking::read(&mut *self.read_once().await?, chosen).await?;
        let (deliveries, spoiled) = taking::parsed(taken).await?;
        if !spoiled.is_empty() {
            let mut write = self.write_briefly_as_worker().await?;
            taking::bury(&mut write, spoiled, &self.shared.letters).await?;
            write.commit().await?;
        }
        Ok(deliveries)
    }

    /// Takes back the attempt that [`IngestQueue::take`] counted.
    async fn discount(&self, acceptances: &[u64]) -> Outcome<()> {
        let mut write = self.write_briefly_as_worker().await?;
        taking::discount(&mut write, &to_json(&acceptances)).await?;
        write.commit().await
    }

    async fn let_go(&self, acceptances: &[u64]) {
        let mut held = self.shared.held.lock().await;
        for acceptance in acceptances {
            held.acceptances.remove(&(*acceptance as i64));
        }
    }
}

/// Returns at this instant, and never where there is none.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn remove(connection: &mut SqliteConnection, acceptances: &[u64]) -> Outcome<()> {
    sqlx::query("DELETE FROM queue WHERE acceptance IN (SELECT value FROM json_each(?))")
        .bind(to_json(&acceptances))
        .execute(connection)
        .await?;
    Ok(())
}

async fn place(
    connection: &mut SqliteConnection,
    scope: &Scope,
    batch: BatchId,
) -> Outcome<Option<Place>> {
    let row = sqlx::query(
        "SELECT EXISTS (SELECT 1 FROM queue WHERE space_key = ?1 AND batch = ?2),
             EXISTS (SELECT 1 FROM dead_letters WHERE space_key = ?1 AND batch = ?2)",
    )
    .bind(space_key(scope))
    .bind(batch.as_bytes().as_slice())
    .fetch_one(connection)
    .await?;
    Ok(match (row.try_get(0)?, row.try_get(1)?) {
        (true, _) => Some(Place::Waiting),
        (false, true) => Some(Place::Buried),
        (false, false) => None,
    })
}

async fn waiting(
    connection: &mut SqliteConnection,
    scope: &Scope,
    batch: BatchId,
) -> Outcome<Option<Batch>> {
    let payload: Option<String> =
        sqlx::query_scalar("SELECT payload FROM queued WHERE space_key = ? AND batch = ?")
            .bind(space_key(scope))
            .bind(batch.as_bytes().as_slice())
            .fetch_optional(connection)
            .await?;
    Ok(payload.as_deref().map(json).transpose()?)
}

async fn waiting_spaces(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    limit: usize,
) -> Outcome<Vec<SpaceId>> {
    let youngest: Vec<i64> = sqlx::query_scalar(
        "SELECT max(acceptance) FROM queue WHERE tenant = ? GROUP BY space_key ORDER BY 1 DESC LIMIT ?",
    )
    .bind(tenant.as_str())
    .bind(limit as i64)
    .fetch_all(&mut *connection)
    .await?;
    let mut spaces = Vec::with_capacity(youngest.len());
    // One at a time: a payload may be as large as a request.
    for acceptance in youngest {
        let payload: Option<String> =
            sqlx::query_scalar("SELECT payload FROM queued WHERE acceptance = ?")
                .bind(acceptance)
                .fetch_optional(&mut *connection)
                .await?;
        // A batch that cannot be read is left out: it becomes a dead letter.
        let batch = payload.and_then(|payload| json::<Batch>(&payload).ok());
        spaces.extend(batch.map(|batch| batch.scope.space));
    }
    Ok(spaces)
}

async fn waiting_span(
    connection: &mut SqliteConnection,
    scope: &Scope,
) -> Outcome<Option<(u64, u64)>> {
    let row = sqlx::query("SELECT min(acceptance), max(acceptance) FROM queue WHERE space_key = ?")
        .bind(space_key(scope))
        .fetch_one(connection)
        .await?;
    let (first, last): (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    Ok(first
        .zip(last)
        .map(|(first, last)| (first as u64, last as u64)))
}
