//! How full the queue is. It is asked whenever something is published, so it is read from indexes alone, never from the rows with
//! their payloads.

use std::collections::HashMap;

use memfleet_ports::queue::{Depth, Depths};
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::rows::time;

const BY_TENANT: &str =
    "SELECT tenant, count(*), sum(turns), sum(bytes), min(accepted_at), 0 FROM queue GROUP BY tenant
     UNION ALL
     SELECT tenant, 0, 0, 0, NULL, count(*) FROM dead_letters GROUP BY tenant";

/// What waits, tenant by tenant.
#[derive(Debug, Default)]
pub struct Waiting(HashMap<String, Depth>);

impl Waiting {
    pub async fn read(connection: &mut SqliteConnection) -> Outcome<Self> {
        let mut waiting = Self::default();
        for row in sqlx::query(BY_TENANT).fetch_all(connection).await? {
            let part = Depth {
                batches: row.try_get::<i64, _>(1)? as u64,
                turns: row.try_get::<i64, _>(2)? as u64,
                bytes: row.try_get::<i64, _>(3)? as u64,
                oldest: row.try_get::<Option<i64>, _>(4)?.map(time).transpose()?,
                dead_letters: row.try_get::<i64, _>(5)? as u64,
            };
            waiting.add(row.try_get(0)?, part);
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
        let plan = sqlx::query(sqlx::AssertSqlSafe(format!(
            "EXPLAIN QUERY PLAN {BY_TENANT}"
        )))
        .fetch_all(&mut *store.read().await.unwrap())
        .await
        .unwrap();
        let steps = plan.iter().map(|step| step.get::<String, _>("detail"));
        let scans: Vec<_> = steps.filter(|step| step.starts_with("SCAN")).collect();
        assert_eq!(
            scans,
            [
                "SCAN queue USING COVERING INDEX queue_by_tenant",
                "SCAN dead_letters USING COVERING INDEX dead_letters_by_tenant",
            ]
        );
    }
}
