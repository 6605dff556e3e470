//! The service Policies.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::policy::Policy;
use memfleet_ports::context::Context;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;
use memfleet_ports::policies::{Listing, NewDocument, Policies, PolicyInForce};
use memfleet_ports::settings::{Setting, SettingKey};

use super::calls::value;
use super::wire::Wire;
use super::{Client, MAX_ANSWER_BYTES};
use crate::proto;
use crate::proto::policies_client::PoliciesClient;

impl Client {
    fn policies(&self) -> PoliciesClient<Wire> {
        PoliciesClient::new(self.wire.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }
}

#[async_trait]
impl Policies for Client {
    async fn put_policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
        policy: Policy,
        expected: Option<u32>,
    ) -> Result<u32, Fault> {
        let request = proto::PutPolicyRequest::from((space, policy, expected));
        let request = self.request(context, request);
        value(context, self.policies().put_policy(request).boxed()).await
    }

    async fn policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
    ) -> Result<PolicyInForce, Fault> {
        let space = space.map(String::from).unwrap_or_default();
        let request = self.request(context, proto::GetPolicyRequest { space });
        value(context, self.policies().get_policy(request).boxed()).await
    }

    async fn put_document(&self, context: &Context, document: NewDocument) -> Result<u32, Fault> {
        let request = self.request(context, proto::PutDocumentRequest::from(document));
        value(context, self.policies().put_document(request).boxed()).await
    }

    async fn documents(
        &self,
        context: &Context,
        listing: Listing,
        page: PageRequest,
    ) -> Result<Page<Setting>, Fault> {
        let request = proto::ListDocumentsRequest::from((listing, page));
        let request = self.request(context, request);
        value(context, self.policies().list_documents(request).boxed()).await
    }

    async fn remove_document(
        &self,
        context: &Context,
        key: SettingKey,
        expected: Option<u32>,
    ) -> Result<u32, Fault> {
        let request = proto::RemoveDocumentRequest::from((key, expected));
        let request = self.request(context, request);
        value(context, self.policies().remove_document(request).boxed()).await
    }
}
