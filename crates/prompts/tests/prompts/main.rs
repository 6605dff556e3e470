//! Prompts as they are printed, and what is made of replies: true ones, and any others.
#![allow(clippy::unwrap_used, reason = "tests")]

mod answering;
mod asking;
mod checking;
mod extraction;
mod fence;
mod printed;
mod samples;
