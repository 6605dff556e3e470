//! What a store answers that finds passages itself, by words and by vector: of a space that is too large for a retriever's memory, or
//! not in it yet, the retriever keeps an outline and asks for the rest of each search. A store that is no [`Candidates`] has
//! retrievers that hold every space they search.

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;

use crate::feed::{Changes, IndexedPassage};
use crate::store::Result;

/// How large a space is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Passages that were ever numbered; some may be gone.
    pub passages: u32,
    /// Turns with a passage that has no vectors yet in the embedding space asked for.
    pub without_vectors: u64,
}

/// A set of passages of a space, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Among {
    bytes: Vec<u8>,
    count: usize,
}

impl Among {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a passage is one of them.
    pub fn contains(&self, passage: u32) -> bool {
        let byte = self.bytes.get(passage as usize / 8);
        byte.is_some_and(|byte| byte >> (passage % 8) & 1 == 1)
    }

    /// One bit a passage, the lowest of a byte first.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The passages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let numbers = 0..self.bytes.len() as u32 * 8;
        numbers.filter(|&passage| self.contains(passage))
    }
}

impl FromIterator<u32> for Among {
    fn from_iter<I: IntoIterator<Item = u32>>(passages: I) -> Self {
        let mut among = Self::default();
        for passage in passages {
            let (byte, bit) = (passage as usize / 8, 1 << (passage % 8));
            if among.bytes.len() <= byte {
                among.bytes.resize(byte + 1, 0);
            }
            among.count += usize::from(among.bytes[byte] & bit == 0);
            among.bytes[byte] |= bit;
        }
        among
    }
}

/// A passage that was found by vector, and the inner product of the two.
pub type Near = (u32, f32);

/// In which passages a term is, ascending, and how often in each.
pub type TermPassages = Vec<(u32, u16)>;

/// Searches of a space inside the store. Vectors are those of the embedding space that is asked
/// for, or of the served one where none is, and of no other.
#[async_trait]
pub trait Candidates: Send + Sync {
    /// How large the space is; nothing where it was never written to.
    async fn extent(&self, scope: &Scope, embedding: Option<&EmbeddingSpace>) -> Result<Extent>;

    /// The changes of [`crate::feed::IndexFeed::changes_after`], where passages have their lengths alone.
    async fn outline_after(&self, scope: &Scope, after: u64, limit: u32) -> Result<Changes>;

    /// The passages of each term, in the order asked.
    async fn postings(&self, scope: &Scope, terms: &[String]) -> Result<Vec<TermPassages>>;

    /// Up to `limit` of these passages with the highest inner product with the vector, the highest first. Passages without a
    /// vector, or with one of another length, are not found. It may miss some where `among` is large.
    async fn nearest(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        vector: &[i8],
        among: &Among,
        limit: u32,
    ) -> Result<Vec<Near>>;

    /// Passages by their numbers, in the order asked; `None` for those that are gone.
    async fn passages(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        numbers: &[u32],
    ) -> Result<Vec<Option<IndexedPassage>>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_into_it_once() {
        let among: Among = [9, 0, 9, 70].into_iter().collect();
        assert_eq!(among.len(), 3);
        assert!(among.iter().eq([0, 9, 70]));
        assert!(!among.contains(1) && !among.contains(1_000));
    }
}
