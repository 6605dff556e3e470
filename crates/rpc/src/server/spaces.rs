//! The service Spaces.

use std::sync::Arc;

use memfleet_domain::Fault;
use memfleet_domain::space::Space;
use memfleet_ports::context::Context;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::{Memory, PageRequest};
use tonic::{Request, Response, Status};

use super::access::Admitted;
use super::calls::{Calls, admitted};
use crate::proto::{self, spaces_server};

/// Pages that one call looks through for spaces that its caller reaches.
const PAGES: u32 = 100;

pub(super) struct Service {
    pub memory: Arc<dyn Memory>,
    pub calls: Calls,
}

impl Service {
    /// The next page with anything that the caller reaches, or an empty one where there is none in many.
    async fn reached(
        &self,
        admitted: &Admitted,
        context: &Context,
        mut page: PageRequest,
    ) -> Result<Page<Space>, Fault> {
        let mut pages = 0;
        loop {
            let spaces = self.memory.spaces(context, page.clone()).await?;
            let reached = admitted.reached(spaces);
            pages += 1;
            if !reached.items.is_empty() || reached.next.is_none() || pages == PAGES {
                return Ok(reached);
            }
            page.after = reached.next;
        }
    }
}

#[tonic::async_trait]
impl spaces_server::Spaces for Service {
    async fn put_space(
        &self,
        request: Request<proto::PutSpaceRequest>,
    ) -> Result<Response<proto::PutSpaceResponse>, Status> {
        let (context, (space, settings)) = self.calls.open(request)?;
        self.calls.answer(
            context
                .within(
                    "the space",
                    self.memory.put_space(&context, &space, settings),
                )
                .await,
        )
    }

    async fn set_legal_hold(
        &self,
        request: Request<proto::SetLegalHoldRequest>,
    ) -> Result<Response<proto::SetLegalHoldResponse>, Status> {
        let (context, (space, held, reason)) = self.calls.open(request)?;
        let set = self.memory.set_legal_hold(&context, &space, held, reason);
        self.calls
            .answer(context.within("the legal hold", set).await)
    }

    async fn list_spaces(
        &self,
        request: Request<proto::ListSpacesRequest>,
    ) -> Result<Response<proto::ListSpacesResponse>, Status> {
        let admitted = admitted(&request)?;
        let (context, page) = self.calls.open(request)?;
        let read = |page| context.within("the spaces", self.reached(&admitted, &context, page));
        self.calls.answer_page(page, read).await
    }
}
