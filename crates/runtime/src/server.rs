//! The gRPC server shell that every role serves through: address, limits, deadlines, request ids, metrics, health,
//! reflection and a drain that ends.

mod answer;
mod call;
pub(crate) mod entrance;
mod incoming;
mod layer;
mod methods;
mod options;
pub(crate) mod places;
mod refusals;
mod stream;

use std::io;
use std::net::SocketAddr;

use memfleet_tls::Acceptor;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

pub use call::{Deadline, RequestId};
pub use entrance::Entrance;
pub use options::Options;

use layer::Shell;
use methods::Methods;

/// The server cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process listens there.
    #[error("{0} is in use by another process; stop it, or set server.address to another port")]
    AddressInUse(SocketAddr),
    /// The address cannot be bound for another reason.
    #[error("cannot listen on {0}: {1}; check server.address")]
    Bind(SocketAddr, #[source] io::Error),
    /// A descriptor set handed in is not one.
    #[error("the service descriptors cannot be read")]
    Descriptors(#[from] prost::DecodeError),
    /// Reflection refused the descriptors.
    #[error("reflection cannot be served")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The transport broke.
    #[error("the server stopped")]
    Transport(#[from] tonic::transport::Error),
}

/// A server that holds its address and does not answer yet.
#[derive(Debug)]
pub struct Server {
    options: Options,
    listener: TcpListener,
    address: SocketAddr,
    health: HealthReporter,
    acceptor: Option<Acceptor>,
}

impl Server {
    /// Takes `options.address`.
    pub async fn bind(options: &Options) -> Result<Self, Error> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => Error::AddressInUse(options.address),
            _ => Error::Bind(options.address, error),
        };
        let listener = TcpListener::bind(options.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            options: options.clone(),
            listener,
            address,
            health: HealthReporter::new(),
            acceptor: None,
        })
    }

    /// The same server for encrypted connections only; for any without an acceptor.
    #[must_use]
    pub fn encrypted(self, acceptor: Option<Acceptor>) -> Self {
        Self { acceptor, ..self }
    }

    /// The bound address, with the port that was taken where port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Health by service name, for parts that come and go. Every served service is `SERVING` from the start and
    /// `NOT_SERVING` from the stop order on.
    pub fn health(&self) -> HealthReporter {
        self.health.clone()
    }

    /// Answers calls to `routes` until `stop`, then finishes the calls in progress. `descriptors` are the encoded file
    /// descriptor sets of the services: reflection shows them, and they tell streams from single calls.
    pub async fn serve(
        self,
        routes: Routes,
        descriptors: &[&[u8]],
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let methods = Methods::from_descriptors(descriptors)?;
        let services: Vec<String> = methods.services().map(str::to_owned).collect();
        let health = self.health.clone();
        report(&health, &services, ServingStatus::Serving).await;
        let shell = Shell::new(&self.options, methods, stop.clone());
        let routes = self.with_standard_services(routes, descriptors)?;
        let stopped = async move {
            stop.cancelled().await;
            report(&health, &services, ServingStatus::NotServing).await;
        };
        tracing::info!(address = %self.address, encrypted = self.acceptor.is_some(), "serving");
        let router = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(self.options.keep_alive_interval.get()))
            .http2_keepalive_timeout(Some(self.options.keep_alive_timeout.get()))
            .layer(shell)
            .add_routes(routes);
        match self.acceptor {
            Some(acceptor) => {
                let connections = incoming::encrypted(self.listener, &self.options, acceptor);
                router
                    .serve_with_incoming_shutdown(connections, stopped)
                    .await?;
            }
            None => {
                let connections = incoming::plain(self.listener, &self.options);
                router
                    .serve_with_incoming_shutdown(connections, stopped)
                    .await?;
            }
        }
        Ok(())
    }

    fn with_standard_services(
        &self,
        routes: Routes,
        descriptors: &[&[u8]],
    ) -> Result<Routes, Error> {
        let reflection = || {
            descriptors
                .iter()
                .fold(
                    tonic_reflection::server::Builder::configure(),
                    |builder, set| builder.register_encoded_file_descriptor_set(set),
                )
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let health = tonic_health::server::HealthService::from_health_reporter(self.health.clone());
        Ok(routes
            .add_service(tonic_health::pb::health_server::HealthServer::new(health))
            .add_service(reflection().build_v1()?)
            .add_service(reflection().build_v1alpha()?))
    }
}

async fn report(health: &HealthReporter, services: &[String], status: ServingStatus) {
    for service in services.iter().map(String::as_str).chain([""]) {
        health.set_service_status(service, status).await;
    }
}

#[cfg(test)]
mod tests;
