//! What a caller sends along leads through the whole fleet: its trace, seen by a collector of traces, and its request ids, seen in
//! the logs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use memfleet_domain::ids::BatchId;
use memfleet_e2e::{Fleet, Tenant};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::RememberRequest;
use memfleet_rpc::proto::memory_client::MemoryClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::Value;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::conversation::{recall, said, space};

const REMEMBERED: &str = "a-request-to-remember";
const RECALLED: &str = "a-request-to-recall";

const TRACE: [u8; 16] = *b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c";
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The spans of the caller's trace.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

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
        self.0.lock().unwrap().extend(own);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Where it listens.
    fn start(&self) -> Result<String> {
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
        let url = format!("http://{}", incoming.local_addr()?);
        let service = TraceServiceServer::new(self.clone());
        let server = Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(incoming));
        Ok(url)
    }

    /// The names of every span with those that it is part of, from the outermost on.
    fn paths(&self) -> Vec<Vec<String>> {
        let spans = self.0.lock().unwrap().clone();
        let path = |span: &Span| {
            let parent = |span: &&Span| {
                let is_parent = |other: &&Span| other.span_id == span.parent_span_id;
                spans.iter().find(is_parent)
            };
            let inwards = std::iter::successors(Some(span), parent);
            let mut names: Vec<_> = inwards.map(|span| span.name.clone()).collect();
            names.reverse();
            names
        };
        spans.iter().map(path).collect()
    }
}

/// Whether a path leads through these names to the last of them.
fn leads(path: &[String], through: &[&str]) -> bool {
    let mut names = path.iter();
    path.last().map(String::as_str) == through.last().copied()
        && through.iter().all(|name| names.any(|seen| seen == name))
}

/// Remembers a turn and recalls it, as a caller with a trace and a name for each call.
async fn call_twice(fleet: &Fleet) -> Result<()> {
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let mut client = MemoryClient::connect(fleet.url()).await?;
    let remembered = RememberRequest {
        space: space("noor"),
        turns: vec![said("s", "Noor", 8, "Seen from outside.")],
        idempotency_key: None,
    };
    let request = along(tenant.request(remembered.into()), REMEMBERED)?;
    let token = client.remember(request).await?.into_inner();
    let token: BatchId = token.token.parse()?;
    let asked = recall("noor", "outside", TurnFilter::default(), &[token]);
    let request = along(tenant.request(asked.try_into()?), RECALLED)?;
    client.recall(request).await?;
    Ok(())
}

fn along<M>(mut request: Request<M>, id: &str) -> Result<Request<M>> {
    let metadata = request.metadata_mut();
    metadata.insert("traceparent", TRACEPARENT.parse()?);
    metadata.insert("x-request-id", id.parse()?);
    Ok(request)
}

/// Whether a role of this kind has logged a line of the request, in the caller's trace.
fn has_logged(fleet: &Fleet, kind: &str, id: &str) -> bool {
    let roles = fleet.roles.iter();
    let mut roles = roles.filter(|role| role.name.starts_with(kind));
    roles.any(|role| {
        let log = role.program.log();
        let mut lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.any(|line| {
            let mut spans = line["spans"].as_array().into_iter().flatten();
            line["trace_id"] == TRACEPARENT[3..35] && spans.any(|span| span["request_id"] == id)
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_and_one_request_id_go_from_the_caller_through_the_queue_to_the_store()
-> Result<()> {
    let collector = Collector::default();
    let logged = "info,memfleet_constructor=debug,memfleet_runtime=debug";
    let settings = [
        ("MEMFLEET_TELEMETRY__OTLP_URL", collector.start()?),
        ("MEMFLEET_TELEMETRY__LEVEL", logged.to_owned()),
        ("MEMFLEET_TELEMETRY__FORMAT", "json".to_owned()),
    ];
    let starting = tokio::task::spawn_blocking(move || Fleet::start_with_settings(&settings));
    let fleet = starting.await??;
    call_twice(&fleet).await?;

    let begun = Instant::now();
    loop {
        let paths = collector.paths();
        let spans: [&[&str]; 3] = [
            &["call", "remember", "construct"],
            &["call", "remember", "construct", "ingest", "commit"],
            &["call", "recall", "call", "head"],
        ];
        let lines = [
            ("gateway", REMEMBERED),
            ("constructor", REMEMBERED),
            ("gateway", RECALLED),
            ("retriever", RECALLED),
            ("embedder", RECALLED),
        ];
        let are_seen = spans.map(|names| paths.iter().any(|path| leads(path, names)));
        let are_logged = lines.map(|(kind, id)| has_logged(&fleet, kind, id));
        if are_seen == [true; 3] && are_logged == [true; 5] {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < Duration::from_mins(1),
            "{are_seen:?} of {spans:?}, {are_logged:?} of {lines:?}; the trace has {paths:#?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
