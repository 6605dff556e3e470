//! Traces to a collector: spans of this process, and of the traces that its callers began.

use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::{Error, Options};

/// Longest time that an export may take: spans are dropped rather than kept for a collector that is down.
const EXPORT: Duration = Duration::from_secs(5);

/// Longest time that the last spans get at the end of the process.
const FLUSH: Duration = Duration::from_secs(2);

/// The spans that are on their way, if any are sent.
#[derive(Debug, Default)]
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    pub(super) fn start(options: &Options, service: &str) -> Result<Self, Error> {
        let Some(url) = &options.otlp_url else {
            return Ok(Self::default());
        };
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(url)
            .with_timeout(EXPORT)
            .build()
            .map_err(|error| Error::Exporter(url.clone(), error.to_string()))?;
        let sampler =
            Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(options.trace_ratio)));
        let resource = Resource::builder().with_service_name(service.to_owned());
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(sampler)
            .with_resource(resource.build())
            .build();
        Ok(Self(Some(provider)))
    }

    pub(super) fn layer<S>(&self) -> Option<Box<dyn Layer<S> + Send + Sync>>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let provider = self.0.as_ref()?;
        let tracer = provider.tracer("memfleet");
        Some(tracing_opentelemetry::layer().with_tracer(tracer).boxed())
    }

    /// Sends what is left.
    pub async fn flush(self) {
        let Some(provider) = self.0 else { return };
        // It blocks.
        let flushed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH));
        if let Ok(Err(error)) = flushed.await {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}
