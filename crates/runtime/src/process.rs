//! The one main that every role and `up` share.

use std::process::ExitCode;

use crate::BoxError;
use crate::lifecycle::{self, Lifecycle, Outcome, Policy, Signals, SystemSignals};
use crate::telemetry::{self, MetricsAddress, MetricsEndpoint, Readiness};

/// Runs a process from start to exit code: logs, traces, metrics, signals, `start`, wait, drain, flush. `service` names it in
/// traces, `start` builds the services and spawns their tasks. An error means that the process could not start; nothing was printed for it.
pub fn run<S>(
    service: &str,
    telemetry: &telemetry::Options,
    lifecycle: &lifecycle::Options,
    start: S,
) -> Result<ExitCode, BoxError>
where
    S: AsyncFnOnce(&mut Lifecycle) -> Result<(), BoxError>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        let traces = telemetry::init(telemetry, service)?;
        let mut signals = SystemSignals::listen()?;
        let mut process = Lifecycle::new(lifecycle);
        let readiness = process.readiness();
        spawn_endpoint(telemetry.metrics_address, readiness.clone(), &mut process).await?;
        // It may wait for servers that are not there yet.
        let reason = tokio::select! {
            started = start(&mut process) => { started?; None }
            reason = signals.next() => Some(reason),
        };
        if let Some(reason) = reason {
            tracing::info!(%reason, "stopping before the start was done");
            return Ok(Outcome::Stopped);
        }
        readiness.started();
        let outcome = process.run(signals).await;
        traces.flush().await;
        Ok::<_, BoxError>(outcome)
    });
    // Blocking work that outlived the drain must not hold the process.
    runtime.shutdown_background();
    outcome.map(ExitCode::from)
}

async fn spawn_endpoint(
    address: MetricsAddress,
    readiness: Readiness,
    process: &mut Lifecycle,
) -> Result<(), BoxError> {
    let recorder = telemetry::install_recorder()?;
    if let MetricsAddress::At(address) = address {
        let endpoint = MetricsEndpoint::bind(address).await?;
        tracing::info!(address = %endpoint.address(), "metrics are served");
        process.spawn_support("metrics", Policy::BestEffort, |stop| {
            endpoint.serve(recorder, readiness, stop)
        });
    }
    Ok(())
}
