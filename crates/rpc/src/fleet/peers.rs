//! The replicas of a role: found by name, watched, and chosen from. The name is resolved again and again, so replicas come
//! and go without a restart; each is asked for its health, so that one that hangs is passed over before callers wait for it.

mod replica;
mod watch;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use http::Uri;
use memfleet_domain::{Fault, FaultKind};
use memfleet_tls::Tls;
use tokio::task::AbortHandle;

pub(super) use self::replica::Replica;

/// In the clear, and encrypted.
const SCHEMES: [&str; 2] = ["http", ENCRYPTED];

/// The second of them.
const ENCRYPTED: &str = "https";

/// How a role is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// `http://host:port` or `https://host:port`, or several of one kind with commas between; a host name stands for every address
    /// that it resolves to.
    pub url: String,
    /// The terms of encryption; `https` needs them.
    pub tls: Option<Tls>,
    /// How often the name is resolved and the replicas are asked how they are.
    pub watch_interval: Duration,
}

impl Options {
    /// The usual: watched each second.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            tls: None,
            watch_interval: Duration::from_secs(1),
        }
    }
}

/// The replicas of a role. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Peers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    names: Names,
    tls: Option<Tls>,
    replicas: RwLock<Vec<Arc<Replica>>>,
    known: tokio::sync::watch::Sender<bool>,
    turn: AtomicUsize,
    watch: OnceLock<AbortHandle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.get() {
            watch.abort();
        }
    }
}

/// What the URL says: hosts with their ports, and whether they are spoken to in secret.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Names {
    scheme: String,
    hosts: Vec<(String, u16)>,
}

impl std::fmt::Display for Names {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = &self.scheme;
        for (index, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(formatter, "{comma}{scheme}://{host}:{port}")?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Names {
    type Err = Fault;

    fn from_str(urls: &str) -> Result<Self, Fault> {
        let name = |url: &str| {
            let uri: Uri = url.trim().parse().ok()?;
            let scheme = uri.scheme_str().filter(|scheme| SCHEMES.contains(scheme))?;
            let host = uri.host()?.trim_matches(['[', ']']).to_owned();
            Some((scheme.to_owned(), (host, uri.port_u16()?)))
        };
        let names: Option<(Vec<_>, Vec<_>)> = urls.split(',').map(name).collect();
        let alike = names.filter(|(schemes, _)| schemes.windows(2).all(|pair| pair[0] == pair[1]));
        let named = alike.and_then(|(mut schemes, hosts)| {
            let scheme = schemes.pop()?;
            Some(Self { scheme, hosts })
        });
        named.ok_or_else(|| {
            Fault::invalid(
                "url",
                "must have the form http://host:port or https://host:port, or be several of one form with commas between",
            )
        })
    }
}

impl Peers {
    /// Starts to watch the replicas behind `options.url`. None needs to be there yet.
    pub fn watch(options: &Options) -> Result<Self, Fault> {
        let names: Names = options.url.parse()?;
        let tls = options.tls.clone().filter(|_| names.scheme == ENCRYPTED);
        if names.scheme == ENCRYPTED && tls.is_none() {
            return Err(Fault::invalid(
                "url",
                "is for TLS, which this process has no terms of",
            ));
        }
        let interval = options.watch_interval;
        let shared = Arc::new(Shared {
            names,
            tls,
            replicas: RwLock::default(),
            known: tokio::sync::watch::Sender::new(false),
            turn: AtomicUsize::new(0),
            watch: OnceLock::new(),
        });
        let watch = tokio::spawn(watch::run(Arc::downgrade(&shared), interval));
        shared
            .watch
            .set(watch.abort_handle())
            .expect("is set only here");
        Ok(Self(shared))
    }

    /// Returns once replicas are known.
    pub async fn found(&self) {
        let mut known = self.0.known.subscribe();
        // The sender lives as long as these peers.
        let _open = known.wait_for(|known| *known).await;
    }

    /// Every replica, the one to ask first in front: healthy ones before others, among them the one with the fewest calls.
    pub(super) fn least_busy(&self) -> Result<Vec<Arc<Replica>>, Fault> {
        let mut replicas = self.all()?;
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed) % replicas.len();
        replicas.rotate_left(turn);
        replicas.sort_by_key(|replica| (!replica.is_healthy(), replica.calls()));
        Ok(replicas)
    }

    /// Every replica, in an order that depends on `key` alone while they stay healthy (rendezvous hashing): what one of them
    /// keeps for a key is used again, and when one goes only its keys move.
    pub(super) fn ranked(&self, key: &impl Hash) -> Result<Vec<Arc<Replica>>, Fault> {
        let mut replicas = self.all()?;
        replicas.sort_by_cached_key(|replica| {
            (
                !replica.is_healthy(),
                std::cmp::Reverse(weight(key, replica)),
            )
        });
        Ok(replicas)
    }

    fn all(&self) -> Result<Vec<Arc<Replica>>, Fault> {
        let replicas = self.0.replicas.read();
        let replicas = replicas.unwrap_or_else(PoisonError::into_inner).clone();
        if replicas.is_empty() {
            let message = "no replica of a role answers";
            let fault = Fault::new(FaultKind::Unavailable, "CONNECTION_FAILED", message)
                .because(self.0.names.to_string());
            return Err(fault.retry_after(Duration::from_secs(1)));
        }
        Ok(replicas)
    }
}

/// The same in every process: the hasher has fixed keys.
fn weight(key: &impl Hash, replica: &Replica) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    replica.address().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
