//! The server's side of a connection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::Tls;

/// Who may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// Whoever does; calls say for themselves who makes them.
    Anyone,
    /// Those with a certificate of the authority.
    Certified,
}

/// Encrypts what comes in.
#[derive(Debug, Clone)]
pub struct Acceptor {
    tls: Tls,
    callers: Callers,
}

impl Tls {
    /// Encrypts connections of these callers; absent without a certificate to show, or an authority to verify theirs by.
    pub fn acceptor(&self, callers: Callers) -> Option<Acceptor> {
        let acceptor = Acceptor {
            tls: self.clone(),
            callers,
        };
        acceptor.begin().map(|_| acceptor)
    }
}

impl Acceptor {
    fn begin(&self) -> Option<TlsAcceptor> {
        let terms = self.tls.terms();
        let terms = match self.callers {
            Callers::Anyone => terms.anyone,
            Callers::Certified => terms.certified,
        };
        terms.map(TlsAcceptor::from)
    }

    /// The connection once both sides agree; absent where they do not within `time`, which is counted and logged here.
    pub async fn accept(
        &self,
        connection: TcpStream,
        time: Duration,
    ) -> Option<TlsStream<TcpStream>> {
        let address = connection.peer_addr().ok();
        let acceptor = self.begin().expect("certificates only change for others");
        let agreed = timeout(time, acceptor.accept(connection)).await;
        let agreed = agreed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        agreed.map_err(|error| refused(address, &error)).ok()
    }
}

/// Who connects and says nothing is a probe of a port.
fn refused(address: Option<SocketAddr>, error: &io::Error) {
    let address = address.map(|address| address.to_string());
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return tracing::debug!(address, "a connection ended before it was encrypted");
    }
    metrics::counter!("memfleet_tls_handshake_failures_total").increment(1);
    tracing::info!(address, %error, "a connection could not be encrypted");
}
