//! The server over a loopback socket.

use std::net::Ipv4Addr;

use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::*;
use crate::config::HumanDuration;

fn options() -> Options {
    Options {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        stream_drain: HumanDuration::milliseconds(10),
        ..Options::default()
    }
}

#[tokio::test]
async fn a_taken_address_says_which_and_what_to_change() {
    let first = Server::bind(&options()).await.unwrap();
    let error = Server::bind(&Options {
        address: first.address(),
        ..options()
    })
    .await
    .unwrap_err();
    assert!(matches!(error, Error::AddressInUse(_)));
    let message = error.to_string();
    assert!(
        message.contains(&first.address().to_string()) && message.contains("server.address"),
        "{message}"
    );
}

#[tokio::test]
async fn health_is_served_and_open_streams_do_not_hold_up_the_stop() {
    let server = Server::bind(&options()).await.unwrap();
    let endpoint = format!("http://{}", server.address());
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let serving = tokio::spawn(async move { server.serve(Routes::default(), &[], stopping).await });

    let mut client = HealthClient::new(
        Endpoint::try_from(endpoint)
            .unwrap()
            .connect()
            .await
            .unwrap(),
    );
    let request = HealthCheckRequest {
        service: "grpc.health.v1.Health".to_owned(),
    };
    let mut statuses = client.watch(request.clone()).await.unwrap().into_inner();
    assert_eq!(
        statuses.message().await.unwrap().unwrap().status(),
        ServingStatus::Serving.into()
    );

    stop.cancel();
    assert_eq!(
        statuses.message().await.unwrap().unwrap().status(),
        ServingStatus::NotServing.into()
    );
    assert_eq!(
        statuses.message().await.unwrap_err().code(),
        Code::Unavailable
    );
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn descriptors_that_are_none_are_refused() {
    let server = Server::bind(&options()).await.unwrap();
    let error = server
        .serve(Routes::default(), &[b"\xff"], CancellationToken::new())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Descriptors(_)));
}
