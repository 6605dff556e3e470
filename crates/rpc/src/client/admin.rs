//! The service Admin.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_domain::access::Quota;
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::TimeRange;
use memfleet_ports::admin::{
    Account, Admin, Issued, ModelChange, ModelChangeStatus, NewKey, Rotation,
};
use memfleet_ports::audit::{AuditFilter, AuditRecord};
use memfleet_ports::context::Context;
use memfleet_ports::keys::Key;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use super::calls::{message, value};
use super::memory::page_token;
use super::wire::Wire;
use super::{Client, MAX_ANSWER_BYTES};
use crate::convert::{RecordsOf, named, range, understand};
use crate::proto;
use crate::proto::admin_client::AdminClient;

impl Client {
    fn admin(&self) -> AdminClient<Wire> {
        AdminClient::new(self.wire.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }
}

#[async_trait]
impl Admin for Client {
    async fn create_key(&self, context: &Context, key: NewKey) -> Result<Issued, Fault> {
        let request = self.request(context, proto::CreateKeyRequest::from(key));
        value(context, self.admin().create_key(request).boxed()).await
    }

    async fn keys(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        page: PageRequest,
    ) -> Result<Page<Key>, Fault> {
        let request = proto::ListKeysRequest {
            tenant: named(tenant),
            page_size: page.limit,
            page_token: page_token(page.after),
        };
        let request = self.request(context, request);
        value(context, self.admin().list_keys(request).boxed()).await
    }

    async fn revoke_key(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        id: KeyId,
    ) -> Result<Key, Fault> {
        let request = proto::RevokeKeyRequest {
            tenant: named(tenant),
            id: id.to_string(),
        };
        let request = self.request(context, request);
        value(context, self.admin().revoke_key(request).boxed()).await
    }

    async fn rotate_key(&self, context: &Context, rotation: Rotation) -> Result<Issued, Fault> {
        let request = self.request(context, proto::RotateKeyRequest::from(rotation));
        value(context, self.admin().rotate_key(request).boxed()).await
    }

    async fn tenants(&self, context: &Context, page: PageRequest) -> Result<Page<TenantId>, Fault> {
        let request = proto::ListTenantsRequest {
            page_size: page.limit,
            page_token: page_token(page.after),
        };
        let request = self.request(context, request);
        value(context, self.admin().list_tenants(request).boxed()).await
    }

    async fn account(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        time: TimeRange,
    ) -> Result<Account, Fault> {
        let request = proto::GetUsageRequest {
            tenant: named(tenant),
            time: range(time),
        };
        let request = self.request(context, request);
        value(context, self.admin().get_usage(request).boxed()).await
    }

    async fn set_quota(
        &self,
        context: &Context,
        tenant: &TenantId,
        quota: Quota,
    ) -> Result<Account, Fault> {
        let request = proto::SetQuotaRequest {
            tenant: tenant.to_string(),
            quota: Some(quota.into()),
        };
        let request = self.request(context, request);
        value(context, self.admin().set_quota(request).boxed()).await
    }

    async fn audit(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        filter: AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditRecord>, Fault> {
        let whose = tenant.clone().unwrap_or_else(|| context.tenant.clone());
        let request = proto::ListAuditRequest {
            tenant: named(tenant),
            kinds: filter.kinds.iter().map(ToString::to_string).collect(),
            time: range(filter.time),
            page_size: page.limit,
            page_token: page_token(page.after),
        };
        let request = self.request(context, request);
        let answer = message(context, self.admin().list_audit(request).boxed()).await?;
        understand(RecordsOf(whose, answer))
    }

    async fn switch_model(
        &self,
        context: &Context,
        change: Option<ModelChange>,
    ) -> Result<Option<ModelChangeStatus>, Fault> {
        let request = self.request(context, proto::SwitchModelRequest::from(change));
        value(context, self.admin().switch_model(request).boxed()).await
    }
}
