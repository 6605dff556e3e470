//! The service Audit.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_domain::ids::InjectionId;
use memfleet_ports::context::Context;
use memfleet_ports::injections::InjectionFilter;
use memfleet_ports::injections_api::{Audit, PastInjection};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use super::calls::value;
use super::wire::Wire;
use super::{Client, MAX_ANSWER_BYTES};
use crate::proto;
use crate::proto::audit_client::AuditClient;

impl Client {
    fn audit(&self) -> AuditClient<Wire> {
        AuditClient::new(self.wire.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }
}

#[async_trait]
impl Audit for Client {
    async fn injection(&self, context: &Context, id: InjectionId) -> Result<PastInjection, Fault> {
        let id = id.to_string();
        let request = self.request(context, proto::GetInjectionRequest { id });
        value(context, self.audit().get_injection(request).boxed()).await
    }

    async fn injections(
        &self,
        context: &Context,
        filter: InjectionFilter,
        page: PageRequest,
    ) -> Result<Page<PastInjection>, Fault> {
        let request = proto::ListInjectionsRequest::from((filter, page));
        let request = self.request(context, request);
        value(context, self.audit().list_injections(request).boxed()).await
    }
}
