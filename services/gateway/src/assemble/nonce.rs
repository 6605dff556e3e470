//! Nonces of blocks: a digest of what was asked and found, keyed with the secret of the tenant. Two requests that ask alike and
//! find alike get equal bytes, so a provider's prompt cache serves a retry. Stored text cannot hold the nonce of a block that it
//! enters: it is part of what the digest is over, and who knows nonces of other blocks learns nothing of this one.

use memfleet_domain::turn::Turn;
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Found;
use uuid::Uuid;

use crate::Gateway;
use crate::digests::Key;

/// Characters of a nonce: every token of the wrapper is paid for.
const LENGTH: usize = 8;

/// Nonce to estimate the cost of a block with before its contents are known.
pub const PLACEHOLDER: &str = "0a1b2c3d";

/// Digest of all that the nonce of a block depends on.
pub struct Contents(blake3::Hasher);

impl Default for Contents {
    fn default() -> Self {
        Self(blake3::Hasher::new())
    }
}

impl Contents {
    /// Adds a list of texts. Lengths go along, so that no other lists make the same bytes.
    #[must_use]
    pub fn with<T: AsRef<str>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        let mut count: u64 = 0;
        for text in texts {
            let text = text.as_ref().as_bytes();
            self.number(text.len() as u64);
            self.0.update(text);
            count += 1;
        }
        self.number(count);
        self.0.update(b"list");
        self
    }

    /// Adds lists in whatever order they come.
    #[must_use]
    pub fn with_all<T: AsRef<str> + Ord>(self, mut lists: Vec<Vec<T>>) -> Self {
        lists.sort_unstable();
        lists.into_iter().fold(self, Self::with)
    }

    /// Adds all that may enter of a search.
    #[must_use]
    pub fn found(self, found: &Found) -> Self {
        let turn = |turn: &Turn| {
            let turn = &turn.accepted;
            vec![
                turn.id.to_string(),
                turn.session.to_string(),
                turn.speaker.to_string(),
                turn.content.searchable_text(),
            ]
        };
        let mut all = Vec::new();
        for hit in &found.hits {
            all.extend(std::iter::once(&hit.turn).chain(&hit.neighbours).map(turn));
            let fact = hit.outdated_fact();
            let said =
                fact.and_then(|fact| Some(vec![fact.id.to_string(), fact.fact()?.text.clone()]));
            all.extend(said);
        }
        self.with_all(all)
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_be_bytes());
    }

    fn keyed(&self, key: Key) -> String {
        let digest = key.digest(&format!("nonce {}", self.0.finalize().to_hex()));
        digest[digest.len() - LENGTH..].to_owned()
    }
}

/// A nonce that no other block has.
fn random() -> String {
    let id = Uuid::now_v7().simple().to_string();
    id[id.len() - LENGTH..].to_owned()
}

/// The nonce of these contents; a random one without a key.
pub fn of(key: Option<Key>, contents: &Contents) -> String {
    key.map_or_else(random, |key| contents.keyed(key))
}

impl Gateway {
    /// The nonce of a block with these contents; a random one where the store does not tell the secret in time.
    pub(crate) async fn nonce(&self, context: &Context, contents: &Contents) -> String {
        of(self.nonce_key(context).await, contents)
    }

    /// The key of nonces; none where the store does not tell the secret in time.
    pub(super) async fn nonce_key(&self, context: &Context) -> Option<Key> {
        match self.known_digest_key(context, None) {
            Some(known) => Some(known),
            None => {
                let key = self.digest_key(context, None);
                context.within("the secret", key).await.ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(lists: &[Vec<String>]) -> Contents {
        let all = lists.iter();
        all.fold(Contents::default(), Contents::with)
    }

    proptest! {
        /// Equal contents under one key only have one nonce, whatever texts say and however they are cut.
        #[test]
        fn amp_108_a_nonce_is_of_its_contents_and_its_key(
            one in prop::collection::vec(prop::collection::vec("[a-c]{0,3}", 0..3), 0..3),
            other in prop::collection::vec(prop::collection::vec("[a-c]{0,3}", 0..3), 0..3),
            key: [u8; 32],
            other_key: [u8; 32],
        ) {
            prop_assume!(key != other_key);
            let (key, other_key) = (Key::new(key), Key::new(other_key));
            let nonce = digest(&one).keyed(key);
            prop_assert_eq!(&digest(&one).keyed(key), &nonce);
            prop_assert_eq!(digest(&other).keyed(key) == nonce, one == other);
            prop_assert_ne!(&digest(&one).keyed(other_key), &nonce);
            prop_assert!(memfleet_assembly::Nonce::new(&nonce).is_some());
        }
    }
}
