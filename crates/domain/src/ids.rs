//! Names and ids. Names that callers choose (tenant, space, session, external id, …) are bounded text; ids that memfleet
//! derives are UUIDs, so that a retry names the same thing.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing but white space.
    #[error("must not be empty")]
    Empty,
    /// More than `limit` bytes of UTF-8.
    #[error("is {bytes} bytes of UTF-8; at most {limit} are allowed")]
    TooLong {
        /// What was given.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A control character, which would break logs and rendered prompts.
    #[error("must not contain control characters (found U+{:04X})", u32::from(*.0))]
    Control(char),
}

/// The text is not an id that memfleet gave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not an id such as `018f2b6c-7a35-8d6e-9c41-5b0a7d3e2f10`, as memfleet gives them out")]
pub struct IdError;

fn checked(text: impl Into<String>, limit: usize) -> Result<String, NameError> {
    let text = text.into();
    if text.trim().is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > limit {
        return Err(NameError::TooLong {
            bytes: text.len(),
            limit,
        });
    }
    match text.chars().find(|character| character.is_control()) {
        Some(character) => Err(NameError::Control(character)),
        None => Ok(text),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $limit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The longest allowed name in bytes of UTF-8.
            pub const LIMIT: usize = $limit;

            /// Checks and takes the name.
            pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
                checked(text, Self::LIMIT).map(Self)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A customer of the installation; comes from the credential only.
    TenantId, 128
);
name!(
    /// One user's, agent's or team's memory: the unit of retrieval. Unique within a tenant.
    SpaceId, 256
);
name!(
    /// One conversation inside a space.
    SessionId, 256
);
name!(
    /// Who spoke, as the prompt should show it.
    Speaker, 128
);
name!(
    /// The caller's own id of a turn; unique within its session.
    ExternalId, 256
);
name!(
    /// The caller's name for one `Remember`: the same key gives the same result.
    IdempotencyKey, 256
);
name!(
    /// A document of a tenant's settings; unique among those of its kind.
    SettingName, 128
);
name!(
    /// One exchange inside a session: a user's message with all calls of models and tools until its answer.
    ExchangeName, 256
);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The id with these bytes, as a store gives it back.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The 16 bytes of the id.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Uuid::parse_str(text).map(Self).map_err(|_| IdError)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

id!(
    /// A turn: a `UUIDv8` derived from what identifies it (see [`TurnId::of_external`]).
    TurnId
);
id!(
    /// One accepted `Remember`; also the consistency token of its receipt.
    BatchId
);
id!(
    /// An API key, in listings and logs; it says nothing of the secret.
    KeyId
);

id!(
    /// A derived memory (a fact, an episode, …) through all its versions.
    DerivationId
);
id!(
    /// Two facts that cannot both hold, in whatever order they are named.
    ConflictId
);
id!(
    /// One change of derived memory, as `History` lists it and `Revert` undoes it.
    ChangeId
);

id!(
    /// Somebody or something that facts are about.
    EntityId
);

id!(
    /// What entered one prompt, in the record of it.
    InjectionId
);

impl EntityId {
    /// The entity of this key, in whatever space.
    pub fn of_key(key: &str) -> Self {
        Self(derive(&[b"entity", key.as_bytes()]))
    }
}

impl DerivationId {
    /// The fact with this claim in this turn, whoever extracts it.
    pub fn of_fact(turn: TurnId, claim: &crate::fact::Claim, negated: bool) -> Self {
        Self(derive(&[
            b"fact",
            turn.as_bytes(),
            claim.subject.as_bytes(),
            claim.attribute.as_bytes(),
            claim.value.as_bytes(),
            &[u8::from(negated)],
        ]))
    }

    /// The episode that this turn opens.
    pub fn of_episode(opening: TurnId) -> Self {
        Self(derive(&[b"episode", opening.as_bytes()]))
    }

    /// What a caller says of these two entities, in whatever order they are named.
    pub fn of_identity(one: EntityId, other: EntityId) -> Self {
        let (first, second) = (one.min(other), one.max(other));
        Self(derive(&[b"identity", first.as_bytes(), second.as_bytes()]))
    }

    /// The fragment of a narrative that this turn opens.
    pub fn of_fragment(opening: TurnId) -> Self {
        Self::of_opening(b"fragment", opening, 0)
    }

    /// The n-th fragment, from 0, that this turn opens: what is said of several matters at once opens one of each.
    pub fn of_fragment_among(opening: TurnId, nth: u32) -> Self {
        Self::of_opening(b"fragment", opening, nth)
    }

    /// The narrative whose first fragment this turn opens.
    pub fn of_narrative(opening: TurnId) -> Self {
        Self::of_opening(b"narrative", opening, 0)
    }

    /// The n-th narrative, from 0, whose first fragment this turn opens.
    pub fn of_narrative_among(opening: TurnId, nth: u32) -> Self {
        Self::of_opening(b"narrative", opening, nth)
    }

    fn of_opening(what: &[u8], opening: TurnId, nth: u32) -> Self {
        let nth = nth.to_be_bytes();
        let parts = [what, opening.as_bytes(), &nth];
        // The first is called by its turn alone, as it was before there were others.
        let parts = if nth == [0; 4] { &parts[..2] } else { &parts };
        Self(derive(parts))
    }
}

impl ConflictId {
    /// The conflict between two facts.
    pub fn of(one: DerivationId, other: DerivationId) -> Self {
        let (first, second) = if one < other {
            (one, other)
        } else {
            (other, one)
        };
        Self(derive(&[b"conflict", first.as_bytes(), second.as_bytes()]))
    }
}

impl ChangeId {
    /// The change that is identified by these parts: made twice, it is the same change.
    pub fn of(kind: &str, parts: &[&[u8]]) -> Self {
        let parts = [b"change", kind.as_bytes()]
            .into_iter()
            .chain(parts.iter().copied());
        Self(derive(&parts.collect::<Vec<_>>()))
    }
}

impl KeyId {
    /// The id of the key with this secret: made twice, it is the same key.
    pub fn of(hash: &crate::access::KeyHash) -> Self {
        Self(derive(&[b"api key", hash.as_bytes()]))
    }
}

impl TurnId {
    /// The id of a turn that its caller named: the same external id in the same session is the same turn.
    pub fn of_external(scope: &crate::Scope, session: &SessionId, external: &ExternalId) -> Self {
        Self(derive(&[
            b"external",
            scope.tenant.as_str().as_bytes(),
            scope.space.as_str().as_bytes(),
            session.as_str().as_bytes(),
            external.as_str().as_bytes(),
        ]))
    }

    /// The id of the `ordinal`-th turn of a batch: a retry with the same idempotency key names the same turns.
    pub fn of_batch(batch: BatchId, session: &SessionId, ordinal: u32) -> Self {
        Self(derive(&[
            b"batch",
            batch.as_bytes(),
            session.as_str().as_bytes(),
            &ordinal.to_be_bytes(),
        ]))
    }
}

impl BatchId {
    /// The id of the batch with this idempotency key in this space.
    pub fn of_key(scope: &crate::Scope, key: &IdempotencyKey) -> Self {
        Self(derive(&[
            b"key",
            scope.tenant.as_str().as_bytes(),
            scope.space.as_str().as_bytes(),
            key.as_str().as_bytes(),
        ]))
    }

    /// The id of a batch whose turns all have ids of their own: sent again, it is the same batch.
    pub fn of_turns(turns: &[TurnId]) -> Self {
        let parts = turns.iter().map(|turn| &turn.as_bytes()[..]);
        Self(derive(
            &std::iter::once(&b"turns"[..])
                .chain(parts)
                .collect::<Vec<_>>(),
        ))
    }
}

/// A `UUIDv8` from BLAKE3 over the length-prefixed parts (the prefix keeps `ab`+`c` and `a`+`bc` apart).
fn derive(parts: &[&[u8]]) -> Uuid {
    let mut hasher =
        blake3::Hasher::new_derive_key("memfleet 2026-11 identity of turns and batches");
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;

    fn scope() -> Scope {
        Scope {
            tenant: TenantId::new("acme").unwrap(),
            space: SpaceId::new("ada").unwrap(),
        }
    }

    #[test]
    fn names_refuse_what_would_break_a_log_or_a_prompt() {
        assert_eq!(SpaceId::new("  "), Err(NameError::Empty));
        assert_eq!(SpaceId::new("a\nb"), Err(NameError::Control('\n')));
        assert_eq!(
            Speaker::new("x".repeat(129)),
            Err(NameError::TooLong {
                bytes: 129,
                limit: 128
            })
        );
        assert_eq!(SpaceId::new("アダ").unwrap().as_str(), "アダ");
    }

    #[test]
    fn the_same_external_id_is_the_same_turn_and_another_session_is_not() {
        let [first, second] = ["s1", "s2"].map(|name| SessionId::new(name).unwrap());
        let external = ExternalId::new("m-1").unwrap();
        assert_eq!(
            TurnId::of_external(&scope(), &first, &external),
            TurnId::of_external(&scope(), &first, &external)
        );
        assert_ne!(
            TurnId::of_external(&scope(), &first, &external),
            TurnId::of_external(&scope(), &second, &external)
        );
    }

    #[test]
    fn ids_are_version_8_uuids_and_read_back_from_text() {
        let id = BatchId::of_key(&scope(), &IdempotencyKey::new("k").unwrap());
        assert_eq!(id.0.get_version_num(), 8);
        assert_eq!(id.to_string().parse::<BatchId>().unwrap(), id);
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(derive(&[b"ab", b"c"]), derive(&[b"a", b"bc"]));
    }
}
