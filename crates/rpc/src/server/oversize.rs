//! Requests over the limit. tonic refuses them before a service sees them, with a code and a sentence only.

use http::Response;
use memfleet_domain::{Fault, FaultKind};
use tonic::body::Body;
use tonic::{Code, Status};

use super::Bounds;
use super::calls::Calls;
use crate::status;

/// How large a message may be, and who says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) bytes: usize,
    /// The key of the configuration.
    key: &'static str,
    /// What makes a message smaller.
    remedy: &'static str,
    /// AMP has another word for it than we have (item 118).
    kind: FaultKind,
}

impl Limit {
    pub(super) fn of_requests(bounds: Bounds) -> Self {
        Self {
            bytes: bounds.max_request_bytes,
            key: "server.max_request_size",
            remedy: "send fewer or shorter turns a message",
            kind: FaultKind::InvalidArgument,
        }
    }

    pub(super) fn of_prompts(bounds: Bounds) -> Self {
        if bounds.max_prompt_bytes <= bounds.max_request_bytes {
            return Self::of_requests(bounds);
        }
        Self {
            bytes: bounds.max_prompt_bytes,
            key: "server.max_prompt_size",
            remedy: "send the prompt without its pictures, and place the block by the edits, or raise the limit",
            kind: FaultKind::ResourceExhausted,
        }
    }
}

impl Calls {
    /// The status of a stream's broken request; says what to do about one that is too large.
    pub(super) fn broken(self, status: Status) -> Status {
        explained(&status, Limit::of_requests(self.bounds)).unwrap_or(status)
    }
}

/// The same for the answer to a single call.
pub(super) fn explain(answer: Response<Body>, limit: Limit) -> Response<Body> {
    let refusal = Status::from_header_map(answer.headers());
    match refusal.and_then(|status| explained(&status, limit)) {
        Some(status) => status.into_http(),
        None => answer,
    }
}

/// No service of ours answers with this code: without details it is tonic's.
fn explained(status: &Status, limit: Limit) -> Option<Status> {
    let is_refusal = status.code() == Code::OutOfRange && status.details().is_empty();
    is_refusal.then(|| {
        let Limit {
            bytes,
            key,
            remedy,
            kind,
        } = limit;
        let message = format!("the message is larger than `{key}`, {bytes} bytes: {remedy}");
        let fault = Fault::new(kind, "REQUEST_TOO_LARGE", message);
        status::from_fault(&fault.with("limit_bytes", bytes.to_string()))
    })
}
