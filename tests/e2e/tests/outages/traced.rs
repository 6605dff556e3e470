//! A caller's trace goes through gateway and queue to the constructor: seen by a collector of traces.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use memfleet_e2e::{Fleet, Tenant};
use memfleet_rpc::proto::memory_client::MemoryClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::conversation::{said, space};

const TRACE: [u8; 16] = *b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c";
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Names of the spans of the caller's trace.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<String>>>);

#[async_trait::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let spans = resources.flat_map(|resource| resource.scope_spans);
        let spans = spans.flat_map(|scope| scope.spans);
        let own = spans.filter(|span| span.trace_id == TRACE);
        self.0.lock().unwrap().extend(own.map(|span| span.name));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_goes_from_the_caller_through_the_queue_to_the_store() -> Result<()> {
    let collector = Collector::default();
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let url = format!("http://{}", incoming.local_addr()?);
    let service = TraceServiceServer::new(collector.clone());
    tokio::spawn(
        Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming),
    );

    let settings = [("MEMFLEET_TELEMETRY__OTLP_URL", url)];
    let starting = tokio::task::spawn_blocking(move || Fleet::start_with_settings(&settings));
    let fleet = starting.await??;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let mut client = MemoryClient::connect(fleet.url()).await?;
    let remembered = memfleet_ports::memory::RememberRequest {
        space: space("noor"),
        turns: vec![said("s", "Noor", 8, "Seen from outside.")],
        idempotency_key: None,
    };
    let mut request = tenant.request(remembered.into());
    request
        .metadata_mut()
        .insert("traceparent", TRACEPARENT.parse()?);
    client.remember(request).await?;

    let begun = Instant::now();
    loop {
        let seen = collector.0.lock().unwrap().clone();
        let is_seen = |name: &str| seen.iter().any(|seen| seen == name);
        if ["call", "remember", "ingest", "construct"]
            .into_iter()
            .all(is_seen)
        {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_mins(1) {
            bail!("the trace has only {seen:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
