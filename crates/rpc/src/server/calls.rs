//! What every call has in common: caller, deadline, checks on the way in, faults on the way out.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use memfleet_domain::Fault;
use memfleet_domain::ids::TenantId;
use memfleet_ports::context::Context;
use tonic::{Request, Status};

use super::access::{Access, Admitted};
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
    /// A single call: its context and its request, allowed and checked.
    pub(super) fn open<M: Checked + Access>(
        self,
        request: Request<M>,
    ) -> Result<(Context, M::Value), Status> {
        let context = self.public(&request, self.bounds.default_deadline)?;
        permitted(&request, &context)?;
        Ok((context, accepted(request)?))
    }

    /// A call of another role: its context and its request.
    pub(crate) fn relayed<M: Checked>(
        self,
        request: Request<M>,
    ) -> Result<(Context, M::Value), Status> {
        let Some(Caller(tenant)) = request.extensions().get() else {
            return Err(unnamed());
        };
        let context = self.context(tenant.clone(), &request, self.bounds.default_deadline);
        let request = relay(request.into_inner()).map_err(|fault| status::from_fault(&fault))?;
        Ok((context, request))
    }

    /// A call that streams out: who reads it, its context and its request, allowed and checked.
    pub(super) fn open_stream<M: Checked + Access>(
        self,
        request: Request<M>,
    ) -> Result<(Admitted, Context, M::Value), Status> {
        let context = self.public(&request, UNBOUNDED)?;
        let admitted = permitted(&request, &context)?;
        Ok((admitted, context, accepted(request)?))
    }

    /// The circumstances of a stream of such messages, which the caller may send.
    pub(super) fn stream_of<M: Access, S>(
        self,
        request: &Request<S>,
    ) -> Result<(Admitted, Context), Status> {
        let context = self.public(request, UNBOUNDED)?;
        let admitted = admitted(request)?;
        let permitted = admitted.permit_method::<M>(&context);
        permitted.map_err(|fault| status::from_fault(&fault))?;
        Ok((admitted, context))
    }

    /// The circumstances of one message of a stream: never past the stream's own deadline.
    pub(super) fn message_context(self, stream: &Context) -> Context {
        let budget = Context::new(stream.tenant.clone(), self.bounds.default_deadline);
        Context {
            deadline: budget.deadline.min(stream.deadline),
            ..stream.clone()
        }
    }

    fn public<M>(self, request: &Request<M>, otherwise: Duration) -> Result<Context, Status> {
        let caller = admitted(request)?.caller;
        // The server's shell gives one to calls that bring none.
        let request_id = request.metadata().get(memfleet_trace::REQUEST_ID);
        let request_id = request_id
            .and_then(|id| id.to_str().ok())
            .unwrap_or_default();
        let context = self.context(caller.tenant.clone(), request, otherwise);
        Ok(Context {
            caller: Some(caller),
            request_id: Arc::from(request_id),
            ..context
        })
    }

    /// `otherwise` is the time of a call that nobody gave a deadline.
    fn context<M>(self, tenant: TenantId, request: &Request<M>, otherwise: Duration) -> Context {
        let mut context = Context::new(tenant, otherwise);
        if let Some(due) = (self.due)(request.extensions()) {
            context.deadline = due;
        }
        context
    }
}

/// Who makes the call. [`crate::auth::AuthLayer`] lets nobody else through.
pub(super) fn admitted<M>(request: &Request<M>) -> Result<Admitted, Status> {
    let admitted = request.extensions().get::<Admitted>();
    admitted.cloned().ok_or_else(unnamed)
}

fn permitted<M: Access>(request: &Request<M>, context: &Context) -> Result<Admitted, Status> {
    let admitted = admitted(request)?;
    let permitted = admitted.permit(context, request.get_ref());
    permitted.map_err(|fault| status::from_fault(&fault))?;
    Ok(admitted)
}

fn accepted<M: Checked>(request: Request<M>) -> Result<M::Value, Status> {
    accept(request.into_inner()).map_err(|fault| status::from_fault(&fault))
}

fn unnamed() -> Status {
    status::from_fault(&Fault::internal("the call names no tenant"))
}

/// Marks a fault as of the `index`-th message of a stream.
pub(super) fn at_message(fault: Fault, index: u64) -> Fault {
    fault.with("message", index.to_string())
}
