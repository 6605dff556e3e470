//! The generated code of `proto/memfleet`, and its descriptors.
#![allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    rustdoc::all,
    reason = "generated from the protos, which are documented"
)]

tonic::include_proto!("memfleet.v1");

/// The encoded file descriptor set of the public API, comments included: what reflection serves.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/memfleet.v1.bin"));

/// What the roles of a fleet say to each other.
pub mod internal {
    tonic::include_proto!("memfleet.internal.v1");

    /// The encoded file descriptor set, comments included.
    pub const DESCRIPTORS: &[u8] =
        include_bytes!(concat!(env!("OUT_DIR"), "/memfleet.internal.v1.bin"));
}
