//! The AMP checklist, item by item: what assembly owes of it. Tests are named for their item.
#![allow(clippy::unwrap_used, reason = "a test that fails may as well panic")]

mod budgeting;
mod reporting;
mod selecting;
mod sizes;
mod trusting;
mod unicode;

use chrono::{DateTime, TimeZone, Utc};
use memfleet_assembly::{Block, Candidate, Reason, Tokenizer, Trust};

fn day(day: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2023, 5, day, 13, 56, 0).unwrap()
}

/// What Ann said: the lower the position, the better it ranks.
fn said<'a>(id: &'a str, position: u64, text: &'a str) -> Candidate<'a> {
    Candidate {
        id,
        position,
        speaker: "Ann",
        text,
        score: -(position as f32),
        trust: Trust::User,
        ..Candidate::default()
    }
}

fn o200k() -> Tokenizer {
    Tokenizer::named("o200k_base").unwrap()
}

fn bytes() -> Tokenizer {
    Tokenizer::named("bytes").unwrap()
}

/// The candidates in a block, in its order.
fn shown(block: &Block) -> Vec<usize> {
    block.items.iter().map(|item| item.candidate).collect()
}

fn reason(block: &Block, candidate: usize) -> Option<Reason> {
    let left_out = block.left_out.iter();
    let mut of_it = left_out.filter(|left| left.candidate == candidate);
    of_it.next().map(|left| left.reason)
}
