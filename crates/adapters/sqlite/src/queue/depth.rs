//! How full the queue is. It is asked whenever something is published, so it is read from indexes alone, never from the rows with
//! their payloads.

use std::collections::HashMap;

use memfleet_columns::time;
use memfleet_ports::queue::{Depth, Depths};
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;

const QUEUED: &str =
    "SELECT tenant, count(*), sum(turns), sum(bytes), min(accepted_at) FROM queue GROUP BY tenant";
const BURIED: &str = "SELECT tenant, count(*) FROM dead_letters GROUP BY tenant";

/// What waits, tenant by tenant.
#[derive(Debug, Default)]
pub struct Waiting(HashMap<String, Depth>);

impl Waiting {
    /// The queue alone, which is all that bounds what may be published.
    pub async fn queued(connection: &mut SqliteConnection) -> Outcome<Self> {
        let mut waiting = Self::default();
        for row in sqlx::query(QUEUED).fetch_all(connection).await? {
            let queued = Depth {
                batches: row.try_get::<i64, _>(1)? as u64,
                turns: row.try_get::<i64, _>(2)? as u64,
                bytes: row.try_get::<i64, _>(3)? as u64,
                oldest: Some(time(row.try_get(4)?)?),
                dead_letters: 0,
            };
            waiting.add(row.try_get(0)?, queued);
        }
        Ok(waiting)
    }

    /// The queue and the dead letters.
    pub async fn with_letters(connection: &mut SqliteConnection) -> Outcome<Self> {
        let mut waiting = Self::queued(connection).await?;
        for row in sqlx::query(BURIED).fetch_all(connection).await? {
            let buried = Depth {
                dead_letters: row.try_get::<i64, _>(1)? as u64,
                ..Depth::default()
            };
            waiting.add(row.try_get(0)?, buried);
        }
        Ok(waiting)
    }

    /// Counts more of a tenant.
    pub fn add(&mut self, tenant: &str, more: Depth) {
        let depth = self.0.entry(tenant.to_owned()).or_default();
        *depth = depth.with(more);
    }

    /// What waits of a tenant, and of all.
    pub fn depths(&self, tenant: Option<&str>) -> Depths {
        let own = tenant.and_then(|tenant| self.0.get(tenant));
        Depths {
            own: own.copied().unwrap_or_default(),
            all: self.0.values().copied().fold(Depth::default(), Depth::with),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Options, SqliteStore};

    #[tokio::test]
    async fn no_row_is_read_to_tell_how_full_the_queue_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.db");
        let store = SqliteStore::open(path, Options::default()).await.unwrap();
        for (query, scan) in [
            (QUEUED, "SCAN queue USING COVERING INDEX queue_by_tenant"),
            (
                BURIED,
                "SCAN dead_letters USING COVERING INDEX dead_letters_by_tenant",
            ),
        ] {
            let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
            let mut read = store.read().await.unwrap();
            let plan = sqlx::query(explain).fetch_all(&mut *read).await.unwrap();
            let steps: Vec<String> = plan.iter().map(|step| step.get("detail")).collect();
            assert_eq!(steps, [scan]);
        }
    }
}
