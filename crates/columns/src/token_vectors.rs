//! Token vectors as one string of bytes.

use memfleet_domain::embedding::TokenVectors;

use crate::damage::Result;
use crate::passages::to_components;
use crate::reader::{Reader, put};

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
pub fn to_token_vectors(bytes: &[u8]) -> Result<Vec<TokenVectors>> {
    let mut reader = Reader(bytes);
    let mut vectors = Vec::new();
    while !reader.0.is_empty() {
        let dimensions = reader.number()? as usize;
        let count = reader.number()? as usize;
        let pieces = (0..count).map(|_| reader.number()).collect::<Result<_>>()?;
        let values = to_components(reader.bytes(count.saturating_mul(dimensions))?);
        vectors.push(TokenVectors {
            dimensions,
            pieces,
            values,
        });
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn many_read_back_from_one_string(pieces in prop::collection::vec(any::<u32>(), 0..50)) {
            let values = pieces.iter().flat_map(|piece| [*piece as i8, 1, -1]).collect();
            let vectors = TokenVectors { dimensions: 3, values, pieces };
            let twice = [from_token_vectors(&vectors), from_token_vectors(&vectors)].concat();
            prop_assert_eq!(to_token_vectors(&twice).unwrap(), [vectors.clone(), vectors]);
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = to_token_vectors(&bytes);
        }
    }
}
