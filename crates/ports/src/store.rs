//! What can go wrong in any store, whatever engine is behind it.

use std::time::Duration;

use memfleet_domain::fault::FieldViolation;
use memfleet_domain::time::Timestamp;
use memfleet_domain::{Fault, FaultKind};

/// Shorthand of the storage ports.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why a store could not answer. Messages name the file or server, never the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the lock, or the server cannot be reached; a retry may work.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// No space is left; nothing was written.
    #[error("the store is full: {0}")]
    Full(String),
    /// What is stored cannot be read back as it was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store was written by a newer version.
    #[error(
        "the store has schema version {found}, this build knows up to {known}: run a newer memfleet, or restore a backup"
    )]
    Newer {
        /// What the store says.
        found: i64,
        /// What this build knows.
        known: i64,
    },
    /// The file or database belongs to another application; nothing was changed in it.
    #[error("not a store of memfleet: {0}")]
    Foreign(String),
    /// The same identity arrived with other content.
    #[error("{what} was accepted before with other content")]
    Conflict {
        /// What is taken.
        what: String,
        /// Hash of what is stored.
        stored: String,
        /// Hash of what was given.
        given: String,
    },
    /// A tenant has its share of the queue waiting.
    #[error(
        "{turns} turns ({bytes} bytes) of this tenant are waiting to be stored; it may have {max_turns} ({max_bytes} bytes) at present"
    )]
    QueueFull {
        /// Its turns that wait …
        turns: u64,
        /// … and their bytes.
        bytes: u64,
        /// Turns that may wait …
        max_turns: u64,
        /// … and bytes.
        max_bytes: u64,
    },
    /// The queue never takes so much at once.
    #[error(
        "the batch takes {bytes} bytes in the queue, which takes {limit} at most: send fewer turns in a request, or raise `max_payload` of the NATS servers"
    )]
    TooLarge {
        /// What it takes …
        bytes: usize,
        /// … and what it may.
        limit: usize,
    },
    /// Somebody else wrote in between, and nothing was written.
    #[error(
        "{what} has version {current} by now, and version {expected} was expected: read it again"
    )]
    Stale {
        /// What was to be written.
        what: &'static str,
        /// The version that the writer knew; 0 means that there is none.
        expected: u64,
        /// The version that is there; 0 where there is none.
        current: u64,
    },
    /// More than the store keeps of something; nothing was written.
    #[error("{what} takes {size}, and at most {limit} are stored")]
    Oversized {
        /// What it is, and in which unit.
        what: &'static str,
        /// What it takes …
        size: usize,
        /// … and what it may.
        limit: usize,
    },
    /// The space is on legal hold, and nothing was removed.
    #[error(
        "the space is on legal hold since {}, and nothing of it is removed until an administrator lifts the hold \
         (`Spaces.SetLegalHold`, `memfleet spaces release`)",
        since.to_rfc3339()
    )]
    Held {
        /// Since when.
        since: Timestamp,
    },
    /// A page token that this listing did not give.
    #[error("the page token is not one that this listing gave")]
    PageToken,
    /// A defect: the adapter does not understand what happened.
    #[error("unexpected answer of the store: {0}")]
    Unexpected(String),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Unavailable(cause) => {
                let message = "the store is not available";
                Self::new(FaultKind::Unavailable, "STORE_UNAVAILABLE", message)
                    .because(cause)
                    .retry_after(Duration::from_secs(1))
            }
            StoreError::Full(cause) => {
                let message = "the store is full";
                Self::new(FaultKind::ResourceExhausted, "STORE_FULL", message).because(cause)
            }
            StoreError::Damaged(cause) => {
                let message = "the store is damaged";
                Self::new(FaultKind::DataLoss, "STORE_DAMAGED", message).because(cause)
            }
            StoreError::Newer { .. } => {
                Self::new(FaultKind::FailedPrecondition, "STORE_NEWER", message)
            }
            StoreError::Foreign(cause) => {
                let message = "not a store of memfleet";
                Self::new(FaultKind::FailedPrecondition, "STORE_FOREIGN", message).because(cause)
            }
            StoreError::Conflict { stored, given, .. } => {
                Self::new(FaultKind::AlreadyExists, "IDEMPOTENCY_CONFLICT", message)
                    .with("stored_hash", stored)
                    .with("given_hash", given)
            }
            StoreError::QueueFull { .. } => {
                Self::new(FaultKind::ResourceExhausted, "QUEUE_FULL", message)
                    .retry_after(Duration::from_secs(2))
            }
            StoreError::TooLarge { limit, .. } => {
                Self::new(FaultKind::InvalidArgument, "REQUEST_TOO_LARGE", message)
                    .with("limit_bytes", limit.to_string())
            }
            StoreError::Stale { current, .. } => {
                Self::new(FaultKind::FailedPrecondition, "VERSION_STALE", message)
                    .with("current_version", current.to_string())
            }
            StoreError::Oversized { limit, .. } => {
                Self::new(FaultKind::InvalidArgument, "CONTENT_TOO_LARGE", message)
                    .with("limit", limit.to_string())
            }
            StoreError::Held { since } => {
                let violation = FieldViolation {
                    field: "space".into(),
                    description: message.clone(),
                };
                let fault = Self::new(FaultKind::FailedPrecondition, "LEGAL_HOLD", message);
                Self {
                    fields: vec![violation],
                    ..fault.with("held_since", since.to_rfc3339())
                }
            }
            StoreError::PageToken => Self::invalid("page_token", message),
            StoreError::Unexpected(cause) => {
                Self::internal("the store gave an unexpected answer").because(cause)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_to_operators_alone() {
        let named = || "db.internal:5432/memory: gone".to_owned();
        for error in [
            StoreError::Unavailable(named()),
            StoreError::Full(named()),
            StoreError::Damaged(named()),
            StoreError::Unexpected(named()),
            StoreError::Foreign(named()),
        ] {
            let fault = Fault::from(error);
            assert!(!fault.message.contains("db.internal"), "{fault:?}");
            assert!(fault.to_string().contains("db.internal"), "{fault:?}");
        }
    }
}
