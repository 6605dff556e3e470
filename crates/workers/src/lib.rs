//! What the workers on derived memory have in common: they follow the changes of every space ([`Follower`]), and what they write is
//! indexed like turns are ([`Indexer`]).
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod aside;
mod follower;
mod heard;
mod indexer;
mod rounds;
mod waiting;
mod witness;

pub use follower::{Agent, Follower, Outcome};
pub use heard::Heard;
pub use indexer::{Indexer, served_embedding};
pub use rounds::{before, reverted, worked_through};
pub use witness::is_witnessed;
