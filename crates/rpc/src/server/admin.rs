//! The service Admin.

use std::sync::Arc;

use memfleet_ports::admin::Admin;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, admin_server};

pub(super) struct Service {
    pub admin: Arc<dyn Admin>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl admin_server::Admin for Service {
    async fn create_key(
        &self,
        request: Request<proto::CreateKeyRequest>,
    ) -> Result<Response<proto::CreateKeyResponse>, Status> {
        let (context, key) = self.calls.open(request)?;
        let issued = self.admin.create_key(&context, key);
        self.calls.answer(context.within("the key", issued).await)
    }

    async fn list_keys(
        &self,
        request: Request<proto::ListKeysRequest>,
    ) -> Result<Response<proto::ListKeysResponse>, Status> {
        let (context, (tenant, page)) = self.calls.open(request)?;
        let read = |page| {
            let keys = self.admin.keys(&context, tenant.clone(), page);
            context.within("the keys", keys)
        };
        self.calls.answer_page(page, read).await
    }

    async fn revoke_key(
        &self,
        request: Request<proto::RevokeKeyRequest>,
    ) -> Result<Response<proto::RevokeKeyResponse>, Status> {
        let (context, (tenant, id)) = self.calls.open(request)?;
        let revoked = self.admin.revoke_key(&context, tenant, id);
        self.calls
            .answer(context.within("the revocation", revoked).await)
    }

    async fn rotate_key(
        &self,
        request: Request<proto::RotateKeyRequest>,
    ) -> Result<Response<proto::RotateKeyResponse>, Status> {
        let (context, rotation) = self.calls.open(request)?;
        let issued = self.admin.rotate_key(&context, rotation);
        self.calls.answer(context.within("the key", issued).await)
    }

    async fn list_tenants(
        &self,
        request: Request<proto::ListTenantsRequest>,
    ) -> Result<Response<proto::ListTenantsResponse>, Status> {
        let (context, page) = self.calls.open(request)?;
        let read = |page| context.within("the tenants", self.admin.tenants(&context, page));
        self.calls.answer_page(page, read).await
    }

    async fn get_usage(
        &self,
        request: Request<proto::GetUsageRequest>,
    ) -> Result<Response<proto::GetUsageResponse>, Status> {
        let (context, (tenant, time)) = self.calls.open(request)?;
        let account = self.admin.account(&context, tenant, time);
        self.calls
            .answer(context.within("the usage", account).await)
    }

    async fn set_quota(
        &self,
        request: Request<proto::SetQuotaRequest>,
    ) -> Result<Response<proto::SetQuotaResponse>, Status> {
        let (context, (tenant, quota)) = self.calls.open(request)?;
        let account = self.admin.set_quota(&context, &tenant, quota);
        self.calls
            .answer(context.within("the quota", account).await)
    }

    async fn list_audit(
        &self,
        request: Request<proto::ListAuditRequest>,
    ) -> Result<Response<proto::ListAuditResponse>, Status> {
        let (context, (tenant, filter, page)) = self.calls.open(request)?;
        let read = |page| {
            let records = self
                .admin
                .audit(&context, tenant.clone(), filter.clone(), page);
            context.within("the audit log", records)
        };
        self.calls.answer_page(page, read).await
    }

    async fn switch_model(
        &self,
        request: Request<proto::SwitchModelRequest>,
    ) -> Result<Response<proto::SwitchModelResponse>, Status> {
        let (context, change) = self.calls.open(request)?;
        let status = self.admin.switch_model(&context, change);
        self.calls
            .answer(context.within("the change of the model", status).await)
    }
}
