//! Requests that tonic refuses before a service sees them, with a code and a sentence only: over
//! the limit, or no message of their method.

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
    /// The status of a stream's broken request; says what to do about one that cannot be read.
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

/// The status for one of tonic's, which has no details; every status of ours has some.
fn explained(status: &Status, limit: Limit) -> Option<Status> {
    if !status.details().is_empty() {
        return None;
    }
    match status.code() {
        Code::OutOfRange => Some(too_large(limit)),
        Code::Internal => Some(malformed(status.message())),
        _ => None,
    }
}

fn too_large(limit: Limit) -> Status {
    let Limit {
        bytes,
        key,
        remedy,
        kind,
    } = limit;
    let message = format!("the message is larger than `{key}`, {bytes} bytes: {remedy}");
    let fault = Fault::new(kind, "REQUEST_TOO_LARGE", message);
    status::from_fault(&fault.with("limit_bytes", bytes.to_string()))
}

fn malformed(cause: &str) -> Status {
    let message = format!(
        "the request is no message of this method ({cause}): generate the client from the protos of this version"
    );
    status::from_fault(&Fault::new(
        FaultKind::InvalidArgument,
        "REQUEST_MALFORMED",
        message,
    ))
}
