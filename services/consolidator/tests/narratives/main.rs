//! What episodes tell is bound to narratives, on a real store.

#![allow(clippy::unwrap_used)]

mod bench;
mod binding;
mod consolidating;
mod forgetting;
mod relating;
mod undoing;
