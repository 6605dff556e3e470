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

pub(super) struct Service {
    pub memory: Arc<dyn Memory>,
    pub calls: Calls,
}

impl Service {
    /// The next page with anything that the caller reaches: one that looks like the end, and is none, would mislead.
    async fn reached(
        &self,
        admitted: &Admitted,
        context: &Context,
        mut page: PageRequest,
    ) -> Result<Page<Space>, Fault> {
        loop {
            let spaces = self.memory.spaces(context, page.clone()).await?;
            let reached = admitted.reached(spaces);
            if !reached.items.is_empty() || reached.next.is_none() {
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
