//! Who calls, until when, and how much.

use std::time::Duration;

use futures::{StreamExt, stream};
use memfleet_domain::FaultKind;
use memfleet_domain::assembly::ProviderFormat;
use memfleet_ports::assembly::{AssembleRequest, Assembly, Prompt};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, Record, RememberRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::testing::{Callers, caller};
use memfleet_rpc::Client;
use memfleet_rpc::server::Bounds;
use memfleet_runtime::config::HumanDuration;
use memfleet_runtime::server::Options;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::calls::{recall, remember};
use crate::node::{self, space};
use crate::{connected, context, serve, serve_with, tenant};

fn keys() -> Callers {
    Callers::new([("secret", caller("acme"))])
}

#[tokio::test]
async fn the_key_decides_the_tenant_whatever_the_caller_says() {
    let (node, url) = serve(keys(), Bounds::default()).await;
    let client = Client::connect(&url, Some("secret")).await.unwrap();
    client.status(&context()).await.unwrap();
    assert_eq!(node.last().0, "acme");
}

#[tokio::test]
async fn without_a_known_key_no_call_reaches_the_node() {
    let (node, url) = serve(keys(), Bounds::default()).await;
    for (key, reason) in [
        (None, "CREDENTIAL_MISSING"),
        (Some("guess"), "CREDENTIAL_UNKNOWN"),
    ] {
        let client = Client::connect(&url, key).await.unwrap();
        let fault = client.recall(&context(), recall("ada")).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.reason.as_ref()),
            (FaultKind::Unauthenticated, reason)
        );
        assert_eq!(client.status(&context()).await.unwrap_err().reason, reason);
        let counted = client
            .count_tokens(&context(), "o200k_base", &["a".into()])
            .await;
        assert_eq!(counted.unwrap_err().reason, reason);
    }
    assert!(node.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn health_stays_open() {
    let (_, url) = serve(keys(), Bounds::default()).await;
    let channel = Endpoint::from_shared(url).unwrap().connect_lazy();
    let mut health = HealthClient::new(channel);
    assert!(health.check(HealthCheckRequest::default()).await.is_ok());
}

#[tokio::test]
async fn the_deadline_travels_and_the_server_says_what_it_waited_for() {
    let (node, client) = connected().await;
    let brief = Context::new(tenant("default"), Duration::from_millis(400));
    let fault = client.recall(&brief, recall("slow")).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::DeadlineExceeded, "DEADLINE_EXCEEDED")
    );
    assert!(fault.message.contains("the search"), "{fault}");
    assert!(node.budget.lock().unwrap().unwrap() < Duration::from_millis(400));
    node.dropped.notified().await;
}

#[tokio::test]
async fn the_server_bounds_the_deadline() {
    let brief = HumanDuration::milliseconds(100);
    let options = Options {
        default_deadline: brief,
        max_deadline: brief,
        ..Options::default()
    };
    let (node, url) = serve_with(Callers::default().into(), Bounds::default(), options, None).await;
    let client = Client::connect(&url, None).await.unwrap();
    let fault = client
        .remember(&context(), remember("slow"))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::DeadlineExceeded);
    assert!(node.budget.lock().unwrap().unwrap() <= Duration::from_millis(100));
}

/// A client of a node with these bounds.
async fn bounded(bounds: Bounds) -> Client {
    let (_, url) = serve(Callers::default(), bounds).await;
    Client::connect(&url, None).await.unwrap()
}

/// A client of a node that takes 1 KiB a message, and a request that is larger.
async fn over_the_bound() -> (Client, RememberRequest) {
    let bounds = Bounds {
        max_request_bytes: 1024,
        ..Bounds::default()
    };
    let client = bounded(bounds).await;
    let mut request = remember("ada");
    request.turns[0].content.text = "x".repeat(2_000);
    (client, request)
}

#[tokio::test]
async fn a_message_over_the_bound_is_refused() {
    let (client, request) = over_the_bound().await;
    let fault = client.remember(&context(), request).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::InvalidArgument, "REQUEST_TOO_LARGE")
    );
    assert_eq!(fault.metadata["limit_bytes"], "1024");
    assert!(fault.message.contains("server.max_request_size"), "{fault}");
}

#[tokio::test]
async fn bytes_that_are_no_message_of_the_method_are_the_callers_mistake() {
    let client = bounded(Bounds::default()).await;
    let mut grpc = tonic::client::Grpc::new(client.channel());
    grpc.ready().await.unwrap();
    // Field 1 is the name of a space, and so has to be text.
    let request = tonic::Request::new(vec![0xff_u8; 8]);
    let codec = tonic_prost::ProstCodec::<Vec<u8>, ()>::default();
    let path = http::uri::PathAndQuery::from_static("/memfleet.v1.Memory/Remember");
    let status = grpc.unary(request, path, codec).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, "REQUEST_MALFORMED");
    assert!(
        status.message().contains("no message of this method"),
        "{status}"
    );
}

/// A chat with a picture of so many bytes.
fn with_picture(bytes: usize) -> AssembleRequest {
    let picture = "A".repeat(bytes);
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"who is this?"}},{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{picture}"}}}}]}}]}}"#
    );
    AssembleRequest {
        prompt: Prompt::Provider {
            format: ProviderFormat::OpenaiChat,
            body: body.into_bytes(),
        },
        ..AssembleRequest::new(recall("ada").query)
    }
}

#[tokio::test]
async fn amp_118_a_prompt_of_20_mb_passes_and_one_over_the_bound_is_refused_in_time() {
    let client = bounded(Bounds::default()).await;
    let passes = client.assemble(&context(), with_picture(20 << 20)).await;
    assert!(passes.is_ok(), "{passes:?}");
    let begun = std::time::Instant::now();
    let refused = client.assemble(&context(), with_picture(40 << 20)).await;
    let fault = refused.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::ResourceExhausted, "REQUEST_TOO_LARGE")
    );
    assert!(fault.message.contains("server.max_prompt_size"), "{fault}");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_message_of_a_stream_over_the_bound_is_refused_in_the_same_words() {
    let (client, request) = over_the_bound().await;
    let requests = stream::iter([remember("ada"), request]);
    let receipts = client.remember_stream(&context(), requests).await.unwrap();
    let receipts: Vec<_> = receipts.collect().await;
    assert!(receipts[0].is_ok());
    let fault = receipts[1].as_ref().unwrap_err();
    assert_eq!(fault.reason, "REQUEST_TOO_LARGE");

    let turn = node::turn(&"x".repeat(2_000));
    let records = stream::iter([Ok(Record::Turn(Box::new(turn)))]);
    let imported = client
        .import(&context(), &space("ada"), Box::pin(records))
        .await;
    assert_eq!(imported.unwrap_err().reason, "REQUEST_TOO_LARGE");
}

#[tokio::test]
async fn a_forget_over_the_bound_is_answered_with_what_fits() {
    let bounds = Bounds {
        max_response_bytes: 32,
        ..Bounds::default()
    };
    let client = bounded(bounds).await;
    let request = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
    };
    let receipt = client.forget(&context(), request).await.unwrap();
    assert!(receipt.is_cut());
    assert_eq!((receipt.erased.turns, receipt.turns), (vec![], 1));
}

#[tokio::test]
async fn an_answer_over_the_bound_names_the_field_to_change() {
    let bounds = Bounds {
        max_response_bytes: 64,
        ..Bounds::default()
    };
    let client = bounded(bounds).await;
    let fault = client.recall(&context(), recall("ada")).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::InvalidArgument, "ANSWER_TOO_LARGE")
    );
    assert_eq!(fault.fields[0].field, "k");
    assert_eq!(fault.metadata["limit_bytes"], "64");
    let got = client
        .get(&context(), &space("ada"), &[node::turn_id()], &[])
        .await;
    assert_eq!(got.unwrap_err().fields[0].field, "turn_ids");
    let records = client
        .export(&context(), &space("ada"), &TurnFilter::default())
        .await
        .unwrap();
    let records: Vec<_> = records.collect().await;
    let fault = records.last().unwrap().as_ref().unwrap_err();
    assert_eq!(fault.reason, "ANSWER_TOO_LARGE");
}

#[tokio::test]
async fn a_node_that_is_not_there_is_unavailable() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let fault = Client::connect(&format!("http://{free}"), None)
        .await
        .unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::Unavailable, "CONNECTION_FAILED")
    );
    for malformed in ["", "localhost", "ftp://localhost"] {
        let fault = Client::connect(malformed, None).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::InvalidArgument, "{malformed}");
    }
}
