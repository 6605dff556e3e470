//! Who may call: API keys and tokens, and the secret that the roles of a fleet share.

use std::fmt;
use std::str::FromStr;

use memfleet_domain::access::KeyHash;
use memfleet_domain::ids::TenantId;
use memfleet_rpc::fleet::Credential;
use memfleet_runtime::config::{Problem, Secret, Validate};
use serde::{Deserialize, Serialize};

use super::jwt::Jwt;

/// Fewest characters of a key that somebody makes up.
const SHORTEST: usize = 16;

/// Who may call. Without a key here or in the store every caller is an operator of the tenant `default`, and only a loopback
/// address is allowed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// Keys beside those of the store, which allow everything within their tenant and work while the store is away, as
    /// `tenant:hash`; the hash is the BLAKE3 of the key in hexadecimal, as `memfleet key entry` prints it. Default none.
    pub keys: Vec<String>,
    /// An operator's key in clear, at least 16 characters, which goes into the store when a gateway starts; one that was revoked
    /// there stays so. Default none.
    pub bootstrap_key: Option<Secret>,
    /// Tokens of an issuer.
    pub jwt: Jwt,
}

/// How roles know each other.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Internal {
    /// The secret of the fleet, at least 16 characters; every role has the same. Several may stand in it, one a line: the first
    /// is sent, each is believed. Roles that others reach over a network need one, or mutual TLS. Default none.
    pub token: Option<Secret>,
}

impl Internal {
    /// What roles bring along and ask for; [`Validate`] refused a configuration with another.
    pub fn credential(&self) -> Credential {
        let token = self.token.as_ref();
        let credential = token.and_then(|token| Credential::new(token.expose()).ok());
        credential.unwrap_or_default()
    }
}

impl Validate for Internal {
    fn problems(&self) -> Vec<Problem> {
        let token = self.token.as_ref();
        let wrong = token.and_then(|token| Credential::new(token.expose()).err());
        wrong
            .map(|message| Problem::new("token", message))
            .into_iter()
            .collect()
    }
}

impl Auth {
    /// The keys; all of them, since [`Validate`] refused a configuration with others.
    pub fn configured(&self) -> Vec<(TenantId, KeyHash)> {
        let entries = self.keys.iter().filter_map(|key| key.parse().ok());
        entries
            .map(|entry: KeyEntry| (entry.tenant, entry.hash))
            .collect()
    }

    /// Whether the configuration names nobody: only a key in the store can then close the process.
    pub fn is_open(&self) -> bool {
        self.keys.is_empty() && self.bootstrap_key.is_none() && self.jwt.issuer.is_none()
    }
}

/// One of [`Auth::keys`]: whom a key speaks for, and what is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    /// Whose key it is.
    pub tenant: TenantId,
    /// The hash of the key.
    pub hash: KeyHash,
}

impl fmt::Display for KeyEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.tenant, self.hash)
    }
}

impl FromStr for KeyEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (tenant, hash) = text.rsplit_once(':').ok_or("is not `tenant:hash`")?;
        Ok(Self {
            tenant: TenantId::new(tenant).map_err(|error| format!("the tenant {error}"))?,
            hash: hash.parse().map_err(|error| format!("the hash {error}"))?,
        })
    }
}

impl Validate for Auth {
    fn problems(&self) -> Vec<Problem> {
        let keys = self.keys.iter().enumerate();
        let wrong = keys.filter_map(|(index, key)| Some((index, key.parse::<KeyEntry>().err()?)));
        let mut problems: Vec<_> = wrong
            .map(|(index, message)| Problem::new(format!("keys[{index}]"), message))
            .collect();
        if self
            .bootstrap_key
            .as_ref()
            .is_some_and(|key| key.expose().len() < SHORTEST)
        {
            let message = format!("must have at least {SHORTEST} characters");
            problems.push(Problem::new("bootstrap_key", message));
        }
        let is_like_a_token = |key: &Secret| key.expose().split('.').count() == 3;
        if self.jwt.issuer.is_some() && self.bootstrap_key.as_ref().is_some_and(is_like_a_token) {
            let message = "has two dots, so that it would be taken for a token of `auth.jwt.issuer` and refused: choose a key without";
            problems.push(Problem::new("bootstrap_key", message));
        }
        let tokens = self.jwt.problems().into_iter();
        problems.extend(tokens.map(|problem| problem.under("jwt")));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bootstrap_key_that_looks_like_a_token_is_refused_beside_an_issuer_only() {
        let auth = |key: &str, issuer: Option<&str>| Auth {
            bootstrap_key: Some(key.to_owned().into()),
            jwt: Jwt {
                issuer: issuer.map(str::to_owned),
                audience: Some("memfleet".to_owned()),
                ..Jwt::default()
            },
            ..Auth::default()
        };
        let issuer = Some("https://identity.test");
        let problems = auth("a key.with two.dots in it", issuer).problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].key, "bootstrap_key");
        assert_eq!(auth("a key.with one dot in it", issuer).problems(), []);
        let closed = auth("a key.with two.dots in it", None).problems();
        assert!(closed.iter().all(|problem| problem.key != "bootstrap_key"));
    }
}
