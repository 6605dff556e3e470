//! The task that keeps the list of replicas: resolves their name, and asks each how it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use futures::future::join_all;

use super::{Names, Replica, Shared};

/// Addresses of replicas, each with the name that it was found by.
type Found = BTreeMap<SocketAddr, String>;

/// Runs until the peers are dropped.
pub(super) async fn run(peers: Weak<Shared>, interval: Duration) {
    let mut known = true;
    while let Some(names) = peers.upgrade().map(|shared| shared.names.clone()) {
        let found = resolve(&names).await;
        report(&names, &found, &mut known);
        let Some(shared) = peers.upgrade() else {
            return;
        };
        let replicas = shared.update(found.unwrap_or_default());
        // Not held while it waits: the last handle elsewhere ends the watch.
        drop(shared);
        join_all(replicas.iter().map(|replica| replica.probe(interval))).await;
        tokio::time::sleep(interval).await;
    }
}

/// Every address with the name that led there.
async fn resolve(names: &Names) -> std::io::Result<Found> {
    let mut found = Found::new();
    for (host, port) in &names.hosts {
        let addresses = tokio::net::lookup_host((host.as_str(), *port)).await?;
        found.extend(addresses.map(|address| (address, host.clone())));
    }
    Ok(found)
}

/// Once a change, not once a look.
fn report(names: &Names, found: &std::io::Result<Found>, known: &mut bool) {
    match found {
        Err(error) if *known => tracing::warn!(%names, %error, "the name of a role is not known"),
        Ok(_) if !*known => tracing::info!(%names, "the name of a role is known again"),
        _ => {}
    }
    *known = found.is_ok();
}

impl Shared {
    /// Keeps the replicas that are still there, with their connections. A name that cannot be resolved just now says nothing
    /// about them.
    fn update(&self, found: Found) -> Vec<Arc<Replica>> {
        let mut replicas = self
            .replicas
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !found.is_empty() {
            replicas.retain(|replica| found.contains_key(&replica.address()));
            for (address, host) in found {
                if replicas.iter().all(|known| known.address() != address) {
                    tracing::info!(names = %self.names, %address, "a replica was found");
                    let encryption = self.tls.clone().map(|tls| (tls, host));
                    replicas.push(Arc::new(Replica::new(address, encryption)));
                }
            }
        }
        self.known.send_replace(!replicas.is_empty());
        replicas.clone()
    }
}
