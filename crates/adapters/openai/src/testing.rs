//! Endpoints that play a script, without a socket: what comes back may be late, broken or garbage, and time can stand still.
//! [`serve`] puts one on a socket.

mod garbage;
mod served;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use reqwest::{Body, Request, Response};
use serde_json::{Value, json};
use tower::service_fn;
use tower::util::BoxCloneSyncService;

pub use self::garbage::garbage;
pub use self::served::{Served, serve};
use crate::transport::Exchange;

/// What an endpoint does with one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Scripted {
    /// Says this, whole or in pieces, as it is asked.
    Says(String),
    /// The same without telling what it cost.
    SaysUncounted(String),
    /// Stops for this reason (`length`, `content_filter`), having said this.
    Stops(String, &'static str),
    /// Declines.
    Declines,
    /// Answers with a status, a body, and perhaps when to come back.
    Status(u16, String, Option<Duration>),
    /// Answers with success and this body.
    Body(Vec<u8>),
    /// Begins to say this, and breaks in the middle.
    Truncates(String),
    /// Says this, a byte at a time with this pause.
    Drips(String, Duration),
    /// Never answers.
    Hangs,
    /// Breaks the connection.
    Breaks,
}

/// An endpoint that does with the n-th request, from 0, what the script says; it is shown the request's body.
pub fn endpoint(script: impl Fn(usize, &Value) -> Scripted + Send + Sync + 'static) -> Exchange {
    let script = Arc::new(script);
    let count = Arc::new(AtomicUsize::new(0));
    BoxCloneSyncService::new(service_fn(move |request: Request| {
        let index = count.fetch_add(1, Ordering::SeqCst);
        let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let scripted = script(index, &body);
        let streams = body["stream"] == json!(true);
        play(scripted, streams).boxed()
    }))
}

type Played = Result<Response, tower::BoxError>;

async fn play(scripted: Scripted, streams: bool) -> Played {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10});
    let whole = |text: &str, reason: &str, usage: &Value| match streams {
        true => events(text, reason, usage),
        false => one(text, reason, usage),
    };
    match scripted {
        Scripted::Says(text) => answer(200, streams, whole(&text, "stop", &usage).into()),
        Scripted::SaysUncounted(text) => {
            answer(200, streams, whole(&text, "stop", &Value::Null).into())
        }
        Scripted::Stops(text, reason) => answer(200, streams, whole(&text, reason, &usage).into()),
        Scripted::Declines => {
            let body =
                json!({"choices": [{"message": {"refusal": "no"}, "finish_reason": "stop"}]});
            let event = format!("data: {body}\n\n");
            let body = if streams { event } else { body.to_string() };
            answer(200, streams, body.into())
        }
        Scripted::Status(code, body, retry_after) => {
            let mut response = answer(code, false, body.into())?;
            if let Some(wait) = retry_after {
                let headers = response.headers_mut();
                headers.insert("retry-after", wait.as_secs().into());
            }
            Ok(response)
        }
        Scripted::Body(body) => answer(200, streams, body.into()),
        Scripted::Truncates(text) => {
            let body = whole(&text, "stop", &usage).into_bytes();
            let half = body[..body.len() / 2].to_vec();
            let broken = Err(std::io::ErrorKind::UnexpectedEof.into());
            let body: BoxStream<'static, std::io::Result<Vec<u8>>> =
                stream::iter([Ok(half), broken]).boxed();
            answer(200, streams, Body::wrap_stream(body))
        }
        Scripted::Drips(text, pause) => {
            let bytes = stream::iter(whole(&text, "stop", &usage).into_bytes());
            let slow = bytes.then(move |byte| async move {
                tokio::time::sleep(pause).await;
                Ok::<_, std::io::Error>(vec![byte])
            });
            answer(200, streams, Body::wrap_stream(slow))
        }
        Scripted::Hangs => std::future::pending().await,
        Scripted::Breaks => Err("connection reset".into()),
    }
}

fn answer(code: u16, streams: bool, body: Body) -> Played {
    let kind = match streams {
        true => "text/event-stream",
        false => "application/json",
    };
    let response = http::Response::builder()
        .status(code)
        .header("content-type", kind);
    Ok(response.body(body)?.into())
}

fn one(text: &str, reason: &str, usage: &Value) -> String {
    let message = json!({"role": "assistant", "content": text});
    json!({
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage,
    })
    .to_string()
}

fn events(text: &str, reason: &str, usage: &Value) -> String {
    let mut events: Vec<_> = text
        .split_inclusive(' ')
        .map(|word| json!({"choices": [{"delta": {"content": word}}]}))
        .collect();
    events.push(json!({"choices": [{"delta": {}, "finish_reason": reason}]}));
    events.push(json!({"choices": [], "usage": usage}));
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    lines.chain(["data: [DONE]\n\n".to_owned()]).collect()
}
