//! `memfleet up`: a node in this process.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use memfleet_models::{ModelDirectory, default_root};
use memfleet_rpc::proto::DESCRIPTORS;
use memfleet_rpc::server::{Bounds, Due, Services, routes};
use memfleet_runtime::lifecycle::{Lifecycle, Policy};
use memfleet_runtime::server::{Deadline, Server};
use memfleet_runtime::{BoxError, run as run_process};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::exit::Error;
use super::model::fetch;
use crate::config::{Model, NodeConfig};
use crate::node::Node;
use crate::output::Output;

/// Run a node: every role in this process, memory in one SQLite file
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Database file
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Only check the configuration
    #[arg(long)]
    pub check_config: bool,
}

/// The flags in the shape of the configuration.
impl Serialize for UpArgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let url = self
            .store
            .as_ref()
            .map(|path| format!("sqlite:{}", path.display()));
        json!({ "server": { "address": self.listen }, "store": { "url": url } })
            .serialize(serializer)
    }
}

/// Runs until a signal.
pub fn run(args: &UpArgs, config: &NodeConfig, output: &mut Output) -> Result<ExitCode, Error> {
    if args.check_config {
        return Ok(ExitCode::SUCCESS);
    }
    let model = model(&config.model)?;
    let start = async |process: &mut Lifecycle| start(config, &model, process, output).await;
    Ok(run_process(&config.telemetry, &config.lifecycle, start)?)
}

/// The configured model, fetched when it is missing.
pub fn model(config: &Model) -> Result<ModelDirectory, Error> {
    let root = config
        .directory
        .clone()
        .map_or_else(default_root, Ok)
        .map_err(BoxError::from)?;
    fetch(&config.name, root, None)
}

async fn start(
    config: &NodeConfig,
    model: &ModelDirectory,
    process: &mut Lifecycle,
    output: &mut Output,
) -> Result<(), BoxError> {
    // The address first: a second node on the same port must not touch the store.
    let server = Server::bind(&config.server).await?;
    let node = Node::open(config, model).await?;
    node.spawn(process);
    let services = Services {
        memory: node.gateway.clone(),
        assembly: node.gateway.clone(),
        maintenance: node.gateway.clone(),
    };
    let options = &config.server;
    let bounds = Bounds {
        max_request_bytes: options.max_request_size.as_usize(),
        max_response_bytes: options.max_response_size.as_usize(),
        default_deadline: options.default_deadline.get(),
    };
    // The shell has read how long the caller waits.
    let due: Due = |extensions| extensions.get::<Deadline>().map(|deadline| deadline.0);
    let routes = routes(services, config.auth.keys(), bounds, due);
    if let Err(error) = announce(server.address(), output) {
        tracing::warn!(%error, "nobody reads the address on standard output");
    }
    process.spawn("gateway", Policy::Essential, move |stop| async move {
        server.serve(routes, &[DESCRIPTORS], stop).await
    });
    Ok(())
}

/// Standard output is for whoever started the node; logs go to standard error.
fn announce(address: SocketAddr, output: &mut Output) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    output.answer(
        || json!({ "version": version, "address": address }),
        |_| format!("memfleet {version} is listening on {address}"),
    )?;
    output.flush()
}
