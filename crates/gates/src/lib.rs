//! Gates: whether memory is worth asking for, decided before it is asked (AMP items 42–58).
//!
//! Gate 1 ([`rules`]) reads the words of an utterance and skips what surely has no question in it: nothing, pleasantries, commands of the
//! client, bare code. In a message with a log or a file in it [`asked`] finds the question. Gate 2
//! ([`routing`]) compares the utterance's vector with labelled examples. Both skip only when sure:
//! a skip that was wrong costs an answer, a search that was idle some milliseconds. What they
//! decide and why is in the words of [`memfleet_domain::assembly`]. Pure: no store, no model, no
//! clock; no words become a filter of a search (item 49). docs/gates.md has the formats of the data
//! and the figures.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod asked;
pub mod labelled;
pub mod routing;
pub mod rules;
