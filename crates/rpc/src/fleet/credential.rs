//! How roles know each other: a secret that they share. Whose memory a call is about travels beside it, which is why only
//! a holder of the secret is believed.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use memfleet_domain::access::KeyHash;
use memfleet_domain::ids::TenantId;
use memfleet_domain::{Fault, FaultKind};
use tonic::Request;
use tonic::metadata::{Ascii, BinaryMetadataValue, MetadataMap, MetadataValue};

use crate::auth::{Authenticate, Caller, bearer};

/// Metadata that names the tenant, in UTF-8.
const TENANT: &str = "memfleet-tenant-bin";

/// What is wrong with a secret that can be guessed.
const SHORT: &str = "must have at least 16 characters";

/// The secret of a fleet. Without one every caller is believed: for loopback, or behind mutual TLS.
#[derive(Clone, Default)]
pub struct Credential(Option<Secret>);

#[derive(Clone)]
struct Secret {
    /// What this side sends.
    header: MetadataValue<Ascii>,
    /// What it believes.
    hashes: Vec<KeyHash>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = if self.0.is_some() { "secret" } else { "open" };
        write!(formatter, "Credential({known})")
    }
}

impl Credential {
    /// The secrets in `tokens`, one a line: printable ASCII, at least 16 characters. The first is sent, each is believed, so
    /// that one can take the place of another while roles are replaced.
    pub fn new(tokens: &str) -> Result<Self, &'static str> {
        let tokens = tokens.lines().map(str::trim);
        let tokens: Vec<_> = tokens.filter(|token| !token.is_empty()).collect();
        let headers: Result<Vec<_>, _> = tokens.iter().map(|token| header(token)).collect();
        let header = headers?.into_iter().next().ok_or(SHORT)?;
        let hashes = tokens.into_iter().map(KeyHash::of).collect();
        Ok(Self(Some(Secret { header, hashes })))
    }

    /// Marks a call as the fleet's own.
    pub(super) fn sign<M>(&self, request: &mut Request<M>) {
        if let Some(secret) = &self.0 {
            let metadata: &mut MetadataMap = request.metadata_mut();
            metadata.insert(AUTHORIZATION.as_str(), secret.header.clone());
        }
    }
}

impl Secret {
    /// Every hash is compared, so that the time of an answer says nothing of any.
    fn believes(&self, given: KeyHash) -> bool {
        let known = self.hashes.iter().filter(|known| **known == given);
        known.count() > 0
    }
}

fn header(token: &str) -> Result<MetadataValue<Ascii>, &'static str> {
    if token.len() < 16 {
        return Err(SHORT);
    }
    let header = format!("Bearer {token}").parse();
    let mut header: MetadataValue<Ascii> = header.map_err(|_| "must be printable ASCII")?;
    header.set_sensitive(true);
    Ok(header)
}

/// Notes whose memory a call is about.
pub(super) fn name_tenant<M>(request: &mut Request<M>, tenant: &TenantId) {
    let value = BinaryMetadataValue::from_bytes(tenant.as_str().as_bytes());
    request.metadata_mut().insert_bin(TENANT, value);
}

impl Authenticate for Credential {
    type Mark = Caller;

    fn holder(Caller(tenant): &Caller) -> (&str, Option<&str>) {
        (tenant.as_str(), None)
    }

    /// Calls that are about nobody's memory name no tenant.
    async fn caller(&self, headers: &HeaderMap) -> Result<Option<Caller>, Fault> {
        if let Some(secret) = &self.0
            && !secret.believes(KeyHash::of(bearer(headers)?))
        {
            return Err(Fault::new(
                FaultKind::Unauthenticated,
                "CREDENTIAL_UNKNOWN",
                "the caller does not have the secret of this fleet: give every role the same `internal.token`",
            ));
        }
        let Some(name) = MetadataMap::from_headers(headers.clone()).remove_bin(TENANT) else {
            return Ok(None);
        };
        let name = name.to_bytes().ok();
        let name = name.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
        let tenant = name.and_then(|name| TenantId::new(name).ok());
        tenant
            .map(|tenant| Some(Caller(tenant)))
            .ok_or_else(|| Fault::invalid(TENANT, "must be the name of a tenant in UTF-8"))
    }
}
