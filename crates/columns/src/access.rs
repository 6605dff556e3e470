//! Columns of keys and of the audit log.

use memfleet_domain::access::{Grant, Rights, SpacePattern};
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_ports::audit::AuditKind;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::StoreError;

use crate::damage::{Result, damaged};
use crate::pages::cut;
use crate::turns::{json, name, to_json};

/// The id of a key.
pub fn to_key_id(bytes: &[u8]) -> Result<KeyId> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("the id of a key is not 16 bytes"))?;
    Ok(KeyId::from_bytes(bytes))
}

/// What a key allows: the bits of its rights, its spaces as JSON.
pub fn grant(rights: i64, spaces: &str) -> Result<Grant> {
    Ok(Grant {
        rights: Rights::from_bits(rights as u8),
        spaces: json::<Vec<SpacePattern>>(spaces)?,
    })
}

/// The spaces of a key as JSON.
pub fn patterns(grant: &Grant) -> String {
    to_json(&grant.spaces)
}

/// The kind of a record.
pub fn audit_kind(name: &str) -> Result<AuditKind> {
    name.parse()
        .map_err(|_| damaged("a kind of record that nobody knows"))
}

/// A JSON column that is absent where the value is empty.
pub fn optional_json<T: serde::de::DeserializeOwned + Default>(text: Option<&str>) -> Result<T> {
    Ok(text.map(json).transpose()?.unwrap_or_default())
}

/// The ends of a range of time as columns hold instants, an open end as one that nothing lies beyond.
pub fn bounds(range: &TimeRange) -> [i64; 2] {
    let column =
        |instant: Option<Timestamp>, open| instant.map_or(open, |at| at.timestamp_micros());
    [column(range.start, i64::MIN), column(range.end, i64::MAX)]
}

/// A page of tenants by name.
pub fn tenants(names: Vec<String>, limit: u32) -> Result<Page<TenantId>> {
    let tenants = names.into_iter().map(|text| name(TenantId::new(text)));
    let tenants = tenants.collect::<Result<Vec<_>>>()?;
    Ok(cut(tenants, limit, |tenant| PageToken(tenant.to_string())))
}

/// The place of a key in a listing by age.
pub fn to_key_token(created_at: Timestamp, id: KeyId) -> PageToken {
    PageToken(format!("{}.{id}", created_at.timestamp_micros()))
}

/// The place that a token names; without one, before the first.
pub fn from_key_token(token: Option<&PageToken>) -> std::result::Result<(i64, KeyId), StoreError> {
    let Some(PageToken(text)) = token else {
        return Ok((i64::MIN, KeyId::from_bytes([0; 16])));
    };
    let place = text
        .split_once('.')
        .and_then(|(micros, id)| Some((micros.parse().ok()?, id.parse().ok()?)));
    place.ok_or(StoreError::PageToken)
}
