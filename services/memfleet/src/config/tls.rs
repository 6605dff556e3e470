//! Encryption of what this process answers and asks.

use std::path::PathBuf;

use memfleet_runtime::config::{Problem, Validate};
use memfleet_tls::Files;
use serde::{Deserialize, Serialize};

/// Encryption of what this process answers and asks. The files may be replaced while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// File with the certificate of this process in PEM, followed by those between it and its authority. With one only encrypted
    /// calls are answered. Default none.
    pub certificate: Option<PathBuf>,
    /// File with the key of the certificate. Default none.
    pub key: Option<PathBuf>,
    /// File with the authority of the fleet. Roles then answer only callers with a certificate that it signed, and ask only
    /// `https://` peers with one; the gateway asks callers from outside for none. Default none: peers are believed by the
    /// authorities of the operating system.
    pub client_ca: Option<PathBuf>,
}

impl Tls {
    /// What is read.
    pub fn files(&self) -> Files {
        Files {
            own: self.certificate.clone().zip(self.key.clone()),
            authority: self.client_ca.clone(),
        }
    }

    /// Whether roles answer those only who have a certificate of the fleet.
    pub fn is_mutual(&self) -> bool {
        self.certificate.is_some() && self.client_ca.is_some()
    }
}

impl Validate for Tls {
    fn problems(&self) -> Vec<Problem> {
        let rules = [
            (
                "key",
                self.certificate.is_some() && self.key.is_none(),
                "is missing: a certificate is of no use without its key",
            ),
            (
                "certificate",
                self.certificate.is_none() && (self.key.is_some() || self.client_ca.is_some()),
                "is missing: name the certificate of this process",
            ),
        ];
        let broken = rules.into_iter().filter(|(_, broken, _)| *broken);
        broken
            .map(|(key, _, message)| Problem::new(key, message))
            .collect()
    }
}
