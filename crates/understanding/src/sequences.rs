//! Sequences of word pieces as the reader was trained on them: an opening piece, then parts, each a
//! head and a text with a closing piece behind.

use std::ops::Range;

use memfleet_encoder::{Error, ModelTokenizer, TextPiece};

/// Pieces of a head at most: a name can be long.
const HEAD_PIECES: usize = 16;

/// Bytes of a text that are looked at for each piece: more than any piece has on average.
pub(crate) const BYTES_A_PIECE: usize = 64;

/// Turn as the reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTurn<'t> {
    /// Name of the speaker.
    pub speaker: &'t str,
    /// True for an assistant.
    pub is_assistant: bool,
    /// Text of the turn.
    pub text: &'t str,
}

impl ReadTurn<'_> {
    /// Words before the text: the role of an assistant, or the speaker's name.
    pub(crate) fn head(&self) -> String {
        match self.is_assistant {
            true => "assistant:".to_owned(),
            false => format!("{}:", self.speaker),
        }
    }
}

/// Sequence that is being built.
pub(crate) struct SequenceBuilder<'t> {
    tokenizer: &'t ModelTokenizer,
    closing: u32,
    ids: Vec<u32>,
}

/// Part of a sequence: where its text begins, and the bytes of the text that each piece stands for.
pub(crate) struct SequencePart {
    first: usize,
    bytes: Vec<Range<usize>>,
}

impl<'t> SequenceBuilder<'t> {
    pub(crate) fn new(tokenizer: &'t ModelTokenizer) -> Result<Self, Error> {
        let (opening, closing) = tokenizer.around()?;
        Ok(Self {
            tokenizer,
            closing,
            ids: vec![opening],
        })
    }

    /// Adds a part of a head and pieces of a text.
    pub(crate) fn add(&mut self, head: &str, pieces: &[TextPiece]) -> Result<SequencePart, Error> {
        let head = self.tokenizer.pieces(head, HEAD_PIECES)?;
        self.ids.extend(head.iter().map(|piece| piece.id));
        let first = self.ids.len();
        self.ids.extend(pieces.iter().map(|piece| piece.id));
        self.ids.push(self.closing);
        Ok(SequencePart {
            first,
            bytes: pieces.iter().map(|piece| piece.bytes.clone()).collect(),
        })
    }

    pub(crate) fn build(self) -> Vec<u32> {
        self.ids
    }
}

impl SequencePart {
    /// Rows of the text's pieces in the sequence.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.first..self.first + self.bytes.len()
    }

    /// Rows of the pieces that overlap some bytes; nothing where all of them were cut off.
    pub(crate) fn rows_of(&self, bytes: &Range<usize>) -> Option<Range<usize>> {
        let overlaps = |piece: &Range<usize>| {
            piece.start < bytes.end && bytes.start < piece.end && !piece.is_empty()
        };
        let first = self.bytes.iter().position(overlaps)?;
        let last = self.bytes.iter().rposition(overlaps)?;
        Some(self.first + first..self.first + last + 1)
    }
}

/// The last pieces of a text, at most `most`.
pub(crate) fn last_pieces(
    tokenizer: &ModelTokenizer,
    text: &str,
    most: usize,
) -> Result<Vec<TextPiece>, Error> {
    let start = text.len().saturating_sub(most * BYTES_A_PIECE);
    let mut pieces = tokenizer.pieces(&text[text.ceil_char_boundary(start)..], usize::MAX)?;
    let surplus = pieces.len().saturating_sub(most);
    pieces.drain(..surplus);
    Ok(pieces)
}
