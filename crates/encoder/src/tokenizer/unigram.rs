//! The Unigram model of XLM-RoBERTa: of all ways to cut a word into pieces, the one whose scores
//! have the highest sum. The pieces lie in a finite-state transducer, the scores in an array: some
//! 5 MB for 250,000 pieces.

use std::ops::Range;

use fst::raw::Output;
use serde::{Deserialize, Serialize};
use unicode_normalization_alignments::UnicodeNormalization;

use crate::tokens::{TextPiece, Tokens};

/// Begins every word, in place of the space before it.
const SPACE: char = '▁';
/// How far an unknown character lies below the piece with the lowest score.
const UNKNOWN_PENALTY: f64 = 10.0;
/// Bytes of a text for each piece that is asked for, beyond which none is looked at: more than any
/// piece has on average, so that a word of a megabyte takes no longer than its beginning.
const BYTES_A_PIECE: usize = 64;

/// A loaded model.
pub(super) struct Unigram {
    pieces: fst::Map<Vec<u8>>,
    scores: Vec<f64>,
    unknown_score: f64,
    special: SpecialPieces,
}

/// Pieces that are not found by their scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SpecialPieces {
    /// Stands before every text.
    pub(super) begin: u32,
    /// Stands behind every text.
    pub(super) end: u32,
    /// Stands for characters that no piece has.
    pub(super) unknown: u32,
    /// Strings that are cut out of a text before anything else.
    pub(super) verbatim: Vec<(String, u32)>,
}

/// The last piece of the best way from a word's beginning to one of its bytes.
#[derive(Clone, Copy)]
struct Step {
    /// Sum of the scores so far; the lowest where no way leads.
    score: f64,
    /// Byte of the word where the piece begins.
    from: u32,
    piece: u32,
}

const NOWHERE: Step = Step {
    score: f64::NEG_INFINITY,
    from: 0,
    piece: 0,
};

impl Unigram {
    /// `pieces` gives the index of a piece's score, which is the piece's id.
    pub(super) fn new(pieces: fst::Map<Vec<u8>>, scores: Vec<f64>, special: SpecialPieces) -> Self {
        let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
        Self {
            pieces,
            scores,
            unknown_score: lowest - UNKNOWN_PENALTY,
            special,
        }
    }

    /// Pieces that stand before and behind every text.
    pub(super) fn around(&self) -> (u32, u32) {
        (self.special.begin, self.special.end)
    }

    /// The piece for characters that no piece has.
    pub(super) fn unknown(&self) -> u32 {
        self.special.unknown
    }

    /// The pieces of a text with those around it, at most `max_tokens`. What lies beyond is not
    /// looked at.
    pub(super) fn tokenize(&self, text: &str, max_tokens: usize) -> Tokens {
        let room = max_tokens.saturating_sub(2);
        let mut ids = Vec::new();
        let mut rest = text;
        while !rest.is_empty() && ids.len() < room {
            let (before, verbatim, behind) = self.next_verbatim(rest);
            self.cut(before, room, &mut ids);
            ids.extend(verbatim);
            rest = behind;
        }
        ids.truncate(room);
        Tokens::between(self.special.begin, ids, self.special.end)
    }

    /// Pieces of a text with the bytes that each stands for, at most `room`, without those around
    /// it. Strings of special pieces are cut like any other. No more of the text is looked at than
    /// the pieces need, but for [`BYTES_A_PIECE`] bytes each.
    pub(super) fn pieces(&self, text: &str, room: usize) -> Vec<TextPiece> {
        let text = beginning(text, room.saturating_mul(BYTES_A_PIECE));
        let (mut pieces, mut word) = (Vec::new(), PlacedWord::default());
        let mut steps = Vec::new();
        let mut behind_space = false;
        for (character, bytes) in placed(text) {
            if character == ' ' {
                if behind_space {
                    continue;
                }
                self.cut_placed(&word, &mut steps, &mut pieces);
                if pieces.len() >= room {
                    break;
                }
                word.begin(bytes);
            } else {
                if word.text.is_empty() {
                    word.begin(bytes.clone());
                }
                word.push(character, bytes);
            }
            behind_space = character == ' ';
        }
        self.cut_placed(&word, &mut steps, &mut pieces);
        pieces.truncate(room);
        pieces
    }

    /// Adds the pieces of a word, with their bytes in the text.
    fn cut_placed(&self, word: &PlacedWord, steps: &mut Vec<Step>, pieces: &mut Vec<TextPiece>) {
        let mut cut = Vec::new();
        self.cut_word(&word.text, steps, &mut cut);
        pieces.extend(cut.into_iter().map(|(id, span)| TextPiece {
            id,
            bytes: word.bytes(&span),
        }));
    }

    /// Splits a text at the first verbatim string: before it, its piece, behind it.
    fn next_verbatim<'t>(&self, text: &'t str) -> (&'t str, Option<u32>, &'t str) {
        for (at, _) in text.char_indices() {
            let rest = &text[at..];
            let found = self.special.verbatim.iter();
            let found = found.filter(|(string, _)| rest.starts_with(string));
            if let Some((string, piece)) = found.max_by_key(|(string, _)| string.len()) {
                return (&text[..at], Some(*piece), &rest[string.len()..]);
            }
        }
        (text, None, "")
    }

    /// Adds a text's pieces, word by word, until there are as many as there is room for.
    fn cut(&self, text: &str, room: usize, ids: &mut Vec<u32>) {
        let (mut word, mut steps, mut cut) = (String::new(), Vec::new(), Vec::new());
        let mut behind_space = false;
        for character in normalised(text) {
            if character == ' ' {
                if behind_space {
                    continue;
                }
                self.add_word(&word, &mut steps, &mut cut, ids);
                if ids.len() >= room {
                    return;
                }
                word.clear();
                word.push(SPACE);
            } else {
                if word.is_empty() {
                    word.push(SPACE);
                }
                word.push(character);
            }
            behind_space = character == ' ';
        }
        self.add_word(&word, &mut steps, &mut cut, ids);
    }

    /// Adds the pieces of a word; `steps` and `cut` are room for it.
    fn add_word(
        &self,
        word: &str,
        steps: &mut Vec<Step>,
        cut: &mut Vec<(u32, Range<usize>)>,
        ids: &mut Vec<u32>,
    ) {
        cut.clear();
        self.cut_word(word, steps, cut);
        ids.extend(cut.iter().map(|(id, _)| *id));
    }

    /// Adds the pieces of the best way through a word, with their bytes in it. Neighbours that are
    /// unknown become one.
    fn cut_word(&self, word: &str, steps: &mut Vec<Step>, pieces: &mut Vec<(u32, Range<usize>)>) {
        self.search(word, steps);
        let (first, mut at) = (pieces.len(), word.len());
        while at > 0 {
            let Step { from, piece, .. } = steps[at];
            let span = from as usize..at;
            at = span.start;
            match pieces[first..].last_mut() {
                Some((behind, wider)) if piece == self.special.unknown && *behind == piece => {
                    wider.start = span.start;
                }
                _ => pieces.push((piece, span)),
            }
        }
        pieces[first..].reverse();
    }

    /// Finds the best way to every end of a piece; ties go to the way that was found first, whose
    /// last piece is longer.
    fn search(&self, word: &str, steps: &mut Vec<Step>) {
        steps.clear();
        steps.resize(word.len() + 1, NOWHERE);
        steps[0].score = 0.0;
        for (from, character) in word.char_indices() {
            let score_before = steps[from].score;
            let mut offer = |length: usize, piece: u32, score: f64| {
                let best = &mut steps[from + length];
                let score = score_before + score;
                if score > best.score {
                    let from = from as u32;
                    *best = Step { score, from, piece };
                }
            };
            let mut is_known = false;
            self.each_prefix(&word.as_bytes()[from..], |length, piece| {
                is_known |= length == character.len_utf8();
                offer(length, piece, self.scores[piece as usize]);
            });
            if !is_known {
                offer(
                    character.len_utf8(),
                    self.special.unknown,
                    self.unknown_score,
                );
            }
        }
    }

    /// Calls `found` with the length and the id of every piece that the bytes begin with, the
    /// shortest first.
    fn each_prefix(&self, bytes: &[u8], mut found: impl FnMut(usize, u32)) {
        let fst = self.pieces.as_fst();
        let (mut node, mut id) = (fst.root(), Output::zero());
        for (at, &byte) in bytes.iter().enumerate() {
            let Some(index) = node.find_input(byte) else {
                return;
            };
            let transition = node.transition(index);
            id = id.cat(transition.out);
            node = fst.node(transition.addr);
            if node.is_final() {
                found(at + 1, id.cat(node.final_output()).value() as u32);
            }
        }
    }
}

/// Word of a text as the model reads it, with the bytes of the text that its characters are of.
#[derive(Default)]
struct PlacedWord {
    /// The word behind [`SPACE`].
    text: String,
    /// For every character of `text` its byte in it, and its bytes in the whole text.
    characters: Vec<(usize, Range<usize>)>,
}

impl PlacedWord {
    /// Begins a word: [`SPACE`] stands for the space before it or, where there is none, for its
    /// first character.
    fn begin(&mut self, bytes: Range<usize>) {
        self.text.clear();
        self.characters.clear();
        self.push(SPACE, bytes);
    }

    fn push(&mut self, character: char, bytes: Range<usize>) {
        self.characters.push((self.text.len(), bytes));
        self.text.push(character);
    }

    /// Bytes of the whole text that a part of the word stands for: those of its characters, the
    /// space before a word left out where there is more.
    fn bytes(&self, part: &Range<usize>) -> Range<usize> {
        let place = |at: usize| self.characters.partition_point(|(first, _)| *first < at);
        let (mut first, last) = (place(part.start), place(part.end) - 1);
        let is_space = first == 0 && self.characters[0].1.end <= self.characters[last].1.start;
        first += usize::from(is_space && last > 0);
        self.characters[first].1.start..self.characters[last].1.end
    }
}

/// The beginning of a text, up to a number of bytes.
fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The characters of [`normalised`] with the bytes of the text that each was made of.
fn placed(text: &str) -> impl Iterator<Item = (char, Range<usize>)> {
    let mut kept = text.char_indices().filter(|&(_, c)| !is_dropped(c));
    let mut bytes = 0..0;
    let spaced = text
        .chars()
        .filter(|&c| !is_dropped(c))
        .map(|c| if is_space(c) { ' ' } else { c });
    spaced.nfkc().map(move |(character, change)| {
        // A positive change is one more character of the same source; a negative one joins sources.
        if change <= 0 {
            let joined = kept.by_ref().take(1 + change.unsigned_abs());
            let mut joined = joined.map(|(at, c)| at..at + c.len_utf8());
            if let Some(first) = joined.next() {
                bytes = first.start..joined.last().map_or(first.end, |last| last.end);
            }
        }
        (character, bytes.clone())
    })
}

/// The characters of a text as the model was trained on them.
fn normalised(text: &str) -> impl Iterator<Item = char> {
    let kept = text.chars().filter(|&c| !is_dropped(c));
    let spaced = kept.map(|c| if is_space(c) { ' ' } else { c });
    spaced.nfkc().map(|(character, _)| character)
}

/// Control characters that the training data had none of.
fn is_dropped(character: char) -> bool {
    matches!(character, '\u{1}'..='\u{8}' | '\u{b}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{8f}' | '\u{9f}')
}

/// Characters that were spaces in the training data, beyond those that NFKC makes spaces.
fn is_space(character: char) -> bool {
    matches!(
        character,
        '\t' | '\n' | '\u{c}' | '\r' | '\u{1680}' | '\u{200b}'
            ..='\u{200f}' | '\u{2028}' | '\u{2029}' | SPACE | '\u{feff}' | '\u{fffd}'
    )
}
