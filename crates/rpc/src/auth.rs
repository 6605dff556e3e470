//! Who calls: a layer that turns `authorization: Bearer <key>` into the tenant of the key.
//!
//! Only hashes of keys are held. Every configured hash is compared, each in constant time, so that the time of an answer
//! says nothing about any key.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use memfleet_domain::ids::TenantId;
use memfleet_domain::{Fault, FaultKind};
use tonic::body::Body;
use tower::{Layer, Service};

use crate::status;

/// Tenant of every call while no key is configured.
pub const DEFAULT_TENANT: &str = "default";

/// Whose call it is, in the extensions of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller(pub TenantId);

/// The hash of an API key, as configuration holds it: 64 hexadecimal digits of BLAKE3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHash(blake3::Hash);

impl KeyHash {
    /// The hash of `key`.
    pub fn of(key: &str) -> Self {
        Self(blake3::hash(key.as_bytes()))
    }
}

impl std::fmt::Display for KeyHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0.to_hex().as_str())
    }
}

impl std::str::FromStr for KeyHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hash = blake3::Hash::from_hex(text.to_ascii_lowercase());
        hash.map(Self)
            .map_err(|_| "must be the BLAKE3 hash of a key, 64 hexadecimal digits".to_owned())
    }
}

/// The known keys. Without any, every call belongs to the tenant `default`; serve that on loopback only.
#[derive(Debug, Clone, Default)]
pub struct Keys(Arc<[(TenantId, KeyHash)]>);

impl Keys {
    /// Each tenant with the hash of a key of its; a tenant may have several.
    pub fn new(keys: impl IntoIterator<Item = (TenantId, KeyHash)>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Whether calls need no credential.
    pub fn is_open(&self) -> bool {
        self.0.is_empty()
    }

    fn tenant(&self, headers: &HeaderMap) -> Result<TenantId, Fault> {
        if self.is_open() {
            return Ok(TenantId::new(DEFAULT_TENANT).expect("the default tenant has a valid name"));
        }
        let given = KeyHash::of(bearer(headers)?);
        let mut owner = None;
        for (tenant, known) in self.0.iter() {
            if *known == given {
                owner = Some(tenant);
            }
        }
        owner.cloned().ok_or_else(|| {
            refused(
                "CREDENTIAL_UNKNOWN",
                "the API key is not known to this server",
            )
        })
    }
}

/// Finds out who calls.
pub(crate) trait Authenticate: Clone {
    /// Whose call it is; nobody's where it is about no tenant's memory.
    fn caller(&self, headers: &HeaderMap) -> Result<Option<Caller>, Fault>;
}

impl Authenticate for Keys {
    fn caller(&self, headers: &HeaderMap) -> Result<Option<Caller>, Fault> {
        Ok(Some(Caller(self.tenant(headers)?)))
    }
}

/// The credential of a call.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Fault> {
    let Some(given) = headers.get(AUTHORIZATION) else {
        return Err(refused(
            "CREDENTIAL_MISSING",
            "send an API key as `authorization: Bearer <key>`",
        ));
    };
    let key = given.to_str().ok().and_then(|value| value.split_once(' '));
    let key = key.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    key.map(|(_, key)| key.trim()).ok_or_else(|| {
        refused(
            "CREDENTIAL_MALFORMED",
            "the credential must have the form `Bearer <key>`",
        )
    })
}

fn refused(reason: &'static str, message: &'static str) -> Fault {
    Fault::new(FaultKind::Unauthenticated, reason, message)
}

/// Lets a call through to its service with its tenant, or refuses it with `UNAUTHENTICATED`.
#[derive(Debug, Clone)]
pub(crate) struct AuthLayer<A>(pub A);

impl<S, A: Clone> Layer<S> for AuthLayer<A> {
    type Service = Authenticated<S, A>;

    fn layer(&self, inner: S) -> Authenticated<S, A> {
        Authenticated {
            inner,
            authority: self.0.clone(),
        }
    }
}

/// A service behind [`AuthLayer`].
#[derive(Debug, Clone)]
pub(crate) struct Authenticated<S, A> {
    inner: S,
    authority: A,
}

impl<S, A, B> Service<Request<B>> for Authenticated<S, A>
where
    A: Authenticate,
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.authority.caller(request.headers()) {
            Ok(caller) => {
                if let Some(caller) = caller {
                    request.extensions_mut().insert(caller);
                }
                Either::Left(self.inner.call(request))
            }
            Err(fault) => Either::Right(ready(Ok(status::from_fault(&fault).into_http()))),
        }
    }
}

#[cfg(test)]
mod tests;
