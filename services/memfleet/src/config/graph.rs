//! Where a fleet keeps its semantic graph.

use std::path::PathBuf;
use std::time::Duration;

use memfleet_runtime::config::{HumanDuration, Problem, Secret, ServiceUrl, Validate};
use serde::{Deserialize, Serialize};

/// A Neo4j with the semantic graph. A node keeps its graph in its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Graph {
    /// `bolt://host:7687`, encrypted `bolt+s://host:7687`. Default none: the fleet has no graph.
    pub url: Option<ServiceUrl>,
    /// Who asks. Default `neo4j`.
    pub user: String,
    /// With which password. Default none.
    pub password: Option<Secret>,
    /// The database. Default `neo4j`.
    pub database: String,
    /// File with the certificates of the authority that signed the server's. Default: those of the operating system.
    pub ca: Option<PathBuf>,
    /// Connections that a process opens at most. Default 8.
    pub max_connections: u32,
    /// What a question or a write may take, retries included. Default 5 s.
    pub timeout: HumanDuration,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            url: None,
            user: "neo4j".to_owned(),
            password: None,
            database: "neo4j".to_owned(),
            ca: None,
            max_connections: 8,
            timeout: HumanDuration::from(Duration::from_secs(5)),
        }
    }
}

impl Graph {
    /// How the server is reached, if there is one.
    pub fn server(&self) -> Option<memfleet_neo4j::Options> {
        let password = self.password.as_ref();
        Some(memfleet_neo4j::Options {
            url: self.url.as_ref()?.expose().to_owned(),
            user: self.user.clone(),
            password: password
                .map(|it| it.expose().to_owned())
                .unwrap_or_default(),
            database: self.database.clone(),
            ca: self.ca.clone(),
            connections: self.max_connections as usize,
            timeout: self.timeout.get(),
        })
    }
}

impl Validate for Graph {
    fn problems(&self) -> Vec<Problem> {
        let is_bolt = |url: &ServiceUrl| {
            let url = url.expose();
            url.starts_with("bolt://") || url.starts_with("bolt+s://")
        };
        let rules = [
            (
                "url",
                self.url.as_ref().is_some_and(|url| !is_bolt(url)),
                "must be `bolt://host:7687`, or `bolt+s://host:7687` for an encrypted connection",
            ),
            (
                "max_connections",
                self.max_connections == 0,
                "must be at least 1",
            ),
            (
                "timeout",
                self.timeout.get().is_zero(),
                "must be longer than 0",
            ),
        ];
        let broken = rules.into_iter().filter(|rule| rule.1);
        broken
            .map(|(key, _, message)| Problem::new(key, message))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_bolt_is_one() {
        for (url, problems) in [
            ("bolt://graph:7687", 0),
            ("bolt+s://graph:7687", 0),
            ("http://graph:7474", 1),
            ("graph", 1),
        ] {
            let graph = Graph {
                url: Some(url.into()),
                ..Graph::default()
            };
            assert_eq!(graph.problems().len(), problems, "{url}");
        }
        assert!(Graph::default().server().is_none());
    }
}
