//! The connection of a client, and a note of what nodes say in the headers of their answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use tonic::body::Body;
use tonic::transport::{Channel, Error};
use tower::Service;

use crate::auth::CREDENTIAL_STATUS;

/// A channel that notes whether the node looked at the credential of a call.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    pub(super) channel: Channel,
    is_credential_ignored: Arc<AtomicBool>,
}

impl Wire {
    pub(super) fn new(channel: Channel) -> Self {
        Self {
            channel,
            is_credential_ignored: Arc::default(),
        }
    }

    /// Whether a node said so in the headers of an answer.
    pub(super) fn is_credential_ignored(&self) -> bool {
        self.is_credential_ignored.load(Ordering::Relaxed)
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Response<Body>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Response<Body>, Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.channel.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.channel.call(request);
        let is_ignored = self.is_credential_ignored.clone();
        async move {
            let answer = answer.await?;
            if answer.headers().contains_key(CREDENTIAL_STATUS) {
                is_ignored.store(true, Ordering::Relaxed);
            }
            Ok(answer)
        }
        .boxed()
    }
}
