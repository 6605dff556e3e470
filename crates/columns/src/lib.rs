//! Compact columns that the SQL adapters store, and the rules of the ledger that need no database: what must be the same on
//! every engine is written once. Pure: values in, bytes out, and back.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod attaching;
mod damage;
mod derivations;
mod ids;
mod injections;
mod keys;
mod pages;
mod passages;
mod postings;
mod reader;
mod receipts;
mod settings;
mod slots;
mod switching;
mod token_vectors;
mod turns;
mod verdict;

pub use access::{
    audit_kind, bounds, from_key_token, grant, optional_json, patterns, tenants, to_key_id,
    to_key_token,
};
pub use attaching::{AttachedVectors, StoredTexts, vector_parts};
pub use damage::{Damage, Result};
pub use derivations::{
    asked_keys, derived_change, from_kind, from_status, lookup_keys, rest_on, status_numbers,
    to_status,
};
pub use ids::{
    to_batch_id, to_change_id, to_conflict_id, to_derivation_id, to_entity_id, to_hash, to_secret,
    to_turn_id,
};
pub use injections::{from_injection_token, to_block_hash, to_injection_id, to_injection_token};
pub use keys::{embedding_key, label, space_key, term_key};
pub use pages::{GrowingPage, PAGE_BYTES, cut, from_token, page, to_token};
pub use passages::{
    from_components, from_floats, from_lengths, from_set, from_terms, runs, to_components,
    to_floats, to_lengths, to_set, to_terms,
};
pub use postings::{block, put_posting, to_postings, without};
pub use receipts::{Receipts, forget, forgotten, from_receipts, settle, stored, to_receipts};
pub use settings::{setting_key, setting_space};
pub use slots::{LackingVectors, PlaceRound, VectorSlot, VectorSlots, is_outdated};
pub use switching::{FirstSteps, SwitchState};
pub use token_vectors::{from_token_vectors, to_token_vectors};
pub use turns::{
    day, from_role, from_trust, json, name, some_json, time, to_json, to_role, to_trust,
};
pub use verdict::{Before, Tombstone, Verdict, end_of_session};
