//! From what the server says to [`StoreError`]. Private so that `?` works on both; ports see [`StoreError`] only.

use memfleet_ports::store::StoreError;
use serde::Deserialize;

/// Error codes of the server that mean something here.
pub mod code {
    pub const CONSUMER_NOT_FOUND: u64 = 10014;
    pub const INSUFFICIENT_RESOURCES: u64 = 10023;
    pub const NO_MESSAGE: u64 = 10037;
    pub const NO_SEQUENCE: u64 = 10043;
    pub const DELETE_FAILED: u64 = 10057;
    pub const STORAGE_EXCEEDED: u64 = 10047;
    pub const STREAM_NAME_IN_USE: u64 = 10058;
    pub const STREAM_NOT_FOUND: u64 = 10059;
    pub const WRONG_LAST_SEQUENCE: u64 = 10071;
    pub const STREAM_STORE_FAILED: u64 = 10077;
    pub const CONSUMER_EXISTS: u64 = 10148;
    /// A message with the same id is on its way at this moment.
    pub const DUPLICATE_IN_PROCESS: u64 = 10158;
}

/// A [`StoreError`] on its way out, with the server's own code where it said no.
#[derive(Debug)]
pub struct Failure {
    pub code: Option<u64>,
    pub error: StoreError,
}

/// Shorthand of this crate.
pub type Outcome<T> = std::result::Result<T, Failure>;

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { code: None, error }
    }
}

/// What the server says when it does not do something.
#[derive(Debug, Deserialize)]
pub struct Refusal {
    pub code: u64,
    #[serde(default)]
    pub err_code: u64,
    #[serde(default)]
    pub description: String,
}
