//! Where a term is, in blocks of passages: three bytes each, so that what is stored later is appended and what is forgotten cut out.

use crate::damage::{Result, damaged};

/// Passages of a block.
const BLOCK: u32 = 2_048;
/// Bytes of a passage: its place in the block, and how often the term is in it.
const ENTRY: usize = 3;

/// The block of a passage.
pub fn block(passage: u32) -> u32 {
    passage / BLOCK
}

/// Appends a passage to its block. Counts end at 255.
pub fn put_posting(bytes: &mut Vec<u8>, passage: u32, count: u16) {
    let place = (passage % BLOCK) as u16;
    bytes.extend(place.to_le_bytes());
    bytes.push(u8::try_from(count).unwrap_or(u8::MAX));
}

/// The passages of a block.
pub fn to_postings(block: u32, bytes: &[u8]) -> Result<impl Iterator<Item = (u32, u16)>> {
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    if !rest.is_empty() {
        return Err(damaged("a block of postings ends too early"));
    }
    let entry = move |&[low, high, count]: &[u8; ENTRY]| {
        let place = u32::from(u16::from_le_bytes([low, high]));
        (block * BLOCK + place, u16::from(count))
    };
    Ok(entries.iter().map(entry))
}

/// The block without some passages.
pub fn without(block: u32, bytes: &[u8], gone: impl Fn(u32) -> bool) -> Result<Vec<u8>> {
    let mut left = Vec::with_capacity(bytes.len());
    for (passage, count) in to_postings(block, bytes)? {
        if !gone(passage) {
            put_posting(&mut left, passage, count);
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_are_appended_and_cut_out() {
        let first = 5 * BLOCK + 7;
        let mut bytes = Vec::new();
        put_posting(&mut bytes, first, 2);
        put_posting(&mut bytes, first + 1, 999);
        let all: Vec<_> = to_postings(block(first), &bytes).unwrap().collect();
        assert_eq!(all, [(first, 2), (first + 1, 255)]);
        let left = without(5, &bytes, |passage| passage == first).unwrap();
        assert_eq!(left, bytes[ENTRY..]);
        assert!(to_postings(0, &bytes[1..]).is_err());
    }
}
