//! How a server is reached: in the clear, or encrypted on terms that may change from one connection to the next.

use std::io;
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use memfleet_tls::Tls;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint, Error};
use tower::{Service, service_fn};

/// Where a server is and how to speak to it.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    /// `host:port`.
    pub address: String,
    /// The terms of encryption, and the name that the server must show.
    pub encryption: Option<(Tls, String)>,
    /// Longest wait for a connection.
    pub patience: Duration,
    /// Silence after which a connection with calls on it is probed, and how long the answer may take.
    pub keep_alive: Duration,
}

impl Way {
    /// A connection that the first call opens; again when it breaks.
    pub(crate) fn connect_lazily(self) -> Result<Channel, Error> {
        let endpoint = self.endpoint()?;
        Ok(match self.encryption {
            None => endpoint.connect_lazy(),
            Some((tls, name)) => {
                endpoint.connect_with_connector_lazy(encrypted(self.address, tls, name))
            }
        })
    }

    /// The same, opened now.
    pub(crate) async fn connect(self) -> Result<Channel, Error> {
        let endpoint = self.endpoint()?;
        match self.encryption {
            None => endpoint.connect().await,
            Some((tls, name)) => {
                let connector = encrypted(self.address, tls, name);
                endpoint.connect_with_connector(connector).await
            }
        }
    }

    /// The connector encrypts, so the address is one in the clear; what calls say of their scheme is the origin.
    fn endpoint(&self) -> Result<Endpoint, Error> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?
            .connect_timeout(self.patience)
            .http2_keep_alive_interval(self.keep_alive)
            .keep_alive_timeout(self.keep_alive)
            .tcp_nodelay(true);
        if self.encryption.is_none() {
            return Ok(endpoint);
        }
        let mut origin = endpoint.uri().clone().into_parts();
        origin.scheme = Some(http::uri::Scheme::HTTPS);
        let origin = Uri::from_parts(origin).expect("another scheme leaves it a URL");
        Ok(endpoint.origin(origin))
    }
}

fn encrypted(
    address: String,
    tls: Tls,
    name: String,
) -> impl Service<Uri, Response = TokioIo<impl Transport>, Error = io::Error, Future: Send> + Send {
    service_fn(move |_: Uri| {
        let (address, tls, name) = (address.clone(), tls.clone(), name.clone());
        async move {
            let connection = TcpStream::connect(address).await?;
            connection.set_nodelay(true)?;
            tls.connect(connection, &name).await.map(TokioIo::new)
        }
    })
}

/// What bytes go over.
trait Transport: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static {}

impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static> Transport for T {}
