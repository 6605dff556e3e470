//! Over real HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use memfleet_domain::time::SystemClock;
use memfleet_openai::testing::{Scripted, endpoint, serve};
use memfleet_openai::{MemoryLedger, OpenAi, Options};
use memfleet_ports::language_model::{LanguageModel, ModelFault};
use tokio::net::TcpListener;

use crate::setup::{call, says, status, tenant};

fn model(url: &str) -> OpenAi {
    let mut options = Options::new(url, "small");
    options.key = Some("sk-1".into());
    options.retries = 1;
    let ledger = Arc::new(MemoryLedger::default());
    OpenAi::new(options, ledger, Arc::new(SystemClock)).unwrap()
}

async fn ask(url: &str) -> Result<String, ModelFault> {
    let reply = model(url).complete(&tenant(), &call("a")).await;
    reply.map(|reply| reply.text)
}

async fn listen(router: Router) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn a_call_carries_the_key_to_the_chat_path() {
    let answer = |headers: HeaderMap| async move {
        match headers["authorization"] == "Bearer sk-1" {
            true => Ok(r#"{"choices": [{"message": {"content": "{}"}}]}"#),
            false => Err(StatusCode::UNAUTHORIZED),
        }
    };
    let url = listen(Router::new().route("/v1/chat/completions", post(answer))).await;
    assert_eq!(ask(&url).await, Ok("{}".to_owned()));
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_key_elsewhere() {
    let elsewhere = || async { (StatusCode::TEMPORARY_REDIRECT, [("location", "/stolen")]) };
    let stolen = || async { r#"{"choices": [{"message": {"content": "stolen"}}]}"# };
    let router = Router::new()
        .route("/v1/chat/completions", post(elsewhere))
        .route("/stolen", post(stolen));
    let fault = ask(&listen(router).await).await.unwrap_err();
    assert!(fault.to_string().contains("elsewhere"), "{fault}");
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_unavailable() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let expected = ModelFault::unavailable("the endpoint cannot be reached");
    assert_eq!(ask(&url).await, Err(expected));
}

#[tokio::test]
async fn broken_connections_and_bodies_are_outlasted() {
    for bad in [
        Scripted::Breaks,
        Scripted::Truncates("{\"a\": 1}".to_owned()),
        status(503),
    ] {
        let script = [bad, says("{}")];
        let served = serve(endpoint(move |index, _| script[index].clone())).await;
        assert_eq!(ask(&served.unwrap().url).await, Ok("{}".to_owned()));
    }
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_not_waited_for() {
    let served = serve(endpoint(|_, _| Scripted::Hangs)).await.unwrap();
    let mut call = call("a");
    call.deadline = tokio::time::Instant::now() + Duration::from_millis(50);
    let fault = model(&served.url).complete(&tenant(), &call).await;
    assert_eq!(fault.unwrap_err(), ModelFault::TimedOut);
}
