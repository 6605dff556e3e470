//! Connections as they come in, encrypted where the server has certificates.

use std::io;

use futures::{Stream, StreamExt};
use memfleet_tls::Acceptor;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Handshakes at a time; more connections wait until one is done or has run out of time.
const HANDSHAKES: usize = 1024;

/// The connections whose callers agreed on encryption. Handshakes go on side by side: one that is slow delays nobody.
pub(super) fn encrypted(
    connections: impl Stream<Item = io::Result<TcpStream>>,
    acceptor: Acceptor,
) -> impl Stream<Item = io::Result<TlsStream<TcpStream>>> {
    let agreed = connections.map(move |connection| {
        let acceptor = acceptor.clone();
        async move {
            match connection {
                Ok(connection) => acceptor.accept(connection).await.map(Ok),
                Err(error) => Some(Err(error)),
            }
        }
    });
    agreed
        .buffer_unordered(HANDSHAKES)
        .filter_map(std::future::ready)
}
