//! Who may call: API keys, and the secret that the roles of a fleet share.

use std::fmt;
use std::str::FromStr;

use memfleet_domain::ids::TenantId;
use memfleet_rpc::auth::{DEFAULT_TENANT, KeyHash, Keys};
use memfleet_rpc::fleet::Credential;
use memfleet_runtime::config::{Problem, Secret, Validate};
use serde::{Deserialize, Serialize};

/// Fewest characters of a key that somebody makes up.
const SHORTEST: usize = 16;

/// Who may call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// API keys as `tenant:hash`; the hash is the BLAKE3 of the key in hexadecimal, as `memfleet key` prints it. Without
    /// keys every caller is the tenant `default`, and only a loopback address is allowed. Default none.
    pub keys: Vec<String>,
    /// An API key of the tenant `default` in clear, at least 16 characters, for a first start: whoever deploys chooses it, and it
    /// works until it is taken out again. Default none.
    pub bootstrap_key: Option<Secret>,
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
    pub fn keys(&self) -> Keys {
        let entries = self.keys.iter().filter_map(|key| key.parse().ok());
        let entries = entries.map(|entry: KeyEntry| (entry.tenant, entry.hash));
        let bootstrap = self.bootstrap_key.iter().map(|key| {
            let tenant =
                TenantId::new(DEFAULT_TENANT).expect("the default tenant has a valid name");
            (tenant, KeyHash::of(key.expose()))
        });
        Keys::new(entries.chain(bootstrap))
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
        problems
    }
}
