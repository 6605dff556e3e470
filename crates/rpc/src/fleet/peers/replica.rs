//! One replica: its connection, how it is, and how many calls it is answering.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use memfleet_tls::Tls;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::transport::Way;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Silence after which a connection with calls on it is probed, and how long the answer may take.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A replica at an address. Its connection is opened by the first call, and again when it breaks.
#[derive(Debug)]
pub(in crate::fleet) struct Replica {
    address: SocketAddr,
    channel: Channel,
    healthy: AtomicBool,
    calls: AtomicUsize,
}

impl Replica {
    /// The replica at `address`, healthy until it shows otherwise; it must show the name in `encryption`.
    pub(super) fn new(address: SocketAddr, encryption: Option<(Tls, String)>) -> Self {
        let way = Way {
            address: address.to_string(),
            encryption,
            patience: CONNECT_TIMEOUT,
            keep_alive: KEEP_ALIVE,
        };
        Self {
            address,
            channel: way.connect_lazily().expect("an address makes a URL"),
            healthy: AtomicBool::new(true),
            calls: AtomicUsize::new(0),
        }
    }

    pub(in crate::fleet) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// The connection, counted as a call until it is dropped.
    pub(in crate::fleet) fn begin(self: &Arc<Self>) -> Counted {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    /// Notes that a call did not reach it: others are asked first until it says that it is well.
    pub(in crate::fleet) fn failed(&self) {
        if self.healthy.swap(false, Ordering::Relaxed) {
            tracing::warn!(address = %self.address, "a replica does not answer");
        }
    }

    /// Asks how it is, for `patience` at most.
    pub(super) async fn probe(&self, patience: Duration) {
        let mut health = HealthClient::new(self.channel.clone());
        let asked = health.check(HealthCheckRequest::default());
        let answer = tokio::time::timeout(patience, asked).await;
        let is_serving =
            matches!(answer, Ok(Ok(answer)) if answer.get_ref().status() == ServingStatus::Serving);
        if !is_serving {
            self.failed();
        } else if !self.healthy.swap(true, Ordering::Relaxed) {
            tracing::info!(address = %self.address, "a replica answers again");
        }
    }
}

/// A call to a replica that is under way.
pub(in crate::fleet) struct Counted(Arc<Replica>);

impl Counted {
    pub(in crate::fleet) fn channel(&self) -> Channel {
        self.0.channel.clone()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
