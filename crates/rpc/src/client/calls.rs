//! What every call has in common: credential, deadline, checks of what comes back.

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use memfleet_domain::Fault;
use memfleet_ports::context::Context;
use memfleet_ports::memory::Answers;
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status, Streaming};

use super::Client;
use crate::convert::{Checked, understand};
use crate::status;

/// A call on its way; boxed, for the generated futures are large.
pub(super) type Call<'a, M> = BoxFuture<'a, Result<Response<M>, Status>>;

impl Client {
    /// A request that carries the credential and what is left of the caller's time.
    pub(super) fn request<M>(&self, context: &Context, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(context.deadline.saturating_duration_since(Instant::now()));
        if let Some(credential) = &self.credential {
            request
                .metadata_mut()
                .insert("authorization", credential.clone());
        }
        request
    }
}

/// The message that answers a call, waited for until the deadline even if the network is silent.
pub(super) async fn message<M>(context: &Context, call: Call<'_, M>) -> Result<M, Fault> {
    let answer = async { call.await.map_err(|status| status::to_fault(&status)) };
    context
        .within("the server's answer", answer)
        .await
        .map(Response::into_inner)
}

/// The value that answers a call.
pub(super) async fn value<M: Checked>(
    context: &Context,
    call: Call<'_, M>,
) -> Result<M::Value, Fault> {
    understand(message(context, call).await?)
}

/// The values of a stream; it ends after the first fault, the deadline being one.
pub(super) fn values<M>(context: &Context, messages: Streaming<M>) -> Answers<M::Value>
where
    M: Checked + Send + 'static,
    M::Value: Send,
{
    let deadline = context.deadline;
    let values = stream::unfold(Some(messages), move |messages| async move {
        let mut messages = messages?;
        let value = match timeout_at(deadline, messages.next()).await {
            Err(_) => Err(Fault::deadline("the stream's end")),
            Ok(message) => message?
                .map_err(|status| status::to_fault(&status))
                .and_then(understand),
        };
        let rest = value.is_ok().then_some(messages);
        Some((value, rest))
    });
    Box::pin(values)
}
