//! The traits over a real socket: every call arrives as it was made and comes back as it was answered.
#![allow(clippy::unwrap_used, reason = "tests")]

mod calls;
mod circumstances;
mod node;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::ids::TenantId;
use memfleet_ports::context::Context;
use memfleet_rpc::Client;
use memfleet_rpc::auth::Keys;
use memfleet_rpc::server::{Bounds, Services, routes};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

use node::Node;

/// A served node and where it listens. The server ends with the test's runtime.
async fn serve(keys: Keys, bounds: Bounds) -> (Arc<Node>, String) {
    let node = Arc::new(Node::default());
    let services = Services {
        memory: node.clone(),
        assembly: node.clone(),
        maintenance: node.clone(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (_, health) = tonic_health::server::health_reporter();
    let routes = routes(services, keys, bounds).add_service(health);
    let server = tonic::transport::Server::builder().add_routes(routes);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    (node, url)
}

async fn connected() -> (Arc<Node>, Client) {
    let (node, url) = serve(Keys::default(), Bounds::default()).await;
    (node, Client::connect(&url, None).await.unwrap())
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn context() -> Context {
    Context::new(tenant("default"), Duration::from_secs(10))
}
