//! Callers by tokens of an OpenID Connect issuer: signed with a key that the issuer publishes, for us, in their time. Tenant, rights
//! and spaces come from claims.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod claims;
mod fetch;
mod keys;
mod verify;

use std::time::Duration;

use async_trait::async_trait;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Validation, decode, decode_header};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::access::{Caller, Tokens};

use crate::claims::Claims;
use crate::fetch::Source;
use crate::keys::Keys;

/// The reason where the keys cannot be had.
const UNAVAILABLE: &str = "ISSUER_UNAVAILABLE";

/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 30;

/// Whose tokens, and what they say.
#[derive(Debug, Clone)]
pub struct Options {
    /// `iss` of the tokens, and where the discovery document is.
    pub issuer: String,
    /// `aud` of the tokens, or one of them.
    pub audience: String,
    /// Where the keys are; absent: where the discovery document says.
    pub jwks_url: Option<String>,
    /// The claim that names the tenant.
    pub tenant_claim: String,
    /// The claim with rights and spaces.
    pub scope_claim: String,
    /// Shortest pause between two fetches of the keys, whatever tokens name; 5 s is right.
    pub pause: Duration,
}

/// An issuer whose tokens are believed.
pub struct Issuer {
    options: Options,
    keys: Keys,
}

impl Issuer {
    /// The issuer; nothing is fetched before its first token or check.
    pub fn new(options: Options) -> Self {
        verify::install();
        let source = Source::new(&options.issuer, options.jwks_url.clone());
        let keys = Keys::new(source, options.pause);
        Self { options, keys }
    }
}

#[async_trait]
impl Tokens for Issuer {
    async fn verify(&self, token: &str) -> Result<Caller, Fault> {
        let header = decode_header(token).map_err(|error| refused(why(&error)))?;
        let key = self.keys.find(header.kid.as_deref()).await?;
        // The key says how it signs; the token does not get to choose.
        if header.alg != key.algorithm {
            return Err(refused("is not signed as its key signs"));
        }
        let mut validation = Validation::new(key.algorithm);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[&self.options.issuer]);
        validation.set_audience(&[&self.options.audience]);
        (validation.validate_nbf, validation.leeway) = (true, LEEWAY);
        let token = decode::<Claims>(token, &key.key, &validation);
        let token = token.map_err(|error| match error.kind() {
            ErrorKind::ExpiredSignature => Fault::new(
                FaultKind::Unauthenticated,
                "CREDENTIAL_EXPIRED",
                "the token has expired: get a new one",
            ),
            _ => refused(why(&error)),
        })?;
        token.claims.caller(&self.options)
    }

    async fn check(&self) -> Result<(), Fault> {
        match self.keys.trouble().await {
            Some(cause) => Err(Fault::new(FaultKind::Unavailable, UNAVAILABLE, cause)),
            None => Ok(()),
        }
    }
}

fn why(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidAudience => "is for another audience than `auth.jwt.audience`",
        ErrorKind::InvalidIssuer => "is of another issuer than `auth.jwt.issuer`",
        ErrorKind::ImmatureSignature => "is not valid yet (`nbf`)",
        ErrorKind::MissingRequiredClaim(_) => "lacks `exp`, `iss` or `aud`",
        ErrorKind::InvalidSignature => "has a signature that does not fit",
        ErrorKind::InvalidAlgorithm => "is signed in a way that is not accepted",
        _ => "cannot be read",
    }
}

/// Never with anything of the token itself.
fn refused(why: &str) -> Fault {
    let message = format!("the token {why}");
    Fault::new(FaultKind::Unauthenticated, "TOKEN_REFUSED", message)
}
