//! API keys. Only hashes of their secrets are kept; a key is never removed, so that what was revoked stays so.

use async_trait::async_trait;
use memfleet_domain::access::{Grant, KeyHash};
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::Timestamp;

use crate::audit::AuditRecord;
use crate::ledger::{Page, PageToken};
use crate::store::Result;

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its name in listings and logs.
    pub id: KeyId,
    /// Whose memory it opens.
    pub tenant: TenantId,
    /// What its owner calls it.
    pub label: String,
    /// What it allows.
    pub grant: Grant,
    /// Whether it may manage every tenant.
    pub is_operator: bool,
    /// Calls a minute at each gateway; absent: as many as the tenant has.
    pub calls_per_minute: Option<u32>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is worth nothing.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The key that a rotation put in its place.
    pub replaced_by: Option<KeyId>,
}

/// Whether a key is worth something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Valid,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

impl Key {
    /// What the key is worth at an instant.
    pub fn standing(&self, now: Timestamp) -> Standing {
        if self.revoked_at.is_some() {
            Standing::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            Standing::Expired
        } else {
            Standing::Valid
        }
    }
}

/// A key in use, and when it was used last.
pub type Use = (TenantId, KeyId, Timestamp);

/// Where keys are kept. Records of the audit log are stored with the act, or neither is.
#[async_trait]
pub trait KeyRing: Send + Sync {
    /// Adds a key; whether it was not there yet.
    async fn add(&self, key: &Key, hash: &KeyHash, records: &[AuditRecord]) -> Result<bool>;

    /// The key with this secret, whosever it is. Nothing else looks across tenants.
    async fn find(&self, hash: &KeyHash) -> Result<Option<Key>>;

    /// Whether there ever was a key of any tenant.
    async fn has_any(&self) -> Result<bool>;

    /// A key of a tenant.
    async fn get(&self, tenant: &TenantId, id: KeyId) -> Result<Option<Key>>;

    /// The keys of a tenant by age.
    async fn list(
        &self,
        tenant: &TenantId,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Key>>;

    /// Revokes a key of a tenant, and gives it as it is then. One that was revoked before keeps the time of that.
    async fn revoke(
        &self,
        tenant: &TenantId,
        id: KeyId,
        now: Timestamp,
        records: &[AuditRecord],
    ) -> Result<Option<Key>>;

    /// Puts `next` in the place of a key of the same tenant, which is worth something until `until` at most; whether that was done:
    /// only a key that is not revoked and has no successor gets one.
    async fn rotate(
        &self,
        id: KeyId,
        until: Timestamp,
        next: &Key,
        hash: &KeyHash,
        records: &[AuditRecord],
    ) -> Result<bool>;

    /// Notes when keys were used.
    async fn used(&self, uses: &[Use]) -> Result<()>;
}
