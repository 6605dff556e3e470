//! Statements of turns.

use std::collections::HashMap;
use std::ops::Range;

use memfleet_domain::statement::{
    ChangeVectors, MentionedName, NameKind, Statement, StatementKind, StatementLine, StatementOwner,
};
use memfleet_encoder::TextPiece;
use memfleet_language::sentences;

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

/// Labels of lines.
const LINE_LABELS: usize = 4;

/// Least probability that a statement is worth remembering for months by which it makes a line.
const LEAST_KEPT: f32 = 0.5;

/// Classes of pieces by the names that they are part of.
const NAME_CLASSES: usize = 1 + 2 * NameKind::ALL.len();

/// Heads on the states of a turn's pieces, and of its statements.
pub(crate) struct StatementHeads {
    start: LinearHead,
    kind: LinearHead,
    owner: LinearHead,
    flags: LinearHead,
    /// Classes of a piece: in no name, then for each kind the first piece of a name and any other.
    name: LinearHead,
    /// Labels of a line: said of the speaker, complete, worth knowing, and all three.
    line: LinearHead,
    /// Vector of a statement as a later one.
    later: LinearHead,
    /// Vector of a statement as an earlier one.
    earlier: LinearHead,
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
            name: LinearHead::take(constants, "names.name", [NAME_CLASSES, width])?,
            line: LinearHead::take(constants, "lines.line", [LINE_LABELS, 2 * width])?,
            later: LinearHead::take(
                constants,
                "candidates.later",
                [ChangeVectors::DIMENSIONS, width],
            )?,
            earlier: LinearHead::take(
                constants,
                "candidates.earlier",
                [ChangeVectors::DIMENSIONS, width],
            )?,
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
        let starts: Vec<usize> = rows.clone().filter(is_start).collect();
        let classes = rows
            .clone()
            .map(|at| likeliest(&heads.name.scores(&[row(at)])).0);
        let names = names_of(&window.pieces, classes, text);
        let byte = |at: &usize| window.pieces[at - rows.start].bytes.start;
        let kept = whole_names(text, &starts.iter().map(byte).collect::<Vec<_>>(), &names);
        let starts = starts.iter().zip(kept).filter(|(_, is_kept)| *is_kept);
        let mut starts: Vec<usize> = starts.map(|(start, _)| *start).collect();
        starts.push(rows.end);
        let spans = starts.windows(2).map(|pair| pair[0]..pair[1]);
        let read = spans.filter_map(|span| {
            let piece = |at: usize| &window.pieces[at - rows.start].bytes;
            let bytes = piece(span.start).start..piece(span.end - 1).end;
            let bytes = trimmed(text, bytes)?;
            let mean = mean_row(states, width, span.clone());
            let mut statement = heads.statement(bytes, &mean, row(0));
            let inside = names.iter();
            let inside = inside.filter(|it| statement.bytes.contains(&it.bytes.start));
            statement.names = inside.cloned().collect();
            Some((span, statement))
        });
        let (spans, mut statements): (Vec<_>, Vec<_>) = read.unzip();
        for (place, joined) in lines_of(&statements, text) {
            let rows = spans[joined.start].start..spans[joined.end - 1].end;
            let mean = mean_row(states, width, rows);
            let scores = heads.line.scores(&[&mean, row(0)]);
            statements[place].line = Some(StatementLine {
                bytes: statements[joined.start].bytes.start..statements[joined.end - 1].bytes.end,
                probability: sigmoid(scores[LINE_LABELS - 1]),
            });
        }
        statements
    }
}

/// Statements that are worth keeping, with those that their lines consist of: the ones beside them in
/// their sentence that are not worth keeping themselves. Words between two belong to the former.
fn lines_of(statements: &[Statement], text: &str) -> Vec<(usize, Range<usize>)> {
    let is_kept = |place: usize| statements[place].keep >= LEAST_KEPT;
    let sentences = sentences(text);
    let kept = (0..statements.len()).filter(|place| is_kept(*place));
    let lines = kept.filter_map(|place| {
        let starts_in = |sentence: &&Range<usize>, place: usize| {
            sentence.contains(&statements[place].bytes.start)
        };
        let sentence = sentences.iter().find(|it| starts_in(it, place))?;
        let joins = |other: &usize| !is_kept(*other) && starts_in(&sentence, *other);
        let before = (0..place).rev().take_while(joins).count();
        let is_first = place == before || !starts_in(&sentence, place - before - 1);
        let before = if is_first { before } else { 0 };
        let behind = (place + 1..statements.len()).take_while(joins).count();
        Some((place, place - before..place + 1 + behind))
    });
    lines.collect()
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
            names: Vec::new(),
            line: None,
            vectors: self.vectors(mean),
        }
    }

    fn vectors(&self, mean: &[f32]) -> Option<ChangeVectors> {
        let mean = unit(mean.to_vec());
        let vector = |head: &LinearHead| {
            let numbers = unit(head.scores(&[&mean]));
            std::array::from_fn(|at| (127.0 * numbers[at]).round() as i8)
        };
        ChangeVectors::new(vector(&self.later), vector(&self.earlier))
    }
}

/// Numbers of a vector with the length 1.
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
    vector
        .iter_mut()
        .for_each(|it| *it /= length.max(f32::MIN_POSITIVE));
    vector
}

/// Names of the classes of pieces: one begins with its first piece, or where the kind changes.
fn names_of(
    pieces: &[TextPiece],
    classes: impl Iterator<Item = usize>,
    text: &str,
) -> Vec<MentionedName> {
    let mut names: Vec<MentionedName> = Vec::new();
    let mut is_inside = false;
    for (piece, class) in pieces.iter().zip(classes) {
        let Some(class) = class.checked_sub(1) else {
            is_inside = false;
            continue;
        };
        let (kind, is_first) = (NameKind::ALL[class / 2], class % 2 == 0);
        match names.last_mut() {
            Some(name) if is_inside && !is_first && name.kind == kind => {
                name.bytes.end = piece.bytes.end;
            }
            _ => names.push(MentionedName {
                bytes: piece.bytes.clone(),
                kind,
            }),
        }
        is_inside = true;
    }
    names.retain_mut(|name| match trimmed(text, name.bytes.clone()) {
        Some(bytes) => {
            name.bytes = bytes;
            true
        }
        None => false,
    });
    names
}

/// Starts of statements that stay, by the bytes at which they begin: none cuts a name, and none
/// within a sentence begins a statement that is only a name.
fn whole_names(text: &str, starts: &[usize], names: &[MentionedName]) -> Vec<bool> {
    let sentences = sentences(text);
    let begins_sentence = |start: usize| sentences.iter().any(|it| it.start == start);
    let letters = |bytes: Range<usize>| {
        let part = text.get(bytes).unwrap_or_default();
        part.chars().filter(|it| it.is_alphanumeric()).count()
    };
    let stays = |place: usize| {
        let start = starts[place];
        let start = start + (text[start..].len() - text[start..].trim_start().len());
        let end = starts.get(place + 1).copied().unwrap_or(text.len());
        let is_cut = |name: &MentionedName| name.bytes.start < start && start < name.bytes.end;
        let is_all = |name: &MentionedName| {
            name.bytes.start == start && letters(name.bytes.end..end.max(name.bytes.end)) == 0
        };
        place == 0
            || !names.iter().any(is_cut) && (begins_sentence(start) || !names.iter().any(is_all))
    };
    (0..starts.len()).map(stays).collect()
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

    fn statement(bytes: Range<usize>, keep: f32) -> Statement {
        Statement {
            bytes,
            kind: StatementKind::State,
            kind_probability: 1.0,
            owner: StatementOwner::Speaker,
            owner_probability: 1.0,
            negated: 0.0,
            keep,
            ends: 0.0,
            names: Vec::new(),
            line: None,
            vectors: None,
        }
    }

    #[test]
    fn a_line_has_the_words_beside_it_that_are_not_worth_one() {
        let text = "Well, I moved to Oslo, sadly. I work at a bank and I sing.";
        let parts = [
            "Well,",
            "I moved to Oslo,",
            "sadly.",
            "I work at a bank and",
            "I sing.",
        ];
        let worth = [0.0, 0.9, 0.1, 0.8, 0.7];
        let statements = parts.iter().zip(worth).map(|(part, keep)| {
            let start = text.find(part).unwrap();
            statement(start..start + part.len(), keep)
        });
        let statements: Vec<Statement> = statements.collect();
        assert_eq!(
            lines_of(&statements, text),
            [(1, 0..3), (3, 3..4), (4, 4..5)]
        );
    }

    #[test]
    fn names_go_on_with_pieces_of_their_kind() {
        let text = "an Uncle Bo Emden";
        let spans = [0..2, 2..8, 8..11, 11..14, 14..17];
        let pieces = spans.map(|bytes| TextPiece { id: 7, bytes });
        let name = |bytes, kind| MentionedName { bytes, kind };
        let of = |classes: [usize; 5]| names_of(&pieces, classes.into_iter(), text);
        let uncle = name(3..11, NameKind::Person);
        let emden = name(12..17, NameKind::Place);
        assert_eq!(of([0, 1, 2, 3, 4]), [uncle, emden]);
        let apart = [name(3..8, NameKind::Person), name(14..17, NameKind::Person)];
        assert_eq!(of([0, 2, 0, 0, 1]), apart);
        assert_eq!(of([0; 5]), []);
    }

    #[test]
    fn a_statement_begins_neither_in_a_name_nor_with_a_name_alone() {
        let text = "My team is the Red Sox, I think. Anna.";
        let name = |words: &str| {
            let start = text.find(words).unwrap();
            MentionedName {
                bytes: start..start + words.len(),
                kind: NameKind::Group,
            }
        };
        let names = [name("Red Sox"), name("Anna")];
        let stays = |starts: &[&str]| {
            let starts: Vec<usize> = starts.iter().map(|it| text.find(it).unwrap()).collect();
            whole_names(text, &starts, &names)
        };
        assert_eq!(
            stays(&["My", " Red", ", I", " Anna"]),
            [true, false, true, true]
        );
        assert_eq!(stays(&["My", "Sox"]), [true, false]);
        assert_eq!(stays(&["My", "the Red"]), [true, true]);
    }

    #[test]
    fn spans_have_no_white_space_around_them() {
        assert_eq!(trimmed("  so it is ", 0..11), Some(2..10));
        assert_eq!(trimmed("   ", 0..3), None);
    }
}
