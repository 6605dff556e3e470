//! The wire between the roles of a fleet (`proto/memfleet/internal/v1`): the traits of the roles served and called, so that
//! a role cannot tell whether the other is in its process or behind a network.
//!
//! [`routes`](server::routes) serves roles behind the fleet's [`Credential`]; [`Peers`] are the
//! replicas of one role, and [`RemoteEmbedder`], [`RemoteTurnReader`], [`RemoteRetriever`],
//! [`RemoteRefresher`] call them. Retries belong to these clients alone: they try another replica
//! where a call may be repeated.

mod call;
mod credential;
mod embedder;
mod peers;
mod refresher;
mod retriever;
pub mod server;
mod turn_reader;

pub use credential::Credential;
pub use embedder::RemoteEmbedder;
pub use peers::{Options, Peers};
pub use refresher::RemoteRefresher;
pub use retriever::RemoteRetriever;
pub use turn_reader::RemoteTurnReader;

/// Largest message between roles, both ways: 1,000 hits of the largest turns.
const MAX_MESSAGE_BYTES: usize = 128 << 20;
