//! Where the other roles are.

use memfleet_runtime::config::{Problem, Validate};
use serde::{Deserialize, Serialize};

/// In this process.
const HERE: &str = "inproc:";

/// How the URL of an encrypted peer begins.
const ENCRYPTED: &str = "https://";

/// Where a role finds the others: `inproc:` runs one in the same process, `http://host:port` or `https://host:port` calls it; a host name stands
/// for every replica that it resolves to, and several URLs may stand with commas between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Peers {
    /// The embedder. Default `inproc:`.
    pub embedder: String,
    /// The retriever. Default `inproc:`.
    pub retriever: String,
    /// The refresher. Default `inproc:`.
    pub refresher: String,
}

impl Default for Peers {
    fn default() -> Self {
        Self {
            embedder: HERE.to_owned(),
            retriever: HERE.to_owned(),
            refresher: HERE.to_owned(),
        }
    }
}

fn is_called(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with(ENCRYPTED)
}

/// The URL of a role that is elsewhere.
pub fn elsewhere(url: &str) -> Option<&str> {
    (url != HERE).then_some(url)
}

impl Peers {
    /// Whether any is spoken to in secret.
    pub fn are_encrypted(&self) -> bool {
        self.all().iter().any(|(_, url)| url.contains(ENCRYPTED))
    }

    fn all(&self) -> [(&'static str, &str); 3] {
        [
            ("embedder", &self.embedder),
            ("retriever", &self.retriever),
            ("refresher", &self.refresher),
        ]
    }
}

impl Validate for Peers {
    fn problems(&self) -> Vec<Problem> {
        let is_wrong = |url: &str| {
            elsewhere(url).is_some_and(|urls| !urls.split(',').all(|url| is_called(url.trim())))
        };
        self.all()
            .into_iter()
            .filter(|(_, url)| is_wrong(url))
            .map(|(role, _)| {
                Problem::new(
                    role,
                    "must be `inproc:`, `http://host:port` or `https://host:port`",
                )
            })
            .collect()
    }
}
