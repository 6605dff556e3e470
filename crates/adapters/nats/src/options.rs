//! What a connection is made with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};
use memfleet_ports::queue::{Accepted, LETTER_BYTES, LETTERS, TOGETHER, TRIES};

/// How to reach the servers, and how the queue is kept there.
#[derive(Debug, Clone)]
pub struct Options {
    /// Servers of one cluster, `nats://host:4222` or `tls://host:4222`; any of them will do. A user and password may stand in
    /// them.
    pub servers: Vec<String>,
    /// Who asks. Default: nobody.
    pub auth: Auth,
    /// Certificates besides those of the operating system. Default: none.
    pub tls: Tls,
    /// How long a call may take. Default 5 s.
    pub request_timeout: Duration,
    /// Starts every subject, and in upper case every stream: lower-case letters, digits and `_`. Default `memfleet`.
    pub prefix: String,
    /// Copies that a cluster keeps of each message: 1, 3 or 5. Default 1.
    pub replicas: usize,
    /// The largest size of what waits in bytes; the server sets it aside, and a sixteenth of it for events. Default 4 GiB.
    pub max_bytes: u64,
    /// The most batches that may wait. Default 10,000,000.
    pub max_batches: u64,
    /// How long a batch stays with a process that says nothing; one that lives says so three times as often. Used where the
    /// consumers are made here. Default 30 s.
    pub ack_wait: Duration,
    /// A batch that the server handed out more often is alone in its round, and its tries are counted. Default
    /// [`memfleet_ports::queue::TOGETHER`].
    pub together: u32,
    /// A batch that was tried more often becomes a dead letter: it seems to crash the process that
    /// works on it. Default [`memfleet_ports::queue::TRIES`].
    pub tries: u32,
    /// Dead letters that a tenant may have, about. Default [`memfleet_ports::queue::LETTERS`].
    pub letters: u64,
    /// Bytes of dead letters that a tenant may have, about. Default
    /// [`memfleet_ports::queue::LETTER_BYTES`].
    pub letter_bytes: u64,
    /// The ledger: a stream that is made here goes on behind what it holds, and a dead letter holds nothing that it had to forget.
    /// Default: none.
    pub accepted: Option<Arc<dyn Accepted>>,
    /// How often what is set on the server is compared with what this build would set, besides after every connection. Default
    /// 1 min.
    pub compare_every: Duration,
    /// Bytes of the largest batch that is to go through; a server that takes less is reported. Default 1 MiB.
    pub largest_batch: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            servers: vec!["nats://127.0.0.1:4222".to_owned()],
            auth: Auth::None,
            tls: Tls::default(),
            request_timeout: Duration::from_secs(5),
            prefix: "memfleet".to_owned(),
            replicas: 1,
            max_bytes: 4 << 30,
            max_batches: 10_000_000,
            ack_wait: Duration::from_secs(30),
            together: TOGETHER,
            tries: TRIES,
            letters: LETTERS,
            letter_bytes: LETTER_BYTES,
            accepted: None,
            compare_every: Duration::from_mins(1),
            largest_batch: 1 << 20,
        }
    }
}

/// Who asks.
#[derive(Clone, Default)]
pub enum Auth {
    /// Nobody.
    #[default]
    None,
    /// A user with a password.
    User {
        /// The name.
        name: String,
        /// The password.
        password: String,
    },
    /// Whoever has this token.
    Token(String),
    /// A file with a JWT and its key, as `nsc` writes it.
    Credentials(PathBuf),
}

impl std::fmt::Debug for Auth {
    /// Without what is secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::None => "None",
            Self::User { .. } => "User",
            Self::Token(_) => "Token",
            Self::Credentials(_) => "Credentials",
        })
    }
}

/// Files in PEM.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Whether TLS must be spoken, also where the URL does not say so.
    pub required: bool,
    /// Authorities that are believed besides those of the operating system.
    pub authorities: Option<PathBuf>,
    /// The certificate that the server is shown, and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Why no connection was tried.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Not a URL, or none at all.
    #[error("nats: {0}")]
    Server(String),
    /// It would not be a subject.
    #[error("nats: prefix `{0}` must be lower-case letters, digits and `_`")]
    Prefix(String),
    /// The credentials cannot be read.
    #[error("nats: credentials file {path}: {cause}")]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: std::io::Error,
    },
    /// A certificate cannot be read.
    #[error("nats: {0}")]
    Tls(String),
}

impl Options {
    pub(crate) fn addresses(&self) -> Result<Vec<ServerAddr>, OptionsError> {
        if self.servers.is_empty() {
            return Err(OptionsError::Server("no server is named".to_owned()));
        }
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if self.prefix.is_empty() || !self.prefix.bytes().all(is_plain) {
            return Err(OptionsError::Prefix(self.prefix.clone()));
        }
        let address = |(place, url): (usize, &String)| {
            // Not the text itself: a password may stand in it.
            let refused = |cause| OptionsError::Server(format!("servers[{place}]: {cause}"));
            url.parse().map_err(refused)
        };
        self.servers.iter().enumerate().map(address).collect()
    }

    /// All that does not depend on events.
    pub(crate) async fn connection(&self) -> Result<ConnectOptions, OptionsError> {
        let mut options = ConnectOptions::new()
            .name("memfleet")
            .retry_on_initial_connect()
            .max_reconnects(None)
            .no_echo()
            .connection_timeout(self.request_timeout)
            .request_timeout(Some(self.request_timeout))
            .ping_interval(Duration::from_secs(10))
            .require_tls(self.tls.required);
        if let Some(authorities) = &self.tls.authorities {
            options = options.add_root_certificates(readable(authorities)?);
        }
        if let Some((certificate, key)) = &self.tls.certificate {
            options = options.add_client_certificate(readable(certificate)?, readable(key)?);
        }
        Ok(match &self.auth {
            Auth::None => options,
            Auth::User { name, password } => {
                options.user_and_password(name.clone(), password.clone())
            }
            Auth::Token(token) => options.token(token.clone()),
            Auth::Credentials(path) => {
                let loaded = options.credentials_file(path).await;
                loaded.map_err(|cause| OptionsError::Credentials {
                    path: path.clone(),
                    cause,
                })?
            }
        })
    }
}

/// The path of a file that is there; said now, since a connection that never comes up would not say why.
fn readable(path: &PathBuf) -> Result<PathBuf, OptionsError> {
    match std::fs::File::open(path) {
        Ok(_) => Ok(path.clone()),
        Err(cause) => Err(OptionsError::Tls(format!("{}: {cause}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_none_is_refused_without_its_text() {
        let options = Options {
            servers: vec!["nats://user:secret@host:notaport".to_owned()],
            ..Options::default()
        };
        let refused = options.addresses().unwrap_err().to_string();
        assert!(refused.starts_with("nats: servers[0]: "), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }

    #[test]
    fn a_prefix_that_is_no_token_is_refused() {
        for prefix in ["", "a.b", "Memfleet", "*"] {
            let prefix = prefix.to_owned();
            let options = Options {
                prefix,
                ..Options::default()
            };
            assert!(options.addresses().is_err(), "{options:?}");
        }
    }
}
