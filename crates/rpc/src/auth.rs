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
        let refused = |reason, message| Fault::new(FaultKind::Unauthenticated, reason, message);
        let Some(given) = headers.get(AUTHORIZATION) else {
            return Err(refused(
                "CREDENTIAL_MISSING",
                "send an API key as `authorization: Bearer <key>`",
            ));
        };
        let key = given.to_str().ok().and_then(|value| value.split_once(' '));
        let Some((_, key)) = key.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
            return Err(refused(
                "CREDENTIAL_MALFORMED",
                "the credential must have the form `Bearer <key>`",
            ));
        };
        let given = KeyHash::of(key.trim());
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

/// Lets a call through to its service with its tenant, or refuses it with `UNAUTHENTICATED`.
#[derive(Debug, Clone)]
pub struct AuthLayer(pub Keys);

impl<S> Layer<S> for AuthLayer {
    type Service = Authenticated<S>;

    fn layer(&self, inner: S) -> Authenticated<S> {
        Authenticated {
            inner,
            keys: self.0.clone(),
        }
    }
}

/// A service behind [`AuthLayer`].
#[derive(Debug, Clone)]
pub struct Authenticated<S> {
    inner: S,
    keys: Keys,
}

impl<S, B> Service<Request<B>> for Authenticated<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.keys.tenant(request.headers()) {
            Ok(tenant) => {
                request.extensions_mut().insert(Caller(tenant));
                Either::Left(self.inner.call(request))
            }
            Err(fault) => Either::Right(ready(Ok(status::from_fault(&fault).into_http()))),
        }
    }
}

#[cfg(test)]
mod tests;
