//! A scripted endpoint on a socket, for processes that know it by its address. Time passes there as everywhere.

use std::io;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::response::Response;
use futures::stream;
use reqwest::{Method, Request, Url};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tower::ServiceExt;

use crate::transport::Exchange;

/// An endpoint that listens until it is dropped.
#[derive(Debug)]
pub struct Served {
    /// Its base URL.
    pub url: String,
    task: AbortHandle,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Listens on a free port of this machine.
pub async fn serve(exchange: Exchange) -> io::Result<Served> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    let router = Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::disable())
        .with_state(exchange);
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(Served {
        url,
        task: serving.abort_handle(),
    })
}

async fn answer(State(exchange): State<Exchange>, body: Bytes) -> Response {
    let url = Url::parse("http://script.test").expect("a valid URL");
    let mut request = Request::new(Method::POST, url);
    *request.body_mut() = Some(body.into());
    match exchange.oneshot(request).await {
        Ok(response) => {
            let response: http::Response<reqwest::Body> = response.into();
            response.map(Body::new)
        }
        // An error in a body breaks the connection.
        Err(error) => Response::new(Body::from_stream(stream::iter([Err::<Bytes, _>(error)]))),
    }
}
