//! Short hashes that name texts.

/// Digits of one.
pub(crate) const LENGTH: usize = 32;

/// 128 bits of BLAKE3 over parts, each with its length before it, as lower-case hexadecimal digits.
pub(crate) fn of(purpose: &str, parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(purpose);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex()[..LENGTH].to_owned()
}
