//! Requests over the limit. tonic refuses them before a service sees them, with a code and a sentence only.

use http::Response;
use memfleet_domain::{Fault, FaultKind};
use tonic::body::Body;
use tonic::{Code, Status};

use super::calls::Calls;
use crate::status;

impl Calls {
    /// The status of a stream's broken request; says what to do about one that is too large.
    pub(super) fn broken(self, status: Status) -> Status {
        explained(&status, self.bounds.max_request_bytes).unwrap_or(status)
    }
}

/// The same for the answer to a single call.
pub(super) fn explain(answer: Response<Body>, limit: usize) -> Response<Body> {
    let refusal = Status::from_header_map(answer.headers());
    match refusal.and_then(|status| explained(&status, limit)) {
        Some(status) => status.into_http(),
        None => answer,
    }
}

/// No service of ours answers with this code: without details it is tonic's.
fn explained(status: &Status, limit: usize) -> Option<Status> {
    let is_refusal = status.code() == Code::OutOfRange && status.details().is_empty();
    is_refusal.then(|| {
        let message = format!(
            "the message is larger than `server.max_request_size`, {limit} bytes: send fewer or shorter turns a message"
        );
        let fault = Fault::new(FaultKind::InvalidArgument, "REQUEST_TOO_LARGE", message);
        status::from_fault(&fault.with("limit_bytes", limit.to_string()))
    })
}
