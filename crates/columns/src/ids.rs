//! Ids and hashes in columns of bytes.

use memfleet_domain::ids::{BatchId, ChangeId, ConflictId, DerivationId, EntityId, TurnId};
use memfleet_domain::turn::ContentHash;
use memfleet_ports::exchanges::Secret;

use crate::damage::{Result, damaged};

/// The id of a turn.
pub fn to_turn_id(bytes: &[u8]) -> Result<TurnId> {
    sixteen(bytes).map(TurnId::from_bytes)
}

/// The id of a batch.
pub fn to_batch_id(bytes: &[u8]) -> Result<BatchId> {
    sixteen(bytes).map(BatchId::from_bytes)
}

/// The id of a derivation.
pub fn to_derivation_id(bytes: &[u8]) -> Result<DerivationId> {
    sixteen(bytes).map(DerivationId::from_bytes)
}

/// The id of a change.
pub fn to_change_id(bytes: &[u8]) -> Result<ChangeId> {
    sixteen(bytes).map(ChangeId::from_bytes)
}

/// The id of a conflict.
pub fn to_conflict_id(bytes: &[u8]) -> Result<ConflictId> {
    sixteen(bytes).map(ConflictId::from_bytes)
}

/// The id of an entity.
pub fn to_entity_id(bytes: &[u8]) -> Result<EntityId> {
    sixteen(bytes).map(EntityId::from_bytes)
}

fn sixteen(bytes: &[u8]) -> Result<[u8; 16]> {
    bytes
        .try_into()
        .map_err(|_| damaged("an id is not 16 bytes"))
}

/// The key of digests.
pub fn to_secret(bytes: &[u8]) -> Result<Secret> {
    bytes
        .try_into()
        .map_err(|_| damaged("a secret is not 32 bytes"))
}

/// The hash of a turn or a payload.
pub fn to_hash(bytes: &[u8]) -> Result<ContentHash> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("a hash is not 32 bytes"))?;
    Ok(ContentHash(bytes))
}
