//! What a passage is made of: terms, features, word pieces, components of its vector; and where passages lie side by side.

use memfleet_ports::ledger::TermCount;

use crate::damage::{Result, damaged};
use crate::reader::{Reader, put, put_text};

/// Terms and counts.
pub fn from_terms(terms: &[TermCount]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(terms.len() * 8);
    for (term, count) in terms {
        put_text(&mut bytes, term);
        put(&mut bytes, u32::from(*count));
    }
    bytes
}

/// Terms and counts.
pub fn to_terms(bytes: &[u8]) -> Result<Vec<TermCount>> {
    let mut reader = Reader(bytes);
    let mut terms = Vec::new();
    while !reader.0.is_empty() {
        let term = reader.text()?;
        let count = u16::try_from(reader.number()?).map_err(|_| damaged("a count is too large"))?;
        terms.push((term, count));
    }
    Ok(terms)
}

/// Of each passage of a turn, the bytes of its text and its words.
pub fn from_lengths(lengths: impl Iterator<Item = (u32, u32)>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4);
    for (length, words) in lengths {
        put(&mut bytes, length);
        put(&mut bytes, words);
    }
    bytes
}

/// Of each passage of a turn, the bytes of its text and its words.
pub fn to_lengths(bytes: &[u8]) -> Result<Vec<(u32, u32)>> {
    let mut reader = Reader(bytes);
    let mut lengths = Vec::with_capacity(1);
    while !reader.0.is_empty() {
        lengths.push((reader.number()?, reader.number()?));
    }
    Ok(lengths)
}

/// The distinct numbers, ascending, as differences.
pub fn from_set(numbers: &[u32]) -> Vec<u8> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut before = 0;
    for number in &mut sorted {
        (*number, before) = (*number - before, *number);
    }
    let mut bytes = Vec::with_capacity(sorted.len() * 2);
    for number in sorted {
        put(&mut bytes, number);
    }
    bytes
}

/// The distinct numbers, ascending.
pub fn to_set(bytes: &[u8]) -> Result<Vec<u32>> {
    let mut reader = Reader(bytes);
    let mut numbers = Vec::with_capacity(bytes.len() / 2);
    let mut sum = 0_u32;
    while !reader.0.is_empty() {
        sum = sum
            .checked_add(reader.number()?)
            .ok_or_else(|| damaged("a number is too large"))?;
        numbers.push(sum);
    }
    Ok(numbers)
}

/// Features of the prior.
pub fn from_floats(floats: &[f32]) -> Vec<u8> {
    floats
        .iter()
        .flat_map(|float| float.to_le_bytes())
        .collect()
}

/// Features of the prior.
pub fn to_floats(bytes: &[u8]) -> Result<Vec<f32>> {
    let (floats, rest) = bytes.as_chunks::<4>();
    if rest.is_empty() {
        Ok(floats
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect())
    } else {
        Err(damaged("features end too early"))
    }
}

/// Components of a vector.
pub fn from_components(components: &[i8]) -> Vec<u8> {
    components
        .iter()
        .map(|component| component.cast_unsigned())
        .collect()
}

/// Components of a vector.
pub fn to_components(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|byte| byte.cast_signed()).collect()
}

/// Half-open ranges of neighbouring numbers.
pub fn runs(ranges: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = ranges
        .map(|(first, count)| (first, first + count))
        .collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, run| {
        let follows = next.0 <= run.1;
        if follows {
            run.1 = run.1.max(next.1);
        }
        follows
    });
    ranges
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_read_back_as_written(
            terms in prop::collection::vec((".{0,40}", any::<u16>()), 0..20),
            numbers in prop::collection::vec(any::<u32>(), 0..50),
            floats in prop::collection::vec(any::<f32>(), 0..20),
            components in prop::collection::vec(any::<i8>(), 0..200),
            lengths in prop::collection::vec(any::<(u32, u32)>(), 0..5),
        ) {
            prop_assert_eq!(to_terms(&from_terms(&terms)).unwrap(), terms);
            prop_assert_eq!(to_components(&from_components(&components)), components);
            prop_assert_eq!(to_lengths(&from_lengths(lengths.iter().copied())).unwrap(), lengths);
            let bits = |floats: &[f32]| floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&to_floats(&from_floats(&floats)).unwrap()), bits(&floats));
            let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
            prop_assert_eq!(to_set(&from_set(&numbers)).unwrap(), Vec::from_iter(distinct));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (to_terms(&bytes), to_set(&bytes), to_floats(&bytes), to_lengths(&bytes));
        }
    }

    #[test]
    fn neighbouring_ranges_become_one_run() {
        assert_eq!(
            runs([(7, 1), (0, 2), (2, 3), (10, 2), (8, 0)].into_iter()),
            vec![(0, 5), (7, 8), (10, 12)]
        );
    }
}
