//! `memfleet up` and `memfleet run`: every role in this process, or one of a fleet.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use memfleet_retrieval::ModelCalibrations;
use memfleet_runtime::lifecycle::Lifecycle;
use memfleet_runtime::server::Server;
use memfleet_runtime::telemetry::MetricsAddress;
use memfleet_runtime::{BoxError, run as run_process};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::exit::Error;
use super::model::{fetch_configured, unusable_model};
use crate::config::Config;
use crate::models::ConfiguredModels;
use crate::output::Output;
use crate::process::{Process, needs_model};
use crate::role::Role;

/// Run a node: every role in one process, by default on one SQLite file
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Database file
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
}

/// Run one role of a fleet: memory in PostgreSQL, work over NATS JetStream
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Which one
    role: Role,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Address of metrics and health checks, or `off`
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<MetricsAddress>,
    /// Only check the configuration
    #[arg(long)]
    check_config: bool,
}

impl ServeArgs {
    fn told(&self) -> Value {
        json!({
            "server": { "address": self.listen },
            "telemetry": { "metrics_address": self.metrics },
        })
    }
}

/// The flags in the shape of the configuration.
impl Serialize for UpArgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let path = self.store.as_ref();
        let url = path.map(|path| format!("sqlite:{}", path.display()));
        let mut told = self.serve.told();
        told["store"] = json!({ "url": url });
        told.serialize(serializer)
    }
}

impl Serialize for RunArgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serve.told().serialize(serializer)
    }
}

/// Runs a node until a signal.
pub fn up(args: &UpArgs, config: &Config, output: &mut Output) -> Result<ExitCode, Error> {
    serve(&args.serve, config, &Role::ALL, output)
}

/// Runs a role until a signal.
pub fn run(args: &RunArgs, config: &Config, output: &mut Output) -> Result<ExitCode, Error> {
    if !config.store.is_shared() && args.role != Role::Embedder {
        return Err(Error::Usage(
            "store.url: the roles of a fleet share one database, set `postgres://user@host/database`; for all roles in one process there is `memfleet up`".into(),
        ));
    }
    serve(&args.serve, config, &[args.role], output)
}

fn serve(
    args: &ServeArgs,
    config: &Config,
    roles: &[Role],
    output: &mut Output,
) -> Result<ExitCode, Error> {
    if let Some(problem) = config.exposed(roles) {
        return Err(Error::Usage(format!(
            "{}: {}",
            problem.key, problem.message
        )));
    }
    if args.check_config {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(problem) = unusable_model(&config.model.name) {
        return Err(Error::Usage(format!("model.name: {problem}")));
    }
    let models = needs_model(config, roles).then(|| fetch_configured(config));
    let models = models.transpose()?;
    let start = async |process: &mut Lifecycle| {
        start(config, roles, models.as_ref(), process, output).await
    };
    let service = match roles {
        [role] => format!("memfleet-{role}"),
        _ => "memfleet".to_owned(),
    };
    Ok(run_process(
        &service,
        &config.telemetry,
        &config.lifecycle,
        start,
    )?)
}

async fn start(
    config: &Config,
    roles: &[Role],
    models: Option<&ConfiguredModels>,
    process: &mut Lifecycle,
    output: &mut Output,
) -> Result<(), BoxError> {
    // The address first: a second node on the same port must not touch the store.
    let server = Server::bind(&config.server).await?;
    let composed = Process::compose(
        config,
        roles,
        models,
        ModelCalibrations::shipped(),
        &process.readiness(),
    )
    .await?;
    composed.spawn(process);
    if let Err(error) = announce(server.address(), output) {
        tracing::warn!(%error, "nobody reads the address on standard output");
    }
    composed.serve(config, server, process);
    Ok(())
}

/// Standard output is for whoever started the process; logs go to standard error.
fn announce(address: SocketAddr, output: &mut Output) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    output.answer(
        || json!({ "version": version, "address": address }),
        |_| format!("memfleet {version} is listening on {address}"),
    )?;
    output.flush()
}
