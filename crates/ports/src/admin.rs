//! The public API for whoever manages tenants: keys, quotas, usage, the audit log.

use async_trait::async_trait;
use chrono::NaiveDate;
use memfleet_domain::Fault;
use memfleet_domain::access::{Grant, Quota, Usage};
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::{TimeRange, Timestamp};

use crate::audit::{AuditFilter, AuditRecord};
use crate::context::Context;
use crate::keys::Key;
use crate::ledger::Page;
use crate::memory::PageRequest;
use crate::model_switch::{SwitchOrder, SwitchProgress};
use crate::usage::Amount;

/// A key to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Whose; absent: the caller's tenant.
    pub tenant: Option<TenantId>,
    /// What its owner calls it.
    pub label: String,
    /// What it allows.
    pub grant: Grant,
    /// Whether it may manage every tenant.
    pub is_operator: bool,
    /// Calls a minute at each gateway.
    pub calls_per_minute: Option<u32>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// A key with its secret, which nobody can get again.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The key.
    pub key: Key,
    /// What callers send.
    pub secret: String,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Issued({})", self.key.id)
    }
}

/// A key to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Whose; absent: the caller's tenant.
    pub tenant: Option<TenantId>,
    /// Which.
    pub id: KeyId,
    /// How long the old secret goes on; absent: a day.
    pub grace: Option<std::time::Duration>,
}

/// What a tenant has and may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Whose.
    pub tenant: TenantId,
    /// What it has.
    pub usage: Usage,
    /// What it may have.
    pub quota: Quota,
    /// What language models cost it, day by day; days without calls are left out.
    pub language_models: Vec<ModelUse>,
}

/// What language models cost on a day (UTC), calls that have not ended with the most that they may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelUse {
    /// The day.
    pub day: NaiveDate,
    /// How much.
    pub used: Amount,
}

/// The `Admin` service. `tenant` is the caller's own where it is absent; another is an operator's to name.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Makes a key.
    async fn create_key(&self, context: &Context, key: NewKey) -> Result<Issued, Fault>;

    /// The keys of a tenant by age.
    async fn keys(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        page: PageRequest,
    ) -> Result<Page<Key>, Fault>;

    /// Takes a key back.
    async fn revoke_key(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        id: KeyId,
    ) -> Result<Key, Fault>;

    /// Puts a new key in the place of an old one.
    async fn rotate_key(&self, context: &Context, rotation: Rotation) -> Result<Issued, Fault>;

    /// Every tenant by name.
    async fn tenants(&self, context: &Context, page: PageRequest) -> Result<Page<TenantId>, Fault>;

    /// What a tenant has and may have; of language models the days that any of this time is in, else the last 30.
    async fn account(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        time: TimeRange,
    ) -> Result<Account, Fault>;

    /// Sets what a tenant may have.
    async fn set_quota(
        &self,
        context: &Context,
        tenant: &TenantId,
        quota: Quota,
    ) -> Result<Account, Fault>;

    /// The audit log of a tenant, the newest first.
    async fn audit(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        filter: AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditRecord>, Fault>;

    /// Changes the embedding model, or tells how far a change is; nothing where none was ever asked
    /// for.
    async fn switch_model(
        &self,
        context: &Context,
        change: Option<ModelChange>,
    ) -> Result<Option<ModelChangeStatus>, Fault>;
}

/// A step of a change of the embedding model that an operator asks for. A model that is not named
/// is that of the change under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChange {
    /// Make its vectors beside the others and compare them.
    Compare(Option<String>),
    /// The same, and have searches use them.
    Serve(Option<String>),
    /// Serve it in every space, those included that follow their language.
    ServeEverywhere(Option<String>),
    /// Have searches use the vectors of before.
    RollBack,
    /// Remove the vectors that searches do not use.
    Drop,
}

/// How far a change of the embedding model is.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChangeStatus {
    /// The operator's order.
    pub order: SwitchOrder,
    /// How far it is.
    pub progress: SwitchProgress,
}
