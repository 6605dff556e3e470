//! The server over a loopback socket.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
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

/// A server with these options, until the guard goes.
async fn serving(options: Options) -> (SocketAddr, tokio_util::sync::DropGuard) {
    let server = Server::bind(&options).await.unwrap();
    let address = server.address();
    let stop = CancellationToken::new();
    tokio::spawn(server.serve(Routes::default(), &[], stop.clone()));
    (address, stop.drop_guard())
}

async fn client(address: SocketAddr) -> HealthClient<tonic::transport::Channel> {
    let endpoint = Endpoint::try_from(format!("http://{address}")).unwrap();
    HealthClient::new(endpoint.connect().await.unwrap())
}

async fn is_healthy(client: &mut HealthClient<tonic::transport::Channel>) -> bool {
    let request = HealthCheckRequest::default();
    client.check(request).await.is_ok()
}

/// How long the server leaves this connection open.
async fn open_for(mut connection: TcpStream) -> Duration {
    let begun = Instant::now();
    let read = async {
        let mut bytes = [0; 256];
        while connection
            .read(&mut bytes)
            .await
            .is_ok_and(|count| count > 0)
        {}
    };
    timeout(Duration::from_secs(20), read).await.unwrap();
    begun.elapsed()
}

#[tokio::test]
async fn connections_that_do_not_begin_to_speak_are_closed_and_others_stay() {
    let (address, _guard) = serving(Options {
        handshake_timeout: HumanDuration::milliseconds(500),
        ..options()
    })
    .await;
    let mut speaking = client(address).await;
    assert!(is_healthy(&mut speaking).await);
    let silent = TcpStream::connect(address).await.unwrap();
    let mut dripping = TcpStream::connect(address).await.unwrap();
    dripping.write_all(b"PRI * HTTP/2.0").await.unwrap();
    let (first, second) = tokio::join!(open_for(silent), open_for(dripping));
    for time in [first, second] {
        assert!(time >= Duration::from_millis(400), "{time:?}");
    }
    assert!(is_healthy(&mut speaking).await, "it has spoken");
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_more_are_closed_at_once() {
    let recorder = crate::telemetry::install_recorder().unwrap();
    let (address, _guard) = serving(Options {
        max_connections_per_address: 3,
        handshake_timeout: HumanDuration::seconds(60),
        ..options()
    })
    .await;
    let mut speaking = client(address).await;
    assert!(is_healthy(&mut speaking).await);
    let idle = [
        TcpStream::connect(address).await.unwrap(),
        TcpStream::connect(address).await.unwrap(),
    ];
    let refused = TcpStream::connect(address).await.unwrap();
    assert!(open_for(refused).await < Duration::from_secs(10));
    let counted = "memfleet_connections_refused_total{reason=\"address\"}";
    assert!(recorder.render().contains(counted));
    assert!(is_healthy(&mut speaking).await);
    drop(idle);
    let begun = Instant::now();
    loop {
        let endpoint = Endpoint::try_from(format!("http://{address}")).unwrap();
        if let Ok(channel) = endpoint.connect().await
            && is_healthy(&mut HealthClient::new(channel)).await
        {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "a place is free");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn watches_of_health_are_bounded_by_address() {
    let (address, _guard) = serving(Options {
        max_unauthenticated_calls: 32,
        ..options()
    })
    .await;
    let mut client = client(address).await;
    let mut watches = Vec::new();
    for _ in 0..4 {
        let watch = client.watch(HealthCheckRequest::default()).await.unwrap();
        watches.push(watch.into_inner());
    }
    let refused = client.watch(HealthCheckRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::ResourceExhausted);
    // They take no place of calls whose caller is to be authenticated.
    for _ in 0..32 {
        assert!(is_healthy(&mut client).await);
    }
    drop(watches);
}
