//! Compact columns: LEB128 numbers, little-endian floats, int8 components as bytes.

use memfleet_domain::embedding::TokenVectors;
use memfleet_domain::ids::TurnId;
use memfleet_domain::ingestion::{TurnReceipt, TurnState};
use memfleet_domain::turn::ContentHash;
use memfleet_ports::ledger::TermCount;

use crate::failure::{Outcome, damaged};
use crate::rows::to_json;

/// Reads what the writers below wrote.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Outcome<&'a [u8]> {
        let (bytes, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| damaged("a column ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn number(&mut self) -> Outcome<u32> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.bytes(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| damaged("a number is too large"));
            }
        }
        Err(damaged("a number does not end"))
    }

    fn text(&mut self) -> Outcome<String> {
        let length = self.number()? as usize;
        let bytes = self.bytes(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| damaged("a text is not UTF-8"))
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u32);
    bytes.extend_from_slice(text.as_bytes());
}

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
pub fn to_terms(bytes: &[u8]) -> Outcome<Vec<TermCount>> {
    let mut reader = Reader(bytes);
    let mut terms = Vec::new();
    while !reader.0.is_empty() {
        let term = reader.text()?;
        let count = u16::try_from(reader.number()?).map_err(|_| damaged("a count is too large"))?;
        terms.push((term, count));
    }
    Ok(terms)
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
pub fn to_set(bytes: &[u8]) -> Outcome<Vec<u32>> {
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
pub fn to_floats(bytes: &[u8]) -> Outcome<Vec<f32>> {
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

/// Token vectors; they know their own length, so that many of them can be read from one string of bytes.
pub fn from_token_vectors(vectors: &TokenVectors) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(vectors.values.len() + vectors.pieces.len() * 2 + 8);
    put(&mut bytes, vectors.dimensions as u32);
    put(&mut bytes, vectors.pieces.len() as u32);
    for &piece in &vectors.pieces {
        put(&mut bytes, piece);
    }
    bytes.extend(
        vectors
            .values
            .iter()
            .map(|component| component.cast_unsigned()),
    );
    bytes
}

/// As many token vectors as there are.
pub fn to_token_vectors(bytes: &[u8]) -> Outcome<Vec<TokenVectors>> {
    let mut reader = Reader(bytes);
    let mut vectors = Vec::new();
    while !reader.0.is_empty() {
        let dimensions = reader.number()? as usize;
        let count = reader.number()? as usize;
        let pieces = (0..count)
            .map(|_| reader.number())
            .collect::<Outcome<_>>()?;
        let values = to_components(reader.bytes(count.saturating_mul(dimensions))?);
        vectors.push(TokenVectors {
            dimensions,
            pieces,
            values,
        });
    }
    Ok(vectors)
}

/// Receipts of a batch.
pub fn from_receipts(receipts: &[TurnReceipt]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(receipts.len() * 18);
    for receipt in receipts {
        bytes.extend_from_slice(receipt.id.as_bytes());
        bytes.push(match receipt.state {
            TurnState::Queued => 0,
            TurnState::Stored => 1,
            TurnState::DeadLettered => 2,
            TurnState::Forgotten => 3,
        });
        put_text(&mut bytes, receipt.reason.as_deref().unwrap_or_default());
    }
    bytes
}

/// Receipts of a batch.
pub fn to_receipts(bytes: &[u8]) -> Outcome<Vec<TurnReceipt>> {
    let mut reader = Reader(bytes);
    let mut receipts = Vec::new();
    while !reader.0.is_empty() {
        let id = to_id(reader.bytes(16)?)?;
        let state = match reader.bytes(1)?[0] {
            0 => TurnState::Queued,
            1 => TurnState::Stored,
            2 => TurnState::DeadLettered,
            3 => TurnState::Forgotten,
            other => return Err(damaged(format!("{other} is no state of a turn"))),
        };
        let reason = Some(reader.text()?).filter(|reason| !reason.is_empty());
        receipts.push(TurnReceipt { id, state, reason });
    }
    Ok(receipts)
}

/// The id in a column.
pub fn to_id(bytes: &[u8]) -> Outcome<TurnId> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("an id is not 16 bytes"))?;
    Ok(TurnId::from_bytes(bytes))
}

/// The hash in a column.
pub fn to_hash(bytes: &[u8]) -> Outcome<ContentHash> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("a hash is not 32 bytes"))?;
    Ok(ContentHash(bytes))
}

/// Ids as one JSON parameter, for `unhex(value, '-') … json_each(?)`: the statement stays the same for any number of them.
pub fn id_list<'a>(ids: impl IntoIterator<Item = &'a TurnId>) -> String {
    to_json(&ids.into_iter().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_read_back_as_written(
            terms in prop::collection::vec((".{0,40}", any::<u16>()), 0..20),
            numbers in prop::collection::vec(any::<u32>(), 0..50),
            floats in prop::collection::vec(any::<f32>(), 0..20),
            components in prop::collection::vec(any::<i8>(), 0..200),
        ) {
            prop_assert_eq!(to_terms(&from_terms(&terms)).unwrap(), terms);
            prop_assert_eq!(to_components(&from_components(&components)), components);
            let bits = |floats: &[f32]| floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&to_floats(&from_floats(&floats)).unwrap()), bits(&floats));
            let tokens = TokenVectors { dimensions: 3, values: numbers.iter().flat_map(|n| [*n as i8, 1, -1]).collect(), pieces: numbers.clone() };
            let twice = [from_token_vectors(&tokens), from_token_vectors(&tokens)].concat();
            prop_assert_eq!(to_token_vectors(&twice).unwrap(), [tokens.clone(), tokens]);
            let distinct: Vec<u32> = numbers.iter().copied().collect::<std::collections::BTreeSet<_>>().into_iter().collect();
            prop_assert_eq!(to_set(&from_set(&numbers)).unwrap(), distinct);
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (to_terms(&bytes), to_set(&bytes), to_receipts(&bytes), to_floats(&bytes), to_token_vectors(&bytes));
        }
    }
}
