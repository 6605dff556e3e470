//! Ids and hashes in columns of bytes.

use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::turn::ContentHash;

use crate::damage::{Result, damaged};

/// The id of a turn.
pub fn to_turn_id(bytes: &[u8]) -> Result<TurnId> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("an id is not 16 bytes"))?;
    Ok(TurnId::from_bytes(bytes))
}

/// The id of a batch.
pub fn to_batch_id(bytes: &[u8]) -> Result<BatchId> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("a batch id is not 16 bytes"))?;
    Ok(BatchId::from_bytes(bytes))
}

/// The hash of a turn or a payload.
pub fn to_hash(bytes: &[u8]) -> Result<ContentHash> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("a hash is not 32 bytes"))?;
    Ok(ContentHash(bytes))
}
