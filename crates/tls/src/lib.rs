//! TLS between processes: the certificate that a process shows, the authorities that it believes, and both as current as
//! their files. Whoever rotates certificates replaces the files; connections made from then on use the new ones.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accept;
mod certificates;
mod connect;
mod error;
mod expiry;
mod files;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use accept::{Acceptor, Callers};
pub use certificates::Tls;
pub use error::Error;
pub use files::Files;
