//! The service Audit.

use std::sync::Arc;

use memfleet_ports::injections_api::Audit;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, audit_server};

pub(super) struct Service {
    pub audit: Arc<dyn Audit>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl audit_server::Audit for Service {
    async fn get_injection(
        &self,
        request: Request<proto::GetInjectionRequest>,
    ) -> Result<Response<proto::GetInjectionResponse>, Status> {
        let (context, id) = self.calls.open(request)?;
        let injection = self.audit.injection(&context, id);
        self.calls
            .answer(context.within("the injection", injection).await)
    }

    async fn list_injections(
        &self,
        request: Request<proto::ListInjectionsRequest>,
    ) -> Result<Response<proto::ListInjectionsResponse>, Status> {
        let (context, (filter, page)) = self.calls.open(request)?;
        let read = |page| {
            let injections = self.audit.injections(&context, filter.clone(), page);
            context.within("the injections", injections)
        };
        self.calls.answer_page(page, read).await
    }
}
