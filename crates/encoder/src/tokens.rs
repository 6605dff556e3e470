//! A text as the model reads it.

use std::ops::Range;

/// Word piece and the bytes of its text that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPiece {
    /// Number in the vocabulary.
    pub id: u32,
    /// Bytes of the text.
    pub bytes: Range<usize>,
}

/// The word pieces of one text, special pieces included, cut to the model's maximum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    ids: Vec<u32>,
    content: Range<usize>,
    /// Piece that stands for whatever the vocabulary lacks; absent where a model has none.
    unknown: Option<u32>,
}

impl Tokens {
    /// `special[i]` says that `ids[i]` was added around the text by the model's template.
    pub(crate) fn new(ids: Vec<u32>, special: &[u32]) -> Self {
        let start = special.iter().position(|&s| s == 0).unwrap_or(ids.len());
        let end = special
            .iter()
            .rposition(|&s| s == 0)
            .map_or(start, |last| last + 1);
        Self {
            ids,
            content: start..end,
            unknown: None,
        }
    }

    /// These tokens, with the piece that the vocabulary has for what it lacks.
    pub(crate) fn with_unknown(self, unknown: Option<u32>) -> Self {
        Self { unknown, ..self }
    }

    /// The pieces of a text between one special piece and another.
    pub(crate) fn between(begin: u32, mut pieces: Vec<u32>, end: u32) -> Self {
        pieces.insert(0, begin);
        pieces.push(end);
        let content = 1..pieces.len() - 1;
        Self {
            ids: pieces,
            content,
            unknown: None,
        }
    }

    /// Tokens whose first `count` pieces of text are a prefix: the model computes on them, and they
    /// are not content.
    pub(crate) fn behind(self, count: usize) -> Self {
        let Range { start, end } = self.content;
        let start = start.saturating_add(count).min(end);
        Self {
            content: start..end,
            ..self
        }
    }

    /// Pieces without special ones around them, for models that add none.
    pub fn of_ids(ids: Vec<u32>) -> Self {
        let content = 0..ids.len();
        Self {
            ids,
            content,
            unknown: None,
        }
    }

    /// All vocabulary ids, special pieces included: what the model computes on.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The vocabulary ids of the text itself.
    pub fn pieces(&self) -> &[u32] {
        &self.ids[self.content.clone()]
    }

    /// Places in `ids` and ids of the text's pieces that the vocabulary has. Pieces that stand for
    /// what it lacks are left out: two of them say nothing of each other.
    pub fn known(&self) -> impl Iterator<Item = (usize, u32)> {
        let pieces = self.content.clone().map(|place| (place, self.ids[place]));
        pieces.filter(|&(_, piece)| Some(piece) != self.unknown)
    }

    /// True for a text whose pieces are unknown by more than half: its vectors say nothing.
    pub fn are_mostly_unknown(&self) -> bool {
        2 * self.known().count() < self.pieces().len()
    }

    /// Number of pieces the model computes on; the unit of a batch's token budget.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True when not even special pieces are there.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_pieces_are_computed_on_but_are_not_content() {
        let tokens = Tokens::new(vec![101, 7, 8, 102], &[1, 0, 0, 1]);
        assert_eq!(tokens.len(), 4);
        assert_eq!(tokens.pieces(), [7, 8]);
    }

    #[test]
    fn pieces_before_a_text_are_computed_on_but_are_not_content() {
        let tokens = Tokens::new(vec![101, 7, 8, 102], &[1, 0, 0, 1]);
        let behind = tokens.clone().behind(1);
        assert_eq!((behind.len(), behind.pieces()), (4, &[8][..]));
        assert!(tokens.behind(9).pieces().is_empty());
    }

    #[test]
    fn unknown_pieces_are_left_out_and_by_more_than_half_make_a_text_unknown() {
        let tokens = |ids: &[u32]| Tokens::of_ids(ids.to_vec()).with_unknown(Some(100));
        let known: Vec<_> = tokens(&[7, 100, 8]).known().collect();
        assert_eq!(known, [(0, 7), (2, 8)]);
        assert!(!tokens(&[7, 100]).are_mostly_unknown());
        assert!(tokens(&[7, 100, 100]).are_mostly_unknown());
        assert!(!tokens(&[]).are_mostly_unknown());
        assert!(!Tokens::of_ids(vec![100]).are_mostly_unknown());
    }

    #[test]
    fn empty_text_has_no_content() {
        assert!(Tokens::new(vec![101, 102], &[1, 1]).pieces().is_empty());
    }
}
