//! AMA's definitions, clause by clause, named after the paper's sections. Those that need a store are in `tests/agents`.
#![allow(clippy::unwrap_used)]

mod constructing;
mod retrieving;
