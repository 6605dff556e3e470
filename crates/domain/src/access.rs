//! What a caller may do: rights, the spaces they hold for, and how much of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{NameError, SpaceId};

/// One thing that a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// See memory: whatever changes nothing.
    Read,
    /// Change memory: remember, import, forget, settings of spaces, replays.
    Write,
    /// Manage the tenant's keys, see its usage and its audit log, set and lift legal holds.
    Admin,
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Right {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let right = Self::ALL.into_iter().find(|right| right.name() == text);
        right.ok_or_else(|| "must be `read`, `write` or `admin`".to_owned())
    }
}

/// A set of rights; none includes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights(u8);

impl Rights {
    /// Every right.
    pub const ALL: Self = Self(0b111);

    /// The set with these numbers, as [`Self::bits`] gave them; others are left out.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The set as a number that stays what it is.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether the right is in the set.
    pub fn contains(self, right: Right) -> bool {
        self.0 & bit(right) != 0
    }

    /// Whether nothing is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The rights in the set.
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL
            .into_iter()
            .filter(move |right| self.contains(*right))
    }
}

fn bit(right: Right) -> u8 {
    match right {
        Right::Read => 1,
        Right::Write => 2,
        Right::Admin => 4,
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        Self(rights.into_iter().fold(0, |bits, right| bits | bit(right)))
    }
}

/// One space by its name, or with `*` at the end every space whose name begins so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpacePattern(SpaceId);

impl SpacePattern {
    /// Checks and takes the pattern.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        SpaceId::new(text).map(Self)
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    fn matches(&self, space: &str) -> bool {
        match self.as_str().strip_suffix('*') {
            Some(prefix) => space.starts_with(prefix),
            None => space == self.as_str(),
        }
    }
}

impl TryFrom<String> for SpacePattern {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<SpacePattern> for String {
    fn from(pattern: SpacePattern) -> String {
        pattern.0.into()
    }
}

/// What a credential allows within its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// What may be done …
    pub rights: Rights,
    /// … in which spaces; all when there is none.
    pub spaces: Vec<SpacePattern>,
}

impl Grant {
    /// Everything, everywhere.
    pub const ALL: Self = Self {
        rights: Rights::ALL,
        spaces: Vec::new(),
    };

    /// Whether it holds for every space.
    pub fn is_everywhere(&self) -> bool {
        self.spaces.is_empty()
    }

    /// Whether it holds for this space.
    pub fn reaches(&self, space: &str) -> bool {
        self.is_everywhere() || self.spaces.iter().any(|pattern| pattern.matches(space))
    }
}

/// How much a tenant may use; absent means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Calls a minute, of all its callers together, at each gateway.
    pub calls_per_minute: Option<u32>,
    /// Turns stored and waiting to be stored.
    pub turns: Option<u64>,
    /// Spaces.
    pub spaces: Option<u64>,
}

/// How much a tenant has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Spaces.
    pub spaces: u64,
    /// Turns stored.
    pub turns: u64,
    /// Bytes of their texts.
    pub bytes: u64,
    /// Exchanges under way that gateways keep.
    pub exchanges: u64,
    /// Injections that are kept.
    pub injections: u64,
}

/// BLAKE3 of a secret. Secrets are long and random, so a fast hash is right: nobody can try them out.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// The hash of a secret.
    pub fn of(secret: &str) -> Self {
        Self(blake3::hash(secret.as_bytes()).into())
    }

    /// The hash with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether it is the other, in a time that says nothing of either.
    pub fn is(&self, other: &Self) -> bool {
        blake3::Hash::from_bytes(self.0) == blake3::Hash::from_bytes(other.0)
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyHash(…)")
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl FromStr for KeyHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hash = blake3::Hash::from_hex(text.to_ascii_lowercase());
        hash.map(|hash| Self(hash.into()))
            .map_err(|_| "must be the BLAKE3 hash of a key, 64 hexadecimal digits".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(patterns: &[&str]) -> Grant {
        let patterns = patterns.iter().map(|text| SpacePattern::new(*text));
        Grant {
            rights: Rights::ALL,
            spaces: patterns.collect::<Result<_, _>>().unwrap(),
        }
    }

    #[test]
    fn a_grant_reaches_names_and_beginnings_of_names() {
        let some = grant(&["ada", "support/*"]);
        for (space, reached) in [
            ("ada", true),
            ("ada2", false),
            ("support/1", true),
            ("support", false),
        ] {
            assert_eq!(some.reaches(space), reached, "{space}");
        }
        assert!(Grant::ALL.reaches("anything"));
        assert!(grant(&["*"]).reaches("anything"));
    }

    #[test]
    fn rights_read_back_from_their_bits_and_none_includes_another() {
        for right in Right::ALL {
            let alone = Rights::from_iter([right]);
            assert_eq!(Rights::from_bits(alone.bits()), alone);
            assert_eq!(alone.iter().collect::<Vec<_>>(), [right]);
            assert_eq!(right.name().parse(), Ok(right));
        }
        assert_eq!(Rights::from_iter(Right::ALL), Rights::ALL);
    }

    #[test]
    fn a_hash_reads_back_from_its_text_and_is_not_shown_by_accident() {
        let hash = KeyHash::of("first");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(hash.to_string().to_uppercase().parse(), Ok(hash));
        assert!("first".parse::<KeyHash>().is_err());
        assert!(!format!("{hash:?}").contains(&hash.to_string()));
    }
}
