//! Acts on their way to the audit log. What changes something is written before it is done, or with it; what was only seen is
//! written behind the answer, in batches, and shed where the store cannot keep up.

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::ids::TenantId;
use memfleet_domain::time::Timestamp;
use memfleet_ports::audit::{AuditKind, AuditLog, AuditRecord};
use memfleet_ports::context::Context;
use memfleet_ports::store::StoreError;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

/// Records that may wait.
const CAPACITY: usize = 4_096;
/// Records written at a time.
const BATCH: usize = 256;
/// Pause after the store could not take them.
const PAUSE: Duration = Duration::from_secs(1);

/// The way to the audit log.
pub(crate) struct Journal {
    log: Option<Arc<dyn AuditLog>>,
    notes: mpsc::Sender<AuditRecord>,
    noted: Mutex<mpsc::Receiver<AuditRecord>>,
}

impl Journal {
    /// To this log, or nowhere.
    pub fn new(log: Option<Arc<dyn AuditLog>>) -> Self {
        let (notes, noted) = mpsc::channel(CAPACITY);
        Self {
            log,
            notes,
            noted: Mutex::new(noted),
        }
    }

    /// Whether a log is kept.
    pub fn is_kept(&self) -> bool {
        self.log.is_some()
    }

    /// What to store with an act, in one transaction.
    pub fn beside(&self, record: AuditRecord) -> Vec<AuditRecord> {
        let kept = self.is_kept().then_some(record);
        kept.into_iter().collect()
    }

    /// Writes what is about to be done; it must not be done if this fails.
    pub async fn before(&self, record: AuditRecord) -> Result<(), Fault> {
        if let Some(log) = &self.log {
            log.append(&[record]).await?;
        }
        Ok(())
    }

    /// Writes what was done, now if the store takes it, else soon.
    pub async fn after(&self, record: AuditRecord) {
        if let Some(log) = &self.log
            && log.append(std::slice::from_ref(&record)).await.is_err()
        {
            self.note(record);
        }
    }

    /// Has it written soon; never waits.
    pub fn note(&self, record: AuditRecord) {
        if self.is_kept() && self.notes.try_send(record).is_err() {
            metrics::counter!("memfleet_audit_dropped_total").increment(1);
        }
    }

    /// Writes notes until `stop`, and what there is then.
    pub async fn run(&self, stop: CancellationToken) {
        let Some(log) = &self.log else { return };
        let mut noted = self.noted.lock().await;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let received = stop.run_until_cancelled(noted.recv_many(&mut batch, BATCH));
            if received.await.is_none() {
                break;
            }
            while let Err(StoreError::Unavailable(cause)) = append(&**log, &mut batch).await {
                tracing::warn!(cause, "the audit log is written later");
                let pause = stop.run_until_cancelled(tokio::time::sleep(PAUSE));
                if pause.await.is_none() {
                    break;
                }
            }
        }
        while let Ok(record) = noted.try_recv() {
            batch.push(record);
        }
        if append(&**log, &mut batch).await.is_err() {
            metrics::counter!("memfleet_audit_dropped_total").increment(batch.len() as u64);
        }
    }
}

/// Writes the batch and empties it; one that the store refuses for good is dropped.
async fn append(log: &dyn AuditLog, batch: &mut Vec<AuditRecord>) -> Result<(), StoreError> {
    match log.append(batch).await {
        Err(error @ StoreError::Unavailable(_)) => return Err(error),
        Err(error) => {
            tracing::error!(%error, "records of the audit log are lost");
            metrics::counter!("memfleet_audit_dropped_total").increment(batch.len() as u64);
        }
        Ok(()) => {}
    }
    batch.clear();
    Ok(())
}

/// A record without more than this.
pub(crate) fn record(tenant: &TenantId, kind: AuditKind, at: Timestamp) -> AuditRecord {
    AuditRecord {
        at,
        tenant: tenant.clone(),
        kind,
        caller: String::new(),
        request_id: String::new(),
        space: None,
        key: None,
        turns: Vec::new(),
        detail: std::collections::BTreeMap::new(),
    }
}

/// A record of something that a call does in its own tenant.
pub(crate) fn record_of(context: &Context, kind: AuditKind, at: Timestamp) -> AuditRecord {
    AuditRecord {
        caller: context.caller_name().to_owned(),
        request_id: context.request_id.to_string(),
        ..record(&context.tenant, kind, at)
    }
}
