//! Relations of the statements of two turns.

use std::collections::HashMap;
use std::ops::Range;

use chrono::TimeDelta;
use memfleet_domain::statement::{RelationScores, StatementRelation};
use memfleet_encoder::TextPiece;

use crate::heads::{LinearHead, gelu, mean_row, softmax};
use crate::reader::BetweenLayers;
use crate::sequences::{BYTES_A_PIECE, SequenceBuilder, SequencePart};
use crate::{ReadTurn, ReaderError, ReaderModel};

/// Pieces of either turn that are read.
const SIDE_PIECES: usize = 96;

/// Pieces of the question that two turns are read for.
const QUESTION_PIECES: usize = 48;

/// Pieces before the first statement of a turn that is cut.
const PIECES_BEFORE: usize = 32;

/// Units of the hidden layer.
pub(crate) const INNER: usize = 128;

/// Turn and the statements of it that are compared, as bytes of its text.
#[derive(Debug, Clone, Copy)]
pub struct PlacedStatements<'t> {
    /// The turn.
    pub turn: ReadTurn<'t>,
    /// Its statements, in order.
    pub statements: &'t [Range<usize>],
}

/// Two turns whose statements are compared.
#[derive(Debug, Clone, Copy)]
pub struct TurnPair<'t> {
    /// The one that was said first.
    pub earlier: PlacedStatements<'t>,
    /// The other.
    pub later: PlacedStatements<'t>,
    /// Time between them; not negative.
    pub gap: TimeDelta,
    /// Question that they are read for, where only changes of what it asks about count.
    pub question: Option<&'t str>,
}

/// Heads on two statements.
pub(crate) struct RelationHeads {
    widen: LinearHead,
    relation: LinearHead,
}

impl RelationHeads {
    pub(crate) fn take(
        constants: &mut HashMap<String, Vec<f32>>,
        width: usize,
    ) -> Result<Self, ReaderError> {
        let relations = StatementRelation::ALL.len();
        Ok(Self {
            widen: LinearHead::take(constants, "pairs.widen", [INNER, 4 * width])?,
            relation: LinearHead::take(constants, "pairs.relation", [relations, INNER])?,
        })
    }

    fn probabilities(
        &self,
        opening: &[f32],
        later: &[f32],
        earlier: &[f32],
    ) -> [f32; StatementRelation::ALL.len()] {
        let products: Vec<f32> = later.iter().zip(earlier).map(|(a, b)| a * b).collect();
        let mut inner = self.widen.scores(&[opening, later, earlier, &products]);
        gelu(&mut inner);
        softmax(&self.relation.scores(&[&inner]))
    }
}

impl ReaderModel {
    /// Relations of every later statement to every earlier one, for each pair of turns. Statements
    /// that lie beyond what is read of a long turn have none.
    pub fn relations(
        &self,
        pairs: &[TurnPair<'_>],
        between: BetweenLayers<'_>,
    ) -> Result<Vec<Vec<RelationScores>>, ReaderError> {
        let (mut parts, mut sequences) = (Vec::new(), Vec::new());
        for pair in pairs {
            let tokenizer = self.encoder.tokenizer();
            let mut sequence = SequenceBuilder::new(tokenizer)?;
            if let Some(question) = pair.question {
                sequence.add("query:", &tokenizer.pieces(question, QUESTION_PIECES)?)?;
            }
            let earlier = self.side(&mut sequence, &pair.earlier, "")?;
            let gap = format!("{} ", gap_words(pair.gap));
            let later = self.side(&mut sequence, &pair.later, &gap)?;
            parts.push((earlier, later));
            sequences.push(sequence.build());
        }
        let mut scores = Vec::with_capacity(pairs.len());
        self.for_each_states(sequences, between, |place, states| {
            let (pair, (earlier, later)) = (&pairs[place], &parts[place]);
            let earlier = self.means(states, earlier, pair.earlier.statements);
            let later = self.means(states, later, pair.later.statements);
            scores.push(self.compared(states, &earlier, &later));
        })?;
        Ok(scores)
    }

    /// Adds a turn to a sequence.
    fn side(
        &self,
        sequence: &mut SequenceBuilder<'_>,
        placed: &PlacedStatements<'_>,
        before: &str,
    ) -> Result<SequencePart, ReaderError> {
        let text = placed.turn.text;
        let first = placed.statements.first().map_or(0, |bytes| bytes.start);
        let start = first.saturating_sub(PIECES_BEFORE * BYTES_A_PIECE);
        let start = text.floor_char_boundary(start);
        let room = PIECES_BEFORE + SIDE_PIECES;
        let mut pieces = self.encoder.tokenizer().pieces(&text[start..], 2 * room)?;
        for piece in &mut pieces {
            piece.bytes.start += start;
            piece.bytes.end += start;
        }
        let shown = shown(&pieces, first);
        let head = format!("{before}{}", placed.turn.head());
        Ok(sequence.add(&head, &pieces[shown])?)
    }

    /// Means of the pieces of statements, with the places of these.
    fn means(
        &self,
        states: &[f32],
        part: &SequencePart,
        statements: &[Range<usize>],
    ) -> Vec<(usize, Vec<f32>)> {
        let width = self.encoder.dimensions();
        let means = statements.iter().enumerate().filter_map(|(place, bytes)| {
            let rows = part.rows_of(bytes)?;
            Some((place, mean_row(states, width, rows)))
        });
        means.collect()
    }

    fn compared(
        &self,
        states: &[f32],
        earlier: &[(usize, Vec<f32>)],
        later: &[(usize, Vec<f32>)],
    ) -> Vec<RelationScores> {
        let opening = &states[..self.encoder.dimensions()];
        let mut scores = Vec::with_capacity(earlier.len() * later.len());
        for (later, later_mean) in later {
            for (earlier, earlier_mean) in earlier {
                scores.push(RelationScores {
                    later: *later,
                    earlier: *earlier,
                    probabilities: self
                        .relations
                        .probabilities(opening, later_mean, earlier_mean),
                });
            }
        }
        scores
    }
}

/// Pieces of a turn that are read: all of a short one, else some from shortly before the byte where
/// the first statement starts.
fn shown(pieces: &[TextPiece], first: usize) -> Range<usize> {
    if pieces.len() <= SIDE_PIECES {
        return 0..pieces.len();
    }
    let first = pieces.partition_point(|piece| piece.bytes.end <= first);
    let start = first.saturating_sub(PIECES_BEFORE);
    let start = start.min(pieces.len() - SIDE_PIECES);
    start..start + SIDE_PIECES
}

/// Time between two turns in words.
fn gap_words(gap: TimeDelta) -> String {
    let minutes = gap.num_minutes().max(0);
    let units = [
        (525_600, "years"),
        (43_200, "months"),
        (1_440, "days"),
        (60, "hours"),
    ];
    let unit = units.into_iter().find(|(size, _)| minutes >= *size);
    let (size, word) = unit.unwrap_or((1, "minutes"));
    format!("+{} {word}", minutes / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_in_their_largest_unit() {
        let told = |minutes| gap_words(TimeDelta::minutes(minutes));
        assert_eq!(told(-3), "+0 minutes");
        assert_eq!(told(59), "+59 minutes");
        assert_eq!(told(180), "+3 hours");
        assert_eq!(told(1_440 * 40), "+1 months");
        assert_eq!(told(525_600 * 2), "+2 years");
    }

    #[test]
    fn a_long_turn_is_read_around_its_first_statement() {
        let pieces: Vec<TextPiece> = (0..200)
            .map(|at| TextPiece {
                id: 7,
                bytes: at..at + 1,
            })
            .collect();
        assert_eq!(shown(&pieces[..90], 80), 0..90);
        assert_eq!(shown(&pieces, 100), 68..164);
        assert_eq!(shown(&pieces, 190), 104..200);
        assert_eq!(shown(&pieces, 3), 0..96);
    }
}
