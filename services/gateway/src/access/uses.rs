//! When keys were last used: noted here, written to the store once a minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::keys::{Key, KeyRing};
use tokio_util::sync::CancellationToken;

/// How often they are written.
const PERIOD: Duration = Duration::from_mins(1);
/// Keys noted at a time at most.
const CAPACITY: usize = 10_000;

/// Uses that the store does not know of yet.
#[derive(Default)]
pub struct Uses(Mutex<HashMap<KeyId, (TenantId, Timestamp)>>);

impl Uses {
    /// A key was used.
    pub fn note(&self, key: &Key, now: Timestamp) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() < CAPACITY || noted.contains_key(&key.id) {
            noted.insert(key.id, (key.tenant.clone(), now));
        }
    }

    /// Writes them until `stop`, and once more then.
    pub async fn run(&self, keys: &dyn KeyRing, stop: CancellationToken) {
        loop {
            let stopped = stop.run_until_cancelled(tokio::time::sleep(PERIOD)).await;
            self.write(keys).await;
            if stopped.is_none() {
                return;
            }
        }
    }

    async fn write(&self, keys: &dyn KeyRing) {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if noted.is_empty() {
            return;
        }
        let uses: Vec<_> = noted
            .into_iter()
            .map(|(id, (tenant, at))| (tenant, id, at))
            .collect();
        // The next use is noted again.
        if let Err(error) = keys.used(&uses).await {
            tracing::warn!(%error, "the last uses of keys are not written down");
        }
    }
}
