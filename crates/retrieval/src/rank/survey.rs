//! The clues of a turn, from what ranking has computed anyway.

use super::{Column, Turn};
use crate::relevance::{Clue, Clues};
use crate::signal::Signal;
use crate::signals::Evidence;
use crate::standard::Standard;

/// What the turns of an answer are compared with.
pub(super) struct Survey<'a> {
    evidence: &'a Evidence<'a>,
    columns: &'a [Column],
    scores: Standard,
    best: f32,
    /// ln of their number.
    candidates: f32,
}

impl<'a> Survey<'a> {
    /// `scores` are those of all candidates.
    pub(super) fn new(
        scores: impl ExactSizeIterator<Item = f32> + Clone,
        columns: &'a [Column],
        evidence: &'a Evidence<'a>,
    ) -> Self {
        Self {
            evidence,
            columns,
            candidates: (scores.len().max(1) as f32).ln(),
            scores: Standard::of(scores.clone()),
            best: highest(scores),
        }
    }

    /// Those of a turn with this score.
    pub(super) fn clues(&self, turn: &Turn<'_>, score: f32) -> Clues {
        let standing = self.scores.score(score);
        let behind = self.scores.score(self.best) - standing;
        let date = self.raw(Signal::Date, turn);
        Clues::told(|clue| match clue {
            Clue::MaxsimWindow => self.raw(Signal::MaxsimWindow, turn),
            Clue::WordsSession => self.words_session(turn),
            Clue::OtherSpeaker => {
                let is_asked = self.evidence.asks_for_speaker(turn.opening());
                f32::from(is_asked && self.raw(Signal::Speaker, turn) == 0.0)
            }
            Clue::Date => date,
            Clue::OtherDate => f32::from(self.evidence.asks_for_date()) * (1.0 - date),
            Clue::Candidates => self.candidates,
            Clue::Standing => standing,
            Clue::Behind => behind,
            Clue::StandingAmong => standing * self.candidates,
            Clue::BehindAmong => behind * self.candidates,
        })
    }

    fn words_session(&self, turn: &Turn<'_>) -> f32 {
        let attainable = self.evidence.attainable_session();
        if attainable > 0.0 {
            self.raw(Signal::Bm25Session, turn) / attainable
        } else {
            0.0
        }
    }

    /// A signal before it was standardised, of the passage where it is highest; NaN where it was not computed.
    fn raw(&self, signal: Signal, turn: &Turn<'_>) -> f32 {
        let column = self.columns.iter().find(|column| column.signal == signal);
        column.map_or(f32::NAN, |column| {
            highest(column.passages[turn.range()].iter().copied())
        })
    }
}

/// `max` passes over what is missing.
fn highest(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(f32::NAN, f32::max)
}
