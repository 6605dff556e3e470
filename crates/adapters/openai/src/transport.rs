//! Requests over HTTP. What comes back is examined before anything reads it: its status, its size, and that it is JSON at all. So
//! nothing further up can print a body, or be filled by one.

use std::io;
use std::time::Duration;

use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use bytes::{Bytes, BytesMut};
use eventsource_stream::Eventsource;
use futures::{Stream, StreamExt, TryStreamExt};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Body, Client, Request, Response};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::BuilderVerifierExt;
use serde::de::IgnoredAny;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt, service_fn};

use crate::Options;
use crate::failure::{Failure, Hint};

/// As much as is read of an answer that is no success.
const ERROR_LIMIT: usize = 16 << 10;

/// What carries a request to the endpoint.
pub type Exchange = BoxCloneSyncService<Request, Response, BoxError>;

/// HTTP cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The authorities of the operating system cannot be used.
    #[error("certificates of the operating system cannot be used: {0}")]
    Authorities(#[from] rustls::Error),
    /// The client cannot be made.
    #[error("HTTP cannot be set up: {0}")]
    Client(#[from] reqwest::Error),
}

/// HTTP, believing whom the operating system believes; no redirect is followed, as it would carry the key along.
pub fn http(options: &Options) -> Result<Exchange, Error> {
    let tls = tls()?.with_platform_verifier()?.with_no_client_auth();
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(options.connect_timeout)
        .redirect(Policy::none())
        .user_agent(concat!("memfleet/", env!("CARGO_PKG_VERSION")))
        .build()?;
    Ok(BoxCloneSyncService::new(client.map_err(BoxError::from)))
}

/// What composes requests and sends none: it believes nobody.
pub fn composer() -> Result<Client, Error> {
    let nobody = RootCertStore::empty();
    let tls = tls()?.with_root_certificates(nobody).with_no_client_auth();
    Ok(Client::builder().tls_backend_preconfigured(tls).build()?)
}

fn tls() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    let provider = rustls::crypto::ring::default_provider();
    ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions()
}

/// Answers examined; one of more than `limit` bytes is cut off.
pub fn examined(
    exchange: Exchange,
    limit: usize,
) -> impl Service<HttpRequestFactory, Response = Response, Error = OpenAIError, Future: Send + 'static>
+ Clone
+ Send
+ Sync
+ 'static {
    service_fn(move |factory: HttpRequestFactory| {
        let exchange = exchange.clone();
        async move {
            let request = factory.build().await?;
            let response = exchange.oneshot(request).await;
            let response = response.map_err(|error| not_sent(&error))?;
            Ok(examine(response, limit).await?)
        }
    })
}

fn not_sent(error: &BoxError) -> Failure {
    let error = error.downcast_ref::<reqwest::Error>();
    match error.is_some_and(reqwest::Error::is_connect) {
        true => Failure::NotReached,
        false => Failure::Broken,
    }
}

async fn examine(response: Response, limit: usize) -> Result<Response, Failure> {
    let status = response.status();
    let header = |name| response.headers().get(name)?.to_str().ok();
    if !status.is_success() {
        let seconds = header(RETRY_AFTER).and_then(|text| text.trim().parse().ok());
        let body = read(response, ERROR_LIMIT).await.unwrap_or_default();
        return Err(Failure::Status {
            code: status.as_u16(),
            retry_after: seconds.map(Duration::from_secs),
            hint: Hint::of(&String::from_utf8_lossy(&body)),
        });
    }
    let kind = header(CONTENT_TYPE).unwrap_or_default();
    let body = if kind.starts_with("text/event-stream") {
        Body::wrap_stream(events(response, limit))
    } else {
        let body = read(response, limit).await?;
        serde_json::from_slice::<IgnoredAny>(&body)
            .map_err(|_| Failure::Garbage("the body is not JSON"))?;
        Body::from(body)
    };
    Ok(http::Response::new(body).into())
}

async fn read(response: Response, limit: usize) -> Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    let mut stream = bounded(response, limit);
    while let Some(chunk) = stream.try_next().await.map_err(|error| cut_off(&error))? {
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn cut_off(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Failure::Garbage("the body is too large"),
        _ => Failure::Broken,
    }
}

fn bounded(response: Response, limit: usize) -> impl Stream<Item = io::Result<Bytes>> + Unpin {
    let mut left = limit;
    response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        left = left
            .checked_sub(chunk.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(chunk)
    })
}

/// The events whose data is JSON, written anew; the first other one breaks the stream.
fn events(response: Response, limit: usize) -> impl Stream<Item = io::Result<String>> {
    bounded(response, limit).eventsource().map(|event| {
        let data = event.map_err(|_| io::ErrorKind::InvalidData)?.data;
        let is_sound = data == "[DONE]" || serde_json::from_str::<IgnoredAny>(&data).is_ok();
        // Line ends in JSON are blanks: those of strings are escaped.
        let line = data.replace(['\n', '\r'], " ");
        is_sound
            .then(|| format!("data: {line}\n\n"))
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    })
}
