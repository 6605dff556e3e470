//! Hashes that are compared inside one assembly and kept nowhere.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Equal values have equal hashes.
pub(crate) fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
