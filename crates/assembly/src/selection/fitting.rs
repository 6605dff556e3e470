//! Fitting: a candidate whole, as its relevant sentences, or as its beginning.

use super::Chosen;
use crate::block::{Extent, Reason};
use crate::candidate::Candidate;
use crate::excerpt::{self, Pieces};
use crate::options::Options;
use crate::{render, truncate};
use std::ops::Range;

/// An excerpted item gets at most this share of the budget while others wait …
const FAIR_SHARE: usize = 6;
/// … but so many tokens in any case: about one passage of 700 characters.
const FAIR_TOKENS: usize = 150;
/// Cutting costs more than it brings once this many items in a row gave no useful excerpt for the room that is left.
const VAIN_CUTS: usize = 4;
/// A guess of the bytes of a token, where the search for a cut begins.
const TOKEN_BYTES: usize = 4;

/// Makes candidates fit.
pub(crate) struct Fitting<'a> {
    candidates: &'a [Candidate<'a>],
    options: &'a Options<'a>,
    /// The longest key that an item can have: which one it gets is known in the end.
    key: String,
    vain_cuts: usize,
}

impl<'a> Fitting<'a> {
    pub(crate) fn new(candidates: &'a [Candidate<'a>], options: &'a Options<'a>) -> Self {
        Self {
            candidates,
            options,
            key: render::key(candidates.len(), options),
            vain_cuts: 0,
        }
    }

    /// A candidate whole if it fits its share, else as an excerpt of that share, else whole if there is room.
    pub(super) fn fit(&mut self, index: usize, room: usize) -> Result<Chosen, Reason> {
        let candidate = &self.candidates[index];
        let most = self.most();
        let limit = room.min(most);
        let may_cut = self.options.excerpts
            && candidate.sentence_scores.is_some()
            && self.vain_cuts < VAIN_CUTS;
        let fair = (self.options.budget_tokens / FAIR_SHARE).max(FAIR_TOKENS);
        // A little over its share is not worth a cut.
        let share = if may_cut { fair + fair / 4 } else { usize::MAX };
        let mut whole = None;
        if words(candidate.text) <= limit.min(share) {
            let chosen = self.whole(index).ok_or(Reason::Blank)?;
            if chosen.tokens <= limit.min(share) {
                return Ok(chosen);
            }
            whole = Some(chosen);
        }
        if may_cut {
            if let Some(cut) = self.excerpt(index, limit.min(fair)) {
                self.vain_cuts = 0;
                return Ok(cut);
            }
            self.vain_cuts += 1;
        }
        let least = whole
            .as_ref()
            .map_or_else(|| words(candidate.text), |whole| whole.tokens);
        let whole = whole.or_else(|| (least <= limit).then(|| self.whole(index)).flatten());
        match whole.filter(|whole| whole.tokens <= limit) {
            Some(whole) => Ok(whole),
            None if least <= most => Err(Reason::Budget),
            None if !self.options.cut_at_end => Err(Reason::TooLong),
            // Its size is that of the longest item: where there is less room it is left out as any other.
            None if room < most => Err(Reason::Budget),
            None => self.beginning(index, most).ok_or(Reason::TooLong),
        }
    }

    /// The tokens that one item may have.
    fn most(&self) -> usize {
        self.options.per_item_tokens.unwrap_or(usize::MAX)
    }

    /// A candidate with all its text if that has at most `room` tokens.
    pub(super) fn whole_within(&self, index: usize, room: usize) -> Option<Chosen> {
        let limit = room.min(self.most());
        if words(self.candidates[index].text) > limit {
            return None;
        }
        self.whole(index).filter(|whole| whole.tokens <= limit)
    }

    /// A candidate with all its text; `None` if nothing of it is visible.
    pub(crate) fn whole(&self, index: usize) -> Option<Chosen> {
        self.shown(index, Extent::Whole)
    }

    /// What another item does not show of it, if that fits.
    pub(super) fn trimmed(
        &self,
        index: usize,
        rest: Range<usize>,
        room: usize,
    ) -> Result<Chosen, Reason> {
        let shown = self.shown(index, Extent::Excerpt(vec![rest]));
        let shown = shown.ok_or(Reason::Blank)?;
        if shown.tokens > self.most() {
            return Err(Reason::TooLong);
        }
        if shown.tokens > room {
            return Err(Reason::Budget);
        }
        Ok(Chosen {
            trimmed: true,
            ..shown
        })
    }

    fn shown(&self, index: usize, extent: Extent) -> Option<Chosen> {
        let candidate = &self.candidates[index];
        let line = match &extent {
            Extent::Whole => render::line(candidate, candidate.text, self.options),
            Extent::Excerpt(ranges) => {
                let text = excerpt::text(candidate.text, ranges);
                render::line(candidate, &text, self.options)
            }
        }?;
        Some(Chosen {
            candidate: index,
            extent,
            tokens: self.count(&line),
            line,
            trimmed: false,
            merged: Vec::new(),
        })
    }

    fn count(&self, line: &str) -> usize {
        if self.key.is_empty() {
            return self.options.tokenizer.count(line);
        }
        self.options.tokenizer.count(&[&self.key, line].concat())
    }

    /// Its relevant sentences in at most `room` tokens, if that is useful.
    fn excerpt(&self, index: usize, room: usize) -> Option<Chosen> {
        let candidate = &self.candidates[index];
        if room < self.options.minimum_useful_tokens {
            return None;
        }
        let pieces = Pieces::of(candidate, self.options.tokenizer)?;
        let head = render::line(candidate, "-", self.options)?;
        let mut target = room.saturating_sub(self.count(&head));
        // Counts of pieces do not add up exactly: ask for less until the line as a whole fits.
        for _ in 0..4 {
            let ranges = pieces.choose(target);
            if ranges.is_empty() {
                return None;
            }
            let excerpt = self.shown(index, Extent::Excerpt(ranges))?;
            if excerpt.tokens <= room {
                return self.useful(excerpt);
            }
            target = target.saturating_sub(excerpt.tokens - room + 1);
        }
        None
    }

    /// As much of its beginning as `room` and the limit of one item allow, if that is useful.
    pub(super) fn beginning(&self, index: usize, room: usize) -> Option<Chosen> {
        let room = room.min(self.most());
        let text = self.candidates[index].text;
        let beginning = |end: usize| {
            let ranges = std::iter::once(0..end).collect();
            let shown = self.shown(index, Extent::Excerpt(ranges));
            shown.filter(|shown| shown.tokens <= room)
        };
        let guess = room.saturating_mul(TOKEN_BYTES);
        let end = truncate::cut(text, guess, |end| end > 0 && beginning(end).is_some())?;
        self.useful(beginning(end)?)
    }

    fn useful(&self, chosen: Chosen) -> Option<Chosen> {
        (chosen.tokens >= self.options.minimum_useful_tokens).then_some(chosen)
    }
}

/// The words of a text between white space. Tokenizers do not join words, so a text has at least so many tokens; one that
/// has more words than there is room need not be counted.
pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().count()
}
