//! A text as the model reads it.

use std::ops::Range;

/// The word pieces of one text, special pieces included, cut to the model's maximum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    ids: Vec<u32>,
    content: Range<usize>,
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
        }
    }

    /// The pieces of a text between one special piece and another.
    pub(crate) fn between(begin: u32, mut pieces: Vec<u32>, end: u32) -> Self {
        pieces.insert(0, begin);
        pieces.push(end);
        let content = 1..pieces.len() - 1;
        Self {
            ids: pieces,
            content,
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
        Self { ids, content }
    }

    /// All vocabulary ids, special pieces included: what the model computes on.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The vocabulary ids of the text itself.
    pub fn pieces(&self) -> &[u32] {
        &self.ids[self.content.clone()]
    }

    /// Where the text's own pieces lie in `ids`.
    pub(crate) fn content(&self) -> Range<usize> {
        self.content.clone()
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
    fn empty_text_has_no_content() {
        assert!(Tokens::new(vec![101, 102], &[1, 1]).pieces().is_empty());
    }
}
