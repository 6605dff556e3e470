//! The one binary: a node in this process (`up`, `demo`), one role of a fleet (`run`), and the client commands that talk to either.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bench;
mod cli;
mod config;
mod corpus;
mod dataset;
mod models;
mod node;
mod output;
mod patience;
mod process;
mod role;
mod said;

/// Many small vectors are made and dropped per request; the system's allocator keeps their pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
