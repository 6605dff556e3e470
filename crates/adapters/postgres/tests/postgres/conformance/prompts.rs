//! What is kept for prompts, of the store behind [`Whole`].

use async_trait::async_trait;
use memfleet_domain::ids::{ExchangeName, InjectionId, SessionId, SpaceId, TenantId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::conversations::{Conversation, Sought};
use memfleet_ports::exchanges::{Entry, Exchanges, Kept, Secret, Written};
use memfleet_ports::injections::{Injection, InjectionFilter, Injections};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::settings::{Put, Revised, Setting, SettingKey, Settings};
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::Undelivered;

use super::whole::Whole;

#[async_trait]
impl<Q: Undelivered> Settings for Whole<Q> {
    async fn put(&self, tenant: &TenantId, key: &SettingKey, revised: &Revised) -> Result<Put> {
        Settings::put(&self.store, tenant, key, revised).await
    }

    async fn current(&self, tenant: &TenantId) -> Result<Vec<Setting>> {
        self.store.current(tenant).await
    }

    async fn get(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        version: u32,
    ) -> Result<Option<Setting>> {
        Settings::get(&self.store, tenant, key, version).await
    }

    async fn history(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Setting>> {
        self.store.history(tenant, key, limit, after).await
    }

    async fn revision(&self, tenant: &TenantId) -> Result<u64> {
        self.store.revision(tenant).await
    }
}

#[async_trait]
impl<Q: Undelivered> Exchanges for Whole<Q> {
    async fn get(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        name: &ExchangeName,
        now: Timestamp,
    ) -> Result<Option<Kept>> {
        Exchanges::get(&self.store, tenant, session, name, now).await
    }

    async fn keep(&self, tenant: &TenantId, entry: Entry<'_>) -> Result<Written> {
        Exchanges::keep(&self.store, tenant, entry).await
    }

    async fn conversations(
        &self,
        tenant: &TenantId,
        sought: &Sought,
        now: Timestamp,
    ) -> Result<Vec<Conversation>> {
        self.store.conversations(tenant, sought, now).await
    }

    async fn secret(&self, tenant: &TenantId, space: Option<&SpaceId>) -> Result<Secret> {
        self.store.secret(tenant, space).await
    }

    async fn states(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<String>> {
        self.store.states(tenant, session, limit, now).await
    }

    async fn session_tokens(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<u64> {
        self.store.session_tokens(tenant, session, now).await
    }

    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64> {
        Exchanges::bound(&self.store, tenant, most).await
    }

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        Exchanges::expire(&self.store, now).await
    }
}

#[async_trait]
impl<Q: Undelivered> Injections for Whole<Q> {
    async fn append(&self, tenant: &TenantId, injections: &[Injection]) -> Result<()> {
        Injections::append(&self.store, tenant, injections).await
    }

    async fn get(&self, tenant: &TenantId, id: InjectionId) -> Result<Option<Injection>> {
        Injections::get(&self.store, tenant, id).await
    }

    async fn list(
        &self,
        tenant: &TenantId,
        filter: &InjectionFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Injection>> {
        Injections::list(&self.store, tenant, filter, limit, after).await
    }

    async fn turns_given(
        &self,
        tenant: &TenantId,
        filter: &InjectionFilter,
        limit: u32,
    ) -> Result<Vec<(SpaceId, TurnId)>> {
        Injections::turns_given(&self.store, tenant, filter, limit).await
    }

    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64> {
        Injections::bound(&self.store, tenant, most).await
    }

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        Injections::expire(&self.store, now).await
    }
}
