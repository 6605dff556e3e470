//! What every call has in common: tenant, deadline, checks on the way in, faults on the way out.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use memfleet_domain::{Fault, ids::TenantId};
use memfleet_ports::context::Context;
use memfleet_ports::memory::Answers;
use tonic::{Request, Response, Status};

use super::Bounds;
use crate::auth::Caller;
use crate::convert::{Checked, accept};
use crate::{grpc_timeout, status};

/// Messages of a stream on their way out.
pub(super) type Outbound<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

/// Time of a stream whose caller sets no deadline: it ends when the caller goes.
const UNBOUNDED: Duration = Duration::from_hours(365 * 24);

/// Opens calls within bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls(pub Bounds);

impl Calls {
    /// A single call: its context and its request, checked.
    pub(super) fn open<M: Checked>(
        self,
        request: Request<M>,
    ) -> Result<(Context, M::Value), Status> {
        let asked = grpc_timeout::read(request.metadata().as_ref());
        let budget = asked
            .unwrap_or(self.0.default_deadline)
            .min(self.0.max_deadline);
        let context = Context::new(tenant(&request)?, less_travel(budget));
        Ok((
            context,
            accept(request.into_inner()).map_err(|fault| status::from_fault(&fault))?,
        ))
    }

    /// The circumstances of one message of a stream: never past the stream's own deadline.
    pub(super) fn message_context(self, stream: &Context) -> Context {
        let mut context = Context::new(stream.tenant.clone(), self.0.default_deadline);
        context.deadline = context.deadline.min(stream.deadline);
        context
    }
}

/// A call that streams out: its context and its request, checked.
pub(super) fn open_stream<M: Checked>(request: Request<M>) -> Result<(Context, M::Value), Status> {
    let context = stream_context(&request)?;
    Ok((
        context,
        accept(request.into_inner()).map_err(|fault| status::from_fault(&fault))?,
    ))
}

/// The circumstances of a stream.
pub(super) fn stream_context<M>(request: &Request<M>) -> Result<Context, Status> {
    let asked = grpc_timeout::read(request.metadata().as_ref());
    Ok(Context::new(
        tenant(request)?,
        asked.map_or(UNBOUNDED, less_travel),
    ))
}

fn tenant<M>(request: &Request<M>) -> Result<TenantId, Status> {
    match request.extensions().get::<Caller>() {
        Some(Caller(tenant)) => Ok(tenant.clone()),
        None => Err(status::from_fault(&Fault::internal(
            "the service is not behind the authentication layer",
        ))),
    }
}

/// Leaves the answer time to travel, so that the caller hears why instead of giving up first.
fn less_travel(budget: Duration) -> Duration {
    budget.saturating_sub((budget / 5).min(Duration::from_millis(40)))
}

/// The answer to a single call.
pub(super) fn answer<T, M: From<T>>(result: Result<T, Fault>) -> Result<Response<M>, Status> {
    match result {
        Ok(value) => Ok(Response::new(value.into())),
        Err(fault) => Err(status::from_fault(&fault)),
    }
}

/// The answers of a stream.
pub(super) fn stream<T: 'static, M: From<T> + 'static>(
    result: Result<Answers<T>, Fault>,
) -> Result<Response<Outbound<M>>, Status> {
    let answers = result.map_err(|fault| status::from_fault(&fault))?;
    let messages = answers.map(|answer| {
        answer
            .map(Into::into)
            .map_err(|fault| status::from_fault(&fault))
    });
    Ok(Response::new(Box::pin(messages)))
}

/// Marks a fault as of the `index`-th message of a stream.
pub(super) fn at_message(fault: Fault, index: u64) -> Fault {
    fault.with("message", index.to_string())
}
