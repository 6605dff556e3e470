//! Where searches by vector go besides the store.

use memfleet_runtime::config::{Problem, Secret, ServiceUrl, Validate};
use serde::{Deserialize, Serialize};

/// A Qdrant that mirrors the vectors of large spaces. The store stays the truth. Experimental.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vectors {
    /// `qdrant:http://host:6334`, its gRPC address. Default none: the store answers alone.
    pub url: Option<ServiceUrl>,
    /// Its API key. Default none.
    pub api_key: Option<Secret>,
}

impl Vectors {
    /// The mirror's address, if there is one.
    pub fn mirror(&self) -> Option<memfleet_qdrant::Options> {
        let url = self.url.as_ref()?.expose().strip_prefix("qdrant:")?;
        Some(memfleet_qdrant::Options {
            url: url.to_owned(),
            api_key: self.api_key.as_ref().map(|key| key.expose().to_owned()),
            ..memfleet_qdrant::Options::default()
        })
    }
}

impl Validate for Vectors {
    fn problems(&self) -> Vec<Problem> {
        let Some(url) = &self.url else {
            return Vec::new();
        };
        let address = url.expose().strip_prefix("qdrant:");
        let is_http =
            |address: &str| address.starts_with("http://") || address.starts_with("https://");
        if address.is_some_and(is_http) {
            return Vec::new();
        }
        let message = "must be `qdrant:http://host:6334`, Qdrant's gRPC address";
        vec![Problem::new("url", message)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> Vectors {
        Vectors {
            url: Some(url.into()),
            api_key: None,
        }
    }

    #[test]
    fn the_address_follows_the_scheme() {
        assert!(Vectors::default().mirror().is_none());
        let options = at("qdrant:https://vectors:6334").mirror().unwrap();
        assert_eq!(options.url, "https://vectors:6334");
    }

    #[test]
    fn another_address_is_a_problem() {
        for url in ["qdrant:vectors:6334", "http://vectors:6334", "qdrant:"] {
            assert_eq!(at(url).problems().len(), 1, "{url}");
        }
        assert!(at("qdrant:http://vectors:6334").problems().is_empty());
    }
}
