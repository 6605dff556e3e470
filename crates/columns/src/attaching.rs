//! Vectors of texts that were stored without any: which of them are written together, and by which
//! changes search indexes learn of them.

use std::collections::HashMap;
use std::ops::Range;

use memfleet_domain::embedding::PassageVectors;
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_ports::ledger::{TextOwner, TextVectors};
use memfleet_ports::store::StoreError;

/// Bytes of vectors that one transaction writes: those of some 40 turns of 35 pieces.
const PART_BYTES: usize = 128 << 10;
/// Texts whose vectors one transaction writes.
const PART_TEXTS: usize = 64;

/// The texts of each transaction, in order: one at least, however large, and else up to 128 KiB of
/// vectors and 64 texts.
pub fn vector_parts(mut texts: &[TextVectors]) -> impl Iterator<Item = &[TextVectors]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |text: &&TextVectors| {
            bytes += text.vectors.iter().map(bytes_of).sum::<usize>();
            bytes <= PART_BYTES
        };
        let count = texts.iter().take(PART_TEXTS).take_while(fits).count();
        let (part, rest) = texts.split_at_checked(count.max(1))?;
        texts = rest;
        Some(part)
    })
}

fn bytes_of(vectors: &PassageVectors) -> usize {
    let pieces = size_of_val(vectors.tokens.pieces.as_slice());
    vectors.sentence.len() + vectors.tokens.values.len() + pieces
}

/// The passages of texts that are stored.
pub type StoredTexts = HashMap<TextOwner, Range<u32>>;

/// Vectors of one transaction, without those of texts that are not stored any more.
#[derive(Debug, Default)]
pub struct AttachedVectors<'t> {
    /// By the number of their passage.
    pub vectors: Vec<(u32, &'t PassageVectors)>,
    /// Turns, with the change that announces each.
    pub turns: Vec<(TurnId, i64)>,
    /// Derivations, with the change that announces the current version of each.
    pub derivations: Vec<(DerivationId, i64)>,
    /// The last of these changes; that of before where nothing is stored.
    pub head: i64,
}

impl<'t> AttachedVectors<'t> {
    /// Numbers vectors and changes, of which `head` was the last. Fails where a text has another
    /// number of passages.
    pub fn new(
        texts: &'t [TextVectors],
        mut stored: StoredTexts,
        head: i64,
    ) -> Result<Self, StoreError> {
        let mut attached = Self {
            head,
            ..Self::default()
        };
        for TextVectors { owner, vectors } in texts {
            let Some(passages) = stored.remove(owner) else {
                continue;
            };
            if passages.len() != vectors.len() {
                let (given, count) = (vectors.len(), passages.len());
                let cause = format!("{given} vectors were given for {count} passages");
                return Err(StoreError::Unexpected(cause));
            }
            attached.head += 1;
            attached.vectors.extend(passages.zip(vectors));
            match *owner {
                TextOwner::Turn(turn) => attached.turns.push((turn, attached.head)),
                TextOwner::Derivation(id, _) => attached.derivations.push((id, attached.head)),
            }
        }
        Ok(attached)
    }
}

#[cfg(test)]
mod tests {
    use memfleet_domain::embedding::TokenVectors;

    use super::*;

    fn text(number: u8, bytes: usize) -> TextVectors {
        let tokens = TokenVectors {
            values: vec![0; bytes],
            ..TokenVectors::default()
        };
        let vectors = PassageVectors {
            tokens,
            ..PassageVectors::default()
        };
        TextVectors::of_turn(TurnId::from_bytes([number; 16]), vec![vectors])
    }

    #[test]
    fn parts_are_bounded_by_bytes_and_by_count() {
        let lengths = |texts: &[TextVectors]| {
            let parts: Vec<_> = vector_parts(texts).collect();
            assert_eq!(parts.concat(), texts);
            parts.iter().map(|part| part.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&[]), [0_usize; 0]);
        assert_eq!(lengths(&vec![text(1, 8); 150]), [64, 64, 22]);
        assert_eq!(lengths(&vec![text(1, 50 << 10); 5]), [2, 2, 1]);
        let large = [text(1, 8), text(2, 1 << 20), text(3, 8), text(4, 8)];
        assert_eq!(lengths(&large), [1, 1, 2]);
    }

    #[test]
    fn texts_that_are_gone_are_left_out_and_take_no_change() {
        let texts = [text(1, 1), text(2, 2), text(3, 3), text(1, 4)];
        let stored = [(texts[0].owner, 7..8), (texts[2].owner, 4..5)];
        let attached = AttachedVectors::new(&texts, stored.into(), 10).unwrap();
        let vectors = [(7, &texts[0].vectors[0]), (4, &texts[2].vectors[0])];
        assert_eq!(attached.vectors, vectors);
        let turn = |number| TurnId::from_bytes([number; 16]);
        assert_eq!(attached.turns, [(turn(1), 11), (turn(3), 12)]);
        assert_eq!((attached.derivations.len(), attached.head), (0, 12));
        let other = [(texts[0].owner, 7..9)];
        AttachedVectors::new(&texts, other.into(), 10).unwrap_err();
    }
}
