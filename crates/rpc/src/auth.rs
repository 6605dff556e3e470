//! Who calls: a layer that has the credential of each call checked, before anything of the call is read.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response};
use memfleet_domain::ids::TenantId;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::access::{Authority, Proof};
use tonic::body::Body;
use tower::{Layer, Service};

use crate::server::{Admitted, Enter};
use crate::status;

/// Header of an answer whose call came with a credential that was not looked at: no key exists yet. Its value is `ignored`.
pub(crate) const CREDENTIAL_STATUS: HeaderName = HeaderName::from_static("memfleet-credential");

/// Whose memory a call between roles is about, in the extensions of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller(pub TenantId);

/// Finds out who calls.
pub(crate) trait Authenticate: Clone + Send + Sync + 'static {
    /// What the extensions of a request that is let in hold.
    type Mark: Clone + Send + Sync + 'static;

    /// The tenant and the credential among whose places a call takes one.
    fn holder(mark: &Self::Mark) -> (&str, Option<&str>);

    /// Whether every caller is let in, whatever the credential.
    fn is_open(_mark: &Self::Mark) -> bool {
        false
    }

    /// Whose call it is; nobody's where it is about no tenant's memory.
    fn caller(
        &self,
        headers: &HeaderMap,
    ) -> impl Future<Output = Result<Option<Self::Mark>, Fault>> + Send;
}

/// The authority of the public API.
#[derive(Clone)]
pub(crate) struct Public(pub Arc<dyn Authority>);

impl Authenticate for Public {
    type Mark = Admitted;

    fn holder(admitted: &Admitted) -> (&str, Option<&str>) {
        let caller = &admitted.caller;
        (caller.tenant.as_str(), Some(&caller.name))
    }

    fn is_open(admitted: &Admitted) -> bool {
        admitted.caller.proof == Proof::Open
    }

    async fn caller(&self, headers: &HeaderMap) -> Result<Option<Admitted>, Fault> {
        let credential = match headers.contains_key(AUTHORIZATION) {
            true => Some(bearer(headers)?),
            false => None,
        };
        let caller = self.0.identify(credential).await?;
        Ok(Some(Admitted {
            caller: Arc::new(caller),
            authority: self.0.clone(),
        }))
    }
}

/// The credential of a call.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Fault> {
    let Some(given) = headers.get(AUTHORIZATION) else {
        return Err(refused(
            "CREDENTIAL_MISSING",
            "send a credential as `authorization: Bearer <credential>`",
        ));
    };
    let key = given.to_str().ok().and_then(|value| value.split_once(' '));
    let key = key.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    key.map(|(_, key)| key.trim()).ok_or_else(|| {
        refused(
            "CREDENTIAL_MALFORMED",
            "the credential must have the form `Bearer <credential>`",
        )
    })
}

fn refused(reason: &'static str, message: &'static str) -> Fault {
    Fault::new(FaultKind::Unauthenticated, reason, message)
}

/// Lets a call through to its service with what is known of its caller and a place among the calls in progress, or refuses it.
#[derive(Debug, Clone)]
pub(crate) struct AuthLayer<A>(pub A, pub Enter);

impl<S, A: Clone> Layer<S> for AuthLayer<A> {
    type Service = Authenticated<S, A>;

    fn layer(&self, inner: S) -> Authenticated<S, A> {
        Authenticated {
            inner,
            authority: self.0.clone(),
            enter: self.1,
        }
    }
}

/// A service behind [`AuthLayer`].
#[derive(Debug, Clone)]
pub(crate) struct Authenticated<S, A> {
    inner: S,
    authority: A,
    enter: Enter,
}

impl<S, A, B> Service<Request<B>> for Authenticated<S, A>
where
    A: Authenticate,
    B: Send + 'static,
    S: Service<Request<B>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let authority = self.authority.clone();
        let enter = self.enter;
        // The one that was made ready goes with the call.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        async move {
            let headers = std::mem::take(request.headers_mut());
            let caller = authority.caller(&headers).await;
            *request.headers_mut() = headers;
            match caller {
                Ok(mark) => {
                    // Calls that are about no tenant's memory share the places of one.
                    let (tenant, credential) = mark.as_ref().map_or(("", None), A::holder);
                    if let Err(refusal) = enter(request.extensions(), tenant, credential) {
                        return Ok(refusal.into_http());
                    }
                    let is_ignored = mark.as_ref().is_some_and(A::is_open)
                        && request.headers().contains_key(AUTHORIZATION);
                    if let Some(mark) = mark {
                        request.extensions_mut().insert(mark);
                    }
                    let mut response = inner.call(request).await?;
                    if is_ignored {
                        let ignored = HeaderValue::from_static("ignored");
                        response.headers_mut().insert(CREDENTIAL_STATUS, ignored);
                    }
                    Ok(response)
                }
                Err(fault) => Ok(status::from_fault(&fault).into_http()),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
