//! Streamed replies: frames out of bytes, a [`crate::Reply`] out of frames, and what of them a client sees.

mod assembler;
mod numbering;
mod parser;
mod screen;

pub use assembler::Assembler;
pub use parser::{Frame, Framing, MAX_FRAME, Parser};
pub use screen::{Outcome, Policy, Screen};
