//! Columns of injections.

use memfleet_domain::ids::InjectionId;
use memfleet_domain::time::Timestamp;
use memfleet_ports::ledger::PageToken;
use memfleet_ports::store::StoreError;

use crate::damage::{Result, damaged};

/// The id of an injection.
pub fn to_injection_id(bytes: &[u8]) -> Result<InjectionId> {
    let bytes = bytes.try_into();
    let damage = |_| damaged("the id of an injection is not 16 bytes");
    Ok(InjectionId::from_bytes(bytes.map_err(damage)?))
}

/// The hash of a block.
pub fn to_block_hash(bytes: &[u8]) -> Result<[u8; 32]> {
    let hash = bytes.try_into();
    hash.map_err(|_| damaged("the hash of a block is not 32 bytes"))
}

/// The place of an injection in a listing by time.
pub fn to_injection_token(at: Timestamp, id: InjectionId) -> PageToken {
    PageToken(format!("{}.{id}", at.timestamp_micros()))
}

/// The place that a token names; without one, after the newest.
pub fn from_injection_token(
    token: Option<&PageToken>,
) -> std::result::Result<(i64, InjectionId), StoreError> {
    let Some(PageToken(text)) = token else {
        return Ok((i64::MAX, InjectionId::from_bytes([u8::MAX; 16])));
    };
    let place = text
        .split_once('.')
        .and_then(|(micros, id)| Some((micros.parse().ok()?, id.parse().ok()?)));
    place.ok_or(StoreError::PageToken)
}
