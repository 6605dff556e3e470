//! Hashes that stand in columns for names: short, of one length, and without the words.

use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;

use crate::turns::to_json;

/// What identifies a space in every table: 16 bytes of a hash of tenant and name, so that an erased space leaves no name behind.
pub fn space_key(scope: &Scope) -> Vec<u8> {
    let (tenant, space) = (scope.tenant.as_str(), scope.space.as_str());
    hash_of_pair(tenant, space).as_bytes()[..16].to_vec()
}

/// A label of a turn: the first 8 bytes of a hash of key and value.
pub fn label(key: &str, value: &str) -> i64 {
    number(&hash_of_pair(key, value))
}

/// A term: the first 8 bytes of its hash. Terms may be long, and may hold what a column of text refuses.
pub fn term_key(term: &str) -> i64 {
    number(&blake3::hash(term.as_bytes()))
}

/// An embedding space: the first 8 bytes of a hash of all that makes it.
pub fn embedding_key(space: &EmbeddingSpace) -> i64 {
    number(&blake3::hash(to_json(space).as_bytes()))
}

/// The length of the first keeps `ab`+`c` and `a`+`bc` apart.
fn hash_of_pair(first: &str, second: &str) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(first.len() as u64).to_be_bytes());
    hasher.update(first.as_bytes());
    hasher.update(second.as_bytes());
    hasher.finalize()
}

fn number(hash: &blake3::Hash) -> i64 {
    i64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash is 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Databases hold them: another value would lose what is stored.
    #[test]
    fn keys_stay_what_they_are() {
        let key = space_key(&memfleet_ports::conformance::samples::home());
        assert_eq!((key.len(), key[0]), (16, 201));
        assert_eq!(label("k", "v"), -170_760_487_461_993_140);
        assert_eq!(term_key("lisbon"), -4_500_592_041_953_100_927);
        assert_ne!(label("kv", ""), label("k", "v"));
    }
}
