//! Tokens of an OpenID Connect issuer.

use std::net::IpAddr;

use http::Uri;
use memfleet_runtime::config::{Problem, Validate};
use serde::{Deserialize, Serialize};

/// Tokens of an OpenID Connect issuer, as credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jwt {
    /// The issuer, as its tokens name it (`iss`); its keys are found through its discovery document unless `jwks_url` is set. Without
    /// one no token is accepted. Default none.
    pub issuer: Option<String>,
    /// Whom tokens are for (`aud`). Needed with an issuer. Default none.
    pub audience: Option<String>,
    /// Where the keys of the issuer are. Default none.
    pub jwks_url: Option<String>,
    /// The claim that names the tenant. Default `tenant`.
    pub tenant_claim: String,
    /// The claim with what the token allows, a list or one text with spaces between: `memfleet:read`, `memfleet:write`,
    /// `memfleet:admin`, and `memfleet:space:NAME` for each space where it is not for all. Default `scope`.
    pub scope_claim: String,
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            issuer: None,
            audience: None,
            jwks_url: None,
            tenant_claim: "tenant".to_owned(),
            scope_claim: "scope".to_owned(),
        }
    }
}

/// Whether nobody on the way can change what is read there.
fn is_safe(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|url| {
        let host = url.host().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        match url.scheme_str() {
            Some("https") => !host.is_empty(),
            Some("http") => is_local,
            _ => false,
        }
    })
}

impl Validate for Jwt {
    fn problems(&self) -> Vec<Problem> {
        let unsafe_url = "must be `https://…`: whoever can change its answer could issue tokens";
        let rules = [
            (
                "issuer",
                self.issuer.as_deref().is_some_and(|url| !is_safe(url)),
                unsafe_url,
            ),
            (
                "jwks_url",
                self.jwks_url.as_deref().is_some_and(|url| !is_safe(url)),
                unsafe_url,
            ),
            (
                "audience",
                self.issuer.is_some() && self.audience.is_none(),
                "is needed with `auth.jwt.issuer`: tokens that are for others must not count",
            ),
            (
                "issuer",
                self.issuer.is_none() && (self.audience.is_some() || self.jwks_url.is_some()),
                "is needed: without it no token is accepted",
            ),
        ];
        let broken = rules.into_iter().filter(|rule| rule.1);
        broken
            .map(|(key, _, message)| Problem::new(key, message))
            .collect()
    }
}
