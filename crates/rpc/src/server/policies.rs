//! The service Policies.

use std::sync::Arc;

use memfleet_ports::policies::Policies;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, policies_server};

pub(super) struct Service {
    pub policies: Arc<dyn Policies>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl policies_server::Policies for Service {
    async fn put_policy(
        &self,
        request: Request<proto::PutPolicyRequest>,
    ) -> Result<Response<proto::PutPolicyResponse>, Status> {
        let (context, (space, policy, expected)) = self.calls.open(request)?;
        let put = self.policies.put_policy(&context, space, policy, expected);
        self.calls.answer(context.within("the policy", put).await)
    }

    async fn get_policy(
        &self,
        request: Request<proto::GetPolicyRequest>,
    ) -> Result<Response<proto::GetPolicyResponse>, Status> {
        let (context, space) = self.calls.open(request)?;
        let policy = self.policies.policy(&context, space);
        self.calls
            .answer(context.within("the policy", policy).await)
    }

    async fn put_document(
        &self,
        request: Request<proto::PutDocumentRequest>,
    ) -> Result<Response<proto::PutDocumentResponse>, Status> {
        let (context, document) = self.calls.open(request)?;
        let put = self.policies.put_document(&context, document);
        self.calls.answer(context.within("the document", put).await)
    }

    async fn list_documents(
        &self,
        request: Request<proto::ListDocumentsRequest>,
    ) -> Result<Response<proto::ListDocumentsResponse>, Status> {
        let (context, (listing, page)) = self.calls.open(request)?;
        let read = |page| {
            let documents = self.policies.documents(&context, listing.clone(), page);
            context.within("the documents", documents)
        };
        self.calls.answer_page(page, read).await
    }

    async fn remove_document(
        &self,
        request: Request<proto::RemoveDocumentRequest>,
    ) -> Result<Response<proto::RemoveDocumentResponse>, Status> {
        let (context, (key, expected)) = self.calls.open(request)?;
        let removed = self.policies.remove_document(&context, key, expected);
        self.calls
            .answer(context.within("the removal", removed).await)
    }
}
