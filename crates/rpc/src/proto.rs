//! The generated code of `proto/memfleet/v1`, and its descriptors.
#![allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    rustdoc::all,
    reason = "generated from the protos, which are documented"
)]

tonic::include_proto!("memfleet.v1");

/// The encoded file descriptor set, comments included: what reflection serves.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/memfleet.v1.bin"));
