//! What must hold of any bytes. Each function takes what a fuzzer made up and panics where a promise is broken: `fuzz/` drives them with
//! libFuzzer (`cargo xtask fuzz`), and `tests/replay.rs` runs what is kept of it with every other test.

mod block;
mod choices;
mod patch;
mod reply;
mod request;
mod stream;

pub use block::block;
pub use patch::patch;
pub use reply::reply;
pub use request::request;
pub use stream::stream;

/// A check of any bytes.
pub type Check = fn(&[u8]);

/// All of them, by the names of their targets and of their folders in `fuzz/seeds`.
pub const CHECKS: [(&str, Check); 5] = [
    ("block", block),
    ("patch", patch),
    ("reply", reply),
    ("request", request),
    ("stream", stream),
];
