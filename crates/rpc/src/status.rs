//! Faults on the wire: a gRPC status with `google.rpc` details, and back without a loss.

use std::collections::BTreeMap;
use std::error::Error;

use memfleet_domain::fault::FieldViolation;
use memfleet_domain::{Fault, FaultKind};
use tonic::transport::Error as TransportError;
use tonic::{Code, Status, TimeoutExpired};
use tonic_types::{ErrorDetails, StatusExt};

/// Domain of the `google.rpc.ErrorInfo` of every fault.
pub const DOMAIN: &str = "memfleet";

/// Longest message that a status carries, in bytes. It travels in HTTP headers, which many clients cap at 8 KiB.
const MESSAGE: usize = 1_024;

/// Every kind.
#[cfg(test)]
pub(crate) const KINDS: [FaultKind; 11] = [
    FaultKind::InvalidArgument,
    FaultKind::NotFound,
    FaultKind::AlreadyExists,
    FaultKind::FailedPrecondition,
    FaultKind::ResourceExhausted,
    FaultKind::Unavailable,
    FaultKind::DeadlineExceeded,
    FaultKind::Unauthenticated,
    FaultKind::PermissionDenied,
    FaultKind::DataLoss,
    FaultKind::Internal,
];

/// The canonical code of a kind.
pub fn code(kind: FaultKind) -> Code {
    match kind {
        FaultKind::InvalidArgument => Code::InvalidArgument,
        FaultKind::NotFound => Code::NotFound,
        FaultKind::AlreadyExists => Code::AlreadyExists,
        FaultKind::FailedPrecondition => Code::FailedPrecondition,
        FaultKind::ResourceExhausted => Code::ResourceExhausted,
        FaultKind::Unavailable => Code::Unavailable,
        FaultKind::DeadlineExceeded => Code::DeadlineExceeded,
        FaultKind::Unauthenticated => Code::Unauthenticated,
        FaultKind::PermissionDenied => Code::PermissionDenied,
        FaultKind::DataLoss => Code::DataLoss,
        FaultKind::Internal => Code::Internal,
    }
}

/// The status of a fault: its message, `ErrorInfo`, and `BadRequest` and `RetryInfo` where it has
/// fields and a time. A cause goes to the log, under the id of the request, which the caller gets.
pub fn from_fault(fault: &Fault) -> Status {
    let mut message = fault.message.clone();
    if let Some(cause) = &fault.cause {
        tracing::warn!(reason = %fault.reason, cause, "{}", fault.message);
        if let Some(id) = memfleet_trace::request_id() {
            message = format!("{message}; the server's log has the cause under request id {id}");
        }
    }
    let metadata = fault
        .metadata
        .clone()
        .into_iter()
        .collect::<std::collections::HashMap<_, _>>();
    let mut details = ErrorDetails::with_error_info(fault.reason.as_ref(), DOMAIN, metadata);
    for violation in &fault.fields {
        details.add_bad_request_violation(&violation.field, &violation.description);
    }
    if fault.retry_after.is_some() {
        details.set_retry_info(fault.retry_after);
    }
    let message = &message[..message.floor_char_boundary(MESSAGE)];
    Status::with_error_details(code(fault.kind), message, details)
}

/// The fault that a status tells of. One without details, from a proxy or the transport, gets a reason of its own.
pub fn to_fault(status: &Status) -> Fault {
    let details = status.get_error_details();
    let (kind, reason) = origin(status);
    let mut fault = Fault::new(kind, reason, message(status));
    if let Some(info) = details.error_info().filter(|info| info.domain == DOMAIN) {
        fault.reason = info.reason.clone().into();
        fault.metadata = info
            .metadata
            .clone()
            .into_iter()
            .collect::<BTreeMap<_, _>>();
    }
    let violations = details
        .bad_request()
        .map(|request| request.field_violations.as_slice());
    fault.fields = violations
        .unwrap_or_default()
        .iter()
        .map(|violation| FieldViolation {
            field: violation.field.clone(),
            description: violation.description.clone(),
        })
        .collect();
    fault.retry_after = details.retry_info().and_then(|info| info.retry_delay);
    fault
}

/// Tells the status of a server of something else, such as the port of the metrics: it sends no
/// status, and the transport makes one of HTTP's.
fn speaks_no_grpc(status: &Status) -> bool {
    let is_made = status.message().starts_with("grpc-status header missing");
    is_made
        && matches!(
            status.code(),
            Code::Unimplemented | Code::Unknown | Code::Internal
        )
}

/// Tells the status that the transport makes where the connection breaks inside an answer: the
/// server was killed, and has said nothing.
fn is_cut_off(status: &Status) -> bool {
    let is_made = status.message().starts_with("h2 protocol error: ");
    is_made && matches!(status.code(), Code::Unknown | Code::Internal)
}

/// What a status says; where the connection broke with the cause of that, such as a certificate that was refused.
fn message(status: &Status) -> String {
    let said = status.message();
    if speaks_no_grpc(status) {
        return format!("what answers at this address is no gRPC server ({said})");
    }
    let broken = status.source().filter(|cause| cause.is::<TransportError>());
    let causes = std::iter::successors(broken, |&cause| cause.source());
    let cause = causes.last().map(ToString::to_string);
    let unsaid = cause.filter(|cause| !said.contains(cause.as_str()));
    unsaid.map_or_else(|| said.to_owned(), |cause| format!("{said}: {cause}"))
}

/// True where the caller's own time was over before an answer came.
fn is_late(status: &Status) -> bool {
    let mut causes = std::iter::successors(status.source(), |&cause| cause.source());
    causes.any(<dyn Error>::is::<TimeoutExpired>)
}

/// The kind of a status, and the reason of one that names none.
fn origin(status: &Status) -> (FaultKind, &'static str) {
    if is_late(status) {
        return (FaultKind::DeadlineExceeded, "DEADLINE_EXCEEDED");
    }
    if status
        .source()
        .is_some_and(<dyn Error>::is::<TransportError>)
    {
        return (FaultKind::Unavailable, "CONNECTION_FAILED");
    }
    if speaks_no_grpc(status) || is_cut_off(status) {
        return (FaultKind::Unavailable, "CONNECTION_FAILED");
    }
    match status.code() {
        Code::InvalidArgument => (FaultKind::InvalidArgument, "INVALID_ARGUMENT"),
        Code::OutOfRange => (FaultKind::InvalidArgument, "OUT_OF_RANGE"),
        Code::NotFound => (FaultKind::NotFound, "NOT_FOUND"),
        Code::AlreadyExists => (FaultKind::AlreadyExists, "ALREADY_EXISTS"),
        Code::FailedPrecondition => (FaultKind::FailedPrecondition, "FAILED_PRECONDITION"),
        Code::Unimplemented => (FaultKind::FailedPrecondition, "UNIMPLEMENTED"),
        Code::ResourceExhausted => (FaultKind::ResourceExhausted, "RESOURCE_EXHAUSTED"),
        Code::Unavailable => (FaultKind::Unavailable, "UNAVAILABLE"),
        Code::Aborted => (FaultKind::Unavailable, "ABORTED"),
        Code::Cancelled => (FaultKind::Unavailable, "CANCELLED"),
        Code::DeadlineExceeded => (FaultKind::DeadlineExceeded, "DEADLINE_EXCEEDED"),
        Code::Unauthenticated => (FaultKind::Unauthenticated, "UNAUTHENTICATED"),
        Code::PermissionDenied => (FaultKind::PermissionDenied, "PERMISSION_DENIED"),
        Code::DataLoss => (FaultKind::DataLoss, "DATA_LOSS"),
        Code::Internal => (FaultKind::Internal, "INTERNAL"),
        Code::Ok | Code::Unknown => (FaultKind::Internal, "UNKNOWN"),
    }
}

#[cfg(test)]
mod tests;
