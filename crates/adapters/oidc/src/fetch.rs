//! Fetching the keys of an issuer over HTTP.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use crate::keys::Fetched;

/// What an answer may take …
const PATIENCE: Duration = Duration::from_secs(5);
/// … and be, in bytes.
const LARGEST: u64 = 1 << 20;

/// Where the keys are.
#[derive(Clone)]
pub struct Source {
    agent: Agent,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Discovery(String),
    Keys(String),
}

/// What we need of a discovery document.
#[derive(Deserialize)]
struct Discovery {
    jwks_uri: String,
}

impl Source {
    /// The place that is given, or the one that the issuer's discovery document names.
    pub fn new(issuer: &str, url: Option<String>) -> Self {
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            // A redirect may lead anywhere, and out of encryption.
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .user_agent(concat!("memfleet/", env!("CARGO_PKG_VERSION")));
        let issuer = issuer.trim_end_matches('/');
        let discovery = format!("{issuer}/.well-known/openid-configuration");
        Self {
            agent: config.build().new_agent(),
            place: url.map_or(Place::Discovery(discovery), Place::Keys),
        }
    }

    /// The keys, or why there are none.
    pub async fn fetch(&self) -> Fetched {
        let source = self.clone();
        let fetching = tokio::task::spawn_blocking(move || source.fetch_now());
        fetching
            .await
            .unwrap_or_else(|error| Err(error.to_string()))
    }

    fn fetch_now(&self) -> Fetched {
        match &self.place {
            Place::Keys(url) => self.get(url),
            Place::Discovery(url) => {
                let found: Discovery = self.get(url)?;
                let (scheme, _) = found.jwks_uri.split_once(':').unwrap_or_default();
                if !url.starts_with(&format!("{scheme}:")) && scheme != "https" {
                    return Err(format!("{url} names keys that are not behind https"));
                }
                self.get(&found.jwks_uri)
            }
        }
    }

    fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let named = |error: &dyn std::fmt::Display| format!("{url}: {error}");
        let mut answer = self.agent.get(url).call().map_err(|error| named(&error))?;
        if answer.status().is_redirection() {
            return Err(format!(
                "{url} redirects, which is not followed: set `auth.jwt.jwks_url` to where the keys are"
            ));
        }
        let body = answer.body_mut().with_config().limit(LARGEST);
        let text = body.read_to_string().map_err(|error| named(&error))?;
        serde_json::from_str(&text).map_err(|error| named(&error))
    }
}
