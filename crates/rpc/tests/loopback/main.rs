//! The traits over a real socket: every call arrives as it was made and comes back as it was answered.
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod admin;
mod calls;
mod circumstances;
mod encryption;
mod fleet;
mod knowledge;
mod node;
mod records;
mod streams;
mod tools;
mod turn_reader;

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::ids::TenantId;
use memfleet_ports::access::Authority;
use memfleet_ports::context::Context;
use memfleet_ports::testing::Callers;
use memfleet_rpc::Client;
use memfleet_rpc::proto::DESCRIPTORS;
use memfleet_rpc::server::{Bounds, Host, Services, routes};
use memfleet_runtime::server::{Deadline, Entrance, Options, Server};
use memfleet_tls::Acceptor;
use tokio_util::sync::CancellationToken;

use node::Node;

/// A served node and where it listens. The server ends with the test's runtime.
async fn serve(callers: Callers, bounds: Bounds) -> (Arc<Node>, String) {
    serve_with(callers.into(), bounds, Options::default(), None).await
}

/// The same in a shell with other limits, or encrypted.
async fn serve_with(
    callers: Arc<Callers>,
    bounds: Bounds,
    options: Options,
    acceptor: Option<Acceptor>,
) -> (Arc<Node>, String) {
    let node = Arc::new(Node::default());
    let services = Services::by(&node);
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind(&Options { address, ..options }).await.unwrap();
    let url = format!("http://{}", server.address());
    let host = Host {
        due: Deadline::of,
        enter: Entrance::of,
    };
    let callers: Arc<dyn Authority> = callers;
    let routes = routes(services, &callers, bounds, host);
    let server = server.encrypted(acceptor);
    tokio::spawn(server.serve(routes, &[DESCRIPTORS], CancellationToken::new()));
    (node, url)
}

async fn connected() -> (Arc<Node>, Client) {
    let (node, url) = serve(Callers::default(), Bounds::default()).await;
    (node, Client::connect(&url, None).await.unwrap())
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn context() -> Context {
    Context::new(tenant("default"), Duration::from_secs(10))
}
