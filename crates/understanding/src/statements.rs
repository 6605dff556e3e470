//! Statements of turns.

use std::collections::HashMap;
use std::ops::Range;

use memfleet_domain::statement::{Statement, StatementKind, StatementOwner};
use memfleet_encoder::TextPiece;

use crate::heads::{LinearHead, likeliest, mean_row, sigmoid, softmax};
use crate::reader::BetweenLayers;
use crate::sequences::{SequenceBuilder, SequencePart, last_pieces};
use crate::{ReadTurn, ReaderError, ReaderModel};

/// Pieces of the turn before that are read with a turn.
const CONTEXT_PIECES: usize = 40;

/// Pieces of a turn that are read at a time.
const WINDOW_PIECES: usize = 120;

/// Fewest pieces of a window that ends with a sentence, where more text follows.
const LEAST_WINDOW: usize = 40;

/// Turn and the one before it in its session.
#[derive(Debug, Clone, Copy)]
pub struct TurnToRead<'t> {
    /// The turn.
    pub turn: ReadTurn<'t>,
    /// The one before it.
    pub previous: Option<ReadTurn<'t>>,
}

/// Heads on the states of a turn's pieces, and of its statements.
pub(crate) struct StatementHeads {
    start: LinearHead,
    kind: LinearHead,
    owner: LinearHead,
    flags: LinearHead,
}

impl StatementHeads {
    pub(crate) fn take(
        constants: &mut HashMap<String, Vec<f32>>,
        width: usize,
    ) -> Result<Self, ReaderError> {
        let mut head = |name: &str, outputs: usize, inputs: usize| {
            LinearHead::take(constants, &format!("statements.{name}"), [outputs, inputs])
        };
        Ok(Self {
            start: head("start", 1, width)?,
            kind: head("kind", StatementKind::ALL.len(), 2 * width)?,
            owner: head("owner", StatementOwner::ALL.len(), 2 * width)?,
            flags: head("flags", 3, 2 * width)?,
        })
    }
}

/// Part of a turn's text that is read at a time.
struct Window {
    /// Place of the turn among those that are read.
    turn: usize,
    part: SequencePart,
    pieces: Vec<TextPiece>,
}

impl ReaderModel {
    /// Statements of each turn, in their order; none overlap.
    pub fn statements(
        &self,
        turns: &[TurnToRead<'_>],
        between: BetweenLayers<'_>,
    ) -> Result<Vec<Vec<Statement>>, ReaderError> {
        let (mut windows, mut sequences) = (Vec::new(), Vec::new());
        for (number, turn) in turns.iter().enumerate() {
            self.cut(number, turn, &mut windows, &mut sequences)?;
        }
        let mut statements = vec![Vec::new(); turns.len()];
        self.for_each_states(sequences, between, |place, states| {
            let window: &Window = &windows[place];
            let text = turns[window.turn].turn.text;
            statements[window.turn].extend(self.statements_of(window, states, text));
        })?;
        Ok(statements)
    }

    /// Cuts a turn into windows. Before the first stands the turn before it, before another the end
    /// of the window before it.
    fn cut(
        &self,
        number: usize,
        turn: &TurnToRead<'_>,
        windows: &mut Vec<Window>,
        sequences: &mut Vec<Vec<u32>>,
    ) -> Result<(), ReaderError> {
        let tokenizer = self.encoder.tokenizer();
        let mut rest = tokenizer.pieces(turn.turn.text, usize::MAX)?;
        let mut before = match &turn.previous {
            Some(previous) => {
                let pieces = last_pieces(tokenizer, previous.text, CONTEXT_PIECES)?;
                Some((previous.head(), pieces))
            }
            None => None,
        };
        while !rest.is_empty() {
            let behind = rest.split_off(window_length(&rest, turn.turn.text));
            let mut sequence = SequenceBuilder::new(tokenizer)?;
            if let Some((head, pieces)) = &before {
                sequence.add(head, pieces)?;
            }
            let part = sequence.add(&turn.turn.head(), &rest)?;
            sequences.push(sequence.build());
            let last = rest.len().saturating_sub(CONTEXT_PIECES);
            before = Some((turn.turn.head(), rest[last..].to_vec()));
            windows.push(Window {
                turn: number,
                part,
                pieces: rest,
            });
            rest = behind;
        }
        Ok(())
    }

    fn statements_of(&self, window: &Window, states: &[f32], text: &str) -> Vec<Statement> {
        let width = self.encoder.dimensions();
        let heads = &self.statements;
        let rows = window.part.rows();
        let row = |at: usize| &states[at * width..][..width];
        let is_start = |at: &usize| *at == rows.start || heads.start.scores(&[row(*at)])[0] > 0.0;
        let mut starts: Vec<usize> = rows.clone().filter(is_start).collect();
        starts.push(rows.end);
        let spans = starts.windows(2).map(|pair| pair[0]..pair[1]);
        spans
            .filter_map(|span| {
                let piece = |at: usize| &window.pieces[at - rows.start].bytes;
                let bytes = piece(span.start).start..piece(span.end - 1).end;
                let bytes = trimmed(text, bytes)?;
                Some(heads.statement(bytes, &mean_row(states, width, span), row(0)))
            })
            .collect()
    }
}

impl StatementHeads {
    fn statement(&self, bytes: Range<usize>, mean: &[f32], opening: &[f32]) -> Statement {
        let parts = [mean, opening];
        let kinds: [f32; StatementKind::ALL.len()] = softmax(&self.kind.scores(&parts));
        let owners: [f32; StatementOwner::ALL.len()] = softmax(&self.owner.scores(&parts));
        let flags = self.flags.scores(&parts);
        let (kind, kind_probability) = likeliest(&kinds);
        let (owner, owner_probability) = likeliest(&owners);
        Statement {
            bytes,
            kind: StatementKind::ALL[kind],
            kind_probability,
            owner: StatementOwner::ALL[owner],
            owner_probability,
            negated: sigmoid(flags[0]),
            keep: sigmoid(flags[1]),
            ends: sigmoid(flags[2]),
        }
    }
}

/// Bytes without white space around them; nothing where there is only that.
fn trimmed(text: &str, bytes: Range<usize>) -> Option<Range<usize>> {
    let part = text.get(bytes.clone())?;
    let start = bytes.start + (part.len() - part.trim_start().len());
    let end = start + part.trim().len();
    (start < end).then_some(start..end)
}

/// Pieces of the first window: all that fit, or up to the last end of a sentence among them.
fn window_length(pieces: &[TextPiece], text: &str) -> usize {
    if pieces.len() <= WINDOW_PIECES {
        return pieces.len();
    }
    let ends_sentence = |piece: &TextPiece| {
        let said = &text[piece.bytes.clone()];
        said.ends_with(['.', '!', '?', '。', '！', '？', '।', '؟', ';'])
    };
    let ends = pieces[LEAST_WINDOW..WINDOW_PIECES].iter();
    ends.rev()
        .position(ends_sentence)
        .map_or(WINDOW_PIECES, |behind| WINDOW_PIECES - behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<TextPiece> {
        let places = text.char_indices();
        let pieces = places.map(|(at, c)| TextPiece {
            id: 7,
            bytes: at..at + c.len_utf8(),
        });
        pieces.collect()
    }

    #[test]
    fn windows_end_with_sentences_where_they_can() {
        let text = format!("{}.{}", "a".repeat(60), "b".repeat(100));
        assert_eq!(window_length(&pieces(&text), &text), 61);
        let text = "a".repeat(200);
        assert_eq!(window_length(&pieces(&text), &text), WINDOW_PIECES);
        let early = format!("a.{}", "b".repeat(200));
        assert_eq!(window_length(&pieces(&early), &early), WINDOW_PIECES);
        assert_eq!(window_length(&pieces("short."), "short."), 6);
    }

    #[test]
    fn spans_have_no_white_space_around_them() {
        assert_eq!(trimmed("  so it is ", 0..11), Some(2..10));
        assert_eq!(trimmed("   ", 0..3), None);
    }
}
