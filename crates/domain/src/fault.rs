//! What went wrong, in terms a caller can act on: a kind (which status code, retry or not), a stable reason
//! (docs/errors.md), a message, and the fields at fault. Every service speaks it; `rpc` turns it into a gRPC status.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// The class of a [`Fault`]; each maps to the canonical gRPC code of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The request is wrong and will stay wrong; `fields` says where.
    InvalidArgument,
    /// What the request names does not exist (for this tenant).
    NotFound,
    /// The identity is taken by something with other content.
    AlreadyExists,
    /// The system is not in the state that the request needs.
    FailedPrecondition,
    /// A bound was reached: queue, quota, size. Retrying later may work.
    ResourceExhausted,
    /// A part is down or not ready. Retrying later may work.
    Unavailable,
    /// The caller's deadline passed first.
    DeadlineExceeded,
    /// No credential, or one that is not known.
    Unauthenticated,
    /// The credential does not allow this.
    PermissionDenied,
    /// Stored data cannot be read back as it was written.
    DataLoss,
    /// A defect of memfleet.
    Internal,
}

/// One field of a request and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// Path of the field as in the proto, for example `turns[3].speaker`.
    pub field: String,
    /// What is wrong and how to mend it.
    pub description: String,
}

/// An error that a caller sees, but for its cause. `Display` gives both, for logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default())]
pub struct Fault {
    /// The class.
    pub kind: FaultKind,
    /// Stable `SCREAMING_SNAKE` name, documented in docs/errors.md.
    pub reason: Cow<'static, str>,
    /// One sentence for a person.
    pub message: String,
    /// The fields at fault, if any.
    pub fields: Vec<FieldViolation>,
    /// Facts for programs, for example both hashes of a conflict.
    pub metadata: BTreeMap<String, String>,
    /// When a retry is worth it.
    pub retry_after: Option<Duration>,
    /// Cause in terms of operators (servers, files, drivers): it goes to the log and never to a
    /// caller.
    pub cause: Option<String>,
}

impl Fault {
    /// A fault of `kind` with the documented `reason`.
    pub fn new(
        kind: FaultKind,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            reason: reason.into(),
            message: message.into(),
            fields: Vec::new(),
            metadata: BTreeMap::new(),
            retry_after: None,
            cause: None,
        }
    }

    /// `INVALID_ARGUMENT` for one field.
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::invalid_fields(vec![FieldViolation {
            field: field.into(),
            description: description.into(),
        }])
    }

    /// `INVALID_ARGUMENT` naming every field at fault, so that one round trip is enough to mend a request.
    pub fn invalid_fields(fields: Vec<FieldViolation>) -> Self {
        let message = fields
            .iter()
            .map(|violation| format!("{}: {}", violation.field, violation.description))
            .collect::<Vec<_>>()
            .join("; ");
        Self {
            fields,
            ..Self::new(FaultKind::InvalidArgument, "INVALID_FIELD", message)
        }
    }

    /// `NOT_FOUND` for the thing that `what` names.
    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(
            FaultKind::NotFound,
            "NOT_FOUND",
            format!("{what} does not exist"),
        )
    }

    /// A defect: the message goes to the caller, so it holds no payload.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Internal, "INTERNAL", message)
    }

    /// The caller's deadline passed while waiting for `what`.
    pub fn deadline(what: impl std::fmt::Display) -> Self {
        Self::new(
            FaultKind::DeadlineExceeded,
            "DEADLINE_EXCEEDED",
            format!("the deadline passed while waiting for {what}"),
        )
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Adds the cause, for operators alone.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Says when a retry is worth it.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Whether the same request may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            FaultKind::ResourceExhausted | FaultKind::Unavailable
        )
    }
}
