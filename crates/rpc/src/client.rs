//! A remote node as the same handle as a local one: [`Client`] implements the traits of `memfleet-ports` over a channel.

mod admin;
mod assembly;
mod calls;
mod capture;
mod injections;
mod knowledge;
mod maintenance;
mod memory;
mod policies;
mod tools;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use memfleet_domain::{Fault, FaultKind};
use memfleet_tls::{Files, Tls};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use crate::transport::Way;
use wire::Wire;

/// Largest answer that is read: a page of 1,000 turns of the largest size.
const MAX_ANSWER_BYTES: usize = 128 << 20;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Silence after which a connection with calls on it is probed.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// A node behind a URL. Cheap to clone; all clones share one connection, which is opened again when it breaks.
#[derive(Debug, Clone)]
pub struct Client {
    wire: Wire,
    credential: Option<MetadataValue<Ascii>>,
}

impl Client {
    /// Connects to `url` (`http://127.0.0.1:9460`, or `127.0.0.1:9460` alone; `https` believes the authorities of the operating system) and sends `api_key`
    /// with every call. The tenant of a [`memfleet_ports::context::Context`] never travels: the key decides.
    pub async fn connect(url: &str, api_key: Option<&str>) -> Result<Self, Fault> {
        Self::connect_believing(url, api_key, None).await
    }

    /// The same, believing the authority in this file instead.
    pub async fn connect_believing(
        url: &str,
        api_key: Option<&str>,
        authority: Option<PathBuf>,
    ) -> Result<Self, Fault> {
        let credential = api_key.map(credential).transpose()?;
        let channel = way(url, authority)?
            .connect()
            .await
            .map_err(|error| unreachable(url, &error))?;
        Ok(Self {
            wire: Wire::new(channel),
            credential,
        })
    }

    /// Its connection, for generated clients.
    pub fn channel(&self) -> Channel {
        self.wire.channel.clone()
    }

    /// Whether the node answered a call without a look at its credential: it has no keys yet, and lets every caller in.
    pub fn is_credential_ignored(&self) -> bool {
        self.wire.is_credential_ignored()
    }
}

fn credential(key: &str) -> Result<MetadataValue<Ascii>, Fault> {
    let mut value: MetadataValue<Ascii> = format!("Bearer {key}")
        .parse()
        .map_err(|_| Fault::invalid("api_key", "must be printable ASCII"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn way(url: &str, authority: Option<PathBuf>) -> Result<Way, Fault> {
    let malformed = || {
        Fault::invalid(
            "url",
            "must have the form http://host:port, https://host:port or host:port (as http)",
        )
    };
    let uri: Uri = url.parse().map_err(|_| malformed())?;
    let host = uri.host().ok_or_else(malformed)?;
    let (port, encryption) = match uri.scheme_str() {
        Some("http") => (80, None),
        // As other clients of gRPC have it.
        None if uri.port_u16().is_some() => (80, None),
        Some("https") => {
            let files = Files {
                own: None,
                authority,
            };
            let tls = Tls::load(files).map_err(|error| Fault::invalid("ca", error.to_string()))?;
            (443, Some((tls, host.trim_matches(['[', ']']).to_owned())))
        }
        _ => return Err(malformed()),
    };
    Ok(Way {
        address: format!("{host}:{}", uri.port_u16().unwrap_or(port)),
        encryption,
        patience: CONNECT_TIMEOUT,
        keep_alive: KEEP_ALIVE,
    })
}

fn unreachable(url: &str, error: &(dyn std::error::Error + 'static)) -> Fault {
    let cause = std::iter::successors(Some(error), |error| error.source())
        .last()
        .unwrap_or(error);
    let message = format!("no memfleet node answers at {url}: {cause}");
    Fault::new(FaultKind::Unavailable, "CONNECTION_FAILED", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_is_http() {
        for (url, address) in [
            ("127.0.0.1:19700", "127.0.0.1:19700"),
            ("http://127.0.0.1:19700", "127.0.0.1:19700"),
            ("[::1]:9460", "[::1]:9460"),
            ("node.example:9460", "node.example:9460"),
            ("http://node.example", "node.example:80"),
        ] {
            let way = way(url, None).unwrap();
            assert_eq!(
                (way.address.as_str(), way.encryption.is_some()),
                (address, false)
            );
        }
        for malformed in [
            "node.example",
            "/tmp/socket",
            "ftp://node.example:21",
            "127.0.0.1:99999",
        ] {
            let fault = way(malformed, None).err().unwrap();
            assert!(fault.message.contains("http://host:port"), "{malformed}");
        }
    }
}
