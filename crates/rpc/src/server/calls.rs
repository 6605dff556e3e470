//! What every call has in common: tenant, deadline, checks on the way in, faults on the way out.

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use memfleet_domain::{Fault, ids::TenantId};
use memfleet_ports::context::Context;
use tonic::{Request, Status};

use super::{Bounds, Due};
use crate::auth::Caller;
use crate::convert::{Checked, accept, relay};
use crate::status;

/// Messages of a stream on their way out.
pub(super) type Outbound<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

/// Time of a stream whose caller sets no deadline: it ends when the caller goes.
const UNBOUNDED: Duration = Duration::from_hours(365 * 24);

/// Opens calls within bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calls {
    pub bounds: Bounds,
    pub due: Due,
}

impl Calls {
    /// A single call: its context and its request, checked.
    pub(super) fn open<M: Checked>(
        self,
        request: Request<M>,
    ) -> Result<(Context, M::Value), Status> {
        let context = self.context(&request, self.bounds.default_deadline)?;
        Ok((context, accepted(request)?))
    }

    /// A call of another role: its context and its request.
    pub(crate) fn relayed<M: Checked>(
        self,
        request: Request<M>,
    ) -> Result<(Context, M::Value), Status> {
        let context = self.context(&request, self.bounds.default_deadline)?;
        let request = relay(request.into_inner()).map_err(|fault| status::from_fault(&fault))?;
        Ok((context, request))
    }

    /// A call that streams out: its context and its request, checked.
    pub(super) fn open_stream<M: Checked>(
        self,
        request: Request<M>,
    ) -> Result<(Context, M::Value), Status> {
        let context = self.stream_context(&request)?;
        Ok((context, accepted(request)?))
    }

    /// The circumstances of a stream.
    pub(super) fn stream_context<M>(self, request: &Request<M>) -> Result<Context, Status> {
        self.context(request, UNBOUNDED)
    }

    /// The circumstances of one message of a stream: never past the stream's own deadline.
    pub(super) fn message_context(self, stream: &Context) -> Context {
        let mut context = Context::new(stream.tenant.clone(), self.bounds.default_deadline);
        context.deadline = context.deadline.min(stream.deadline);
        context
    }

    /// `otherwise` is the time of a call that nobody gave a deadline.
    fn context<M>(self, request: &Request<M>, otherwise: Duration) -> Result<Context, Status> {
        let mut context = Context::new(tenant(request)?, otherwise);
        if let Some(due) = (self.due)(request.extensions()) {
            context.deadline = due;
        }
        Ok(context)
    }
}

fn accepted<M: Checked>(request: Request<M>) -> Result<M::Value, Status> {
    accept(request.into_inner()).map_err(|fault| status::from_fault(&fault))
}

fn tenant<M>(request: &Request<M>) -> Result<TenantId, Status> {
    match request.extensions().get::<Caller>() {
        Some(Caller(tenant)) => Ok(tenant.clone()),
        None => Err(status::from_fault(&Fault::internal(
            "the call names no tenant",
        ))),
    }
}

/// Marks a fault as of the `index`-th message of a stream.
pub(super) fn at_message(fault: Fault, index: u64) -> Fault {
    fault.with("message", index.to_string())
}
