//! Tenants: how much they may use and how much they do. A tenant exists from its first key, quota or space on.

use async_trait::async_trait;
use memfleet_domain::access::{Quota, Usage};
use memfleet_domain::ids::TenantId;

use crate::audit::AuditRecord;
use crate::ledger::{Page, PageToken};
use crate::store::Result;

/// The catalogue of tenants.
#[async_trait]
pub trait TenantCatalog: Send + Sync {
    /// What a tenant may use; no limit where nothing was set.
    async fn quota(&self, tenant: &TenantId) -> Result<Quota>;

    /// Sets it, with records of the audit log.
    async fn put_quota(
        &self,
        tenant: &TenantId,
        quota: &Quota,
        records: &[AuditRecord],
    ) -> Result<()>;

    /// Turns that a tenant has stored: a sum over its sessions.
    async fn stored_turns(&self, tenant: &TenantId) -> Result<u64>;

    /// Spaces that a tenant has.
    async fn spaces(&self, tenant: &TenantId) -> Result<u64>;

    /// What a tenant has. Reads every turn's length: whoever answers callers asks seldom.
    async fn usage(&self, tenant: &TenantId) -> Result<Usage>;

    /// Every tenant by name: looks across them, for operators.
    async fn tenants(&self, limit: u32, after: Option<&PageToken>) -> Result<Page<TenantId>>;
}
