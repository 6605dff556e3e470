//! Requests and answers of model providers, as bytes and as a conversation.
//!
//! AMP (Augmented Memory Protocol) puts memory into requests that are not ours: [`Request`] reads one, [`placement`] says where memory goes,
//! and [`Request::apply`] splices it into the original bytes, of which everything else stays as it was. [`reply`] and [`stream`] read what
//! comes back, [`rounds`] keeps count of a turn's memory tool calls, and [`session`] tells conversations apart. Pure: no network, no clock.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod conversation;
mod digest;
mod edit;
mod fragment;
mod json;
mod layout;
mod malformed;
pub mod placement;
pub mod query;
pub mod rejection;
pub mod reply;
mod request;
pub mod rounds;
pub mod session;
pub mod stream;
pub mod suspended;
pub mod tools;

pub use conversation::Conversation;
pub use edit::{Edit, Inapplicable, Place};
pub use malformed::{Malformed, Reason};
pub use memfleet_domain::assembly::ProviderFormat as Format;

pub use reply::Reply;
pub use request::Request;
