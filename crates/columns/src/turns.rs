//! Fields of a turn: names, times, JSON, and the numbers of roles and trust labels.

use chrono::{DateTime, NaiveDate};
use memfleet_domain::ids::NameError;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{Role, Trust};

use crate::damage::{Result, damaged};

/// A stored name; names are checked before they come here, so a bad one is damage.
pub fn name<T>(name: std::result::Result<T, NameError>) -> Result<T> {
    name.map_err(|cause| damaged(format!("a stored name {cause}")))
}

/// A JSON column.
pub fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|cause| damaged(format!("a JSON column: {cause}")))
}

/// The text of a JSON column.
pub fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("domain types have text keys and no failing serialiser")
}

/// A time column.
pub fn time(micros: i64) -> Result<Timestamp> {
    DateTime::from_timestamp_micros(micros).ok_or_else(|| damaged(format!("{micros} is no time")))
}

/// A day column: days of the common era.
pub fn day(number: i32) -> Result<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(number)
        .ok_or_else(|| damaged(format!("{number} is no day")))
}

/// The number of a role in its column.
pub fn from_role(role: Role) -> i64 {
    match role {
        Role::User => 0,
        Role::Assistant => 1,
        Role::System => 2,
        Role::Tool => 3,
    }
}

/// The role of a column.
pub fn to_role(number: i64) -> Result<Role> {
    [Role::User, Role::Assistant, Role::System, Role::Tool]
        .into_iter()
        .find(|role| from_role(*role) == number)
        .ok_or_else(|| damaged(format!("{number} is no role")))
}

/// The number of a trust label in its column.
pub fn from_trust(trust: Trust) -> i64 {
    match trust {
        Trust::User => 0,
        Trust::Assistant => 1,
        Trust::Tool => 2,
        Trust::Web => 3,
    }
}

/// The trust label of a column.
pub fn to_trust(number: i64) -> Result<Trust> {
    [Trust::User, Trust::Assistant, Trust::Tool, Trust::Web]
        .into_iter()
        .find(|trust| from_trust(*trust) == number)
        .ok_or_else(|| damaged(format!("{number} is no trust label")))
}

/// The text of a JSON column that is absent where the value is empty.
pub fn some_json<T: serde::Serialize>(value: &T, is_empty: bool) -> Option<String> {
    (!is_empty).then(|| to_json(value))
}
