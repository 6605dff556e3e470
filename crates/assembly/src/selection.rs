//! Selection: which candidates enter, whole or as excerpts.
//!
//! Candidates are taken in rank order, and one that does not fit is skipped for smaller ones behind it. Orders by value per token
//! were measured on LoCoMo and gave no lasting gain over this. With excerpts allowed a turn first gets at most a fair share of
//! the budget; what is left in the end lets excerpts grow back to whole turns.

use crate::block::{Extent, LeftOut, Reason};
use crate::candidate::Candidate;
use crate::duplicates::Duplicates;
use crate::excerpt::{self, Pieces};
use crate::options::Options;
use crate::render::{self, HeadingKey};
use std::collections::HashMap;

/// An excerpted turn gets at most this share of the budget while others wait …
const FAIR_SHARE: usize = 6;
/// … but so many tokens in any case: about one passage of 700 characters.
const FAIR_TOKENS: usize = 150;
/// Cutting costs more than it brings once this many turns in a row gave no useful excerpt for the room that is left.
const VAIN_CUTS: usize = 4;

/// A candidate that was chosen.
pub(crate) struct Chosen {
    pub(crate) candidate: usize,
    pub(crate) extent: Extent,
    pub(crate) line: String,
    pub(crate) tokens: usize,
}

/// The choice so far.
pub(crate) struct Selection<'a> {
    candidates: &'a [Candidate<'a>],
    options: &'a Options<'a>,
    /// Tokens that are left, by the sum of the lines' counts; the whole block is counted in the end.
    room: usize,
    headings: HashMap<HeadingKey, usize>,
    duplicates: Duplicates,
    vain_cuts: usize,
    pub(crate) chosen: Vec<Chosen>,
    pub(crate) left_out: Vec<LeftOut>,
}

impl<'a> Selection<'a> {
    /// Chooses from all candidates; `chosen` and `left_out` are in rank order.
    pub(crate) fn of(candidates: &'a [Candidate<'a>], options: &'a Options<'a>) -> Self {
        let (open, close) = render::enclosure(options);
        let enclosure = options.tokenizer.count(&open) + options.tokenizer.count(&close);
        let mut selection = Self {
            candidates,
            options,
            room: options.budget_tokens.saturating_sub(enclosure),
            headings: HashMap::new(),
            duplicates: Duplicates::default(),
            vain_cuts: 0,
            chosen: Vec::new(),
            left_out: Vec::new(),
        };
        let mut ranked: Vec<usize> = (0..candidates.len()).collect();
        ranked.sort_by(|&left, &right| candidates[left].by_rank(&candidates[right]));
        for index in ranked {
            if let Err(reason) = selection.consider(index) {
                selection.left_out.push(LeftOut {
                    candidate: index,
                    reason,
                });
            }
        }
        selection.grow();
        selection
    }

    fn consider(&mut self, index: usize) -> Result<(), Reason> {
        let candidate = &self.candidates[index];
        if !candidate.score.is_finite() {
            return Err(Reason::InvalidScore);
        }
        if self
            .options
            .max_items
            .is_some_and(|most| self.chosen.len() >= most)
        {
            return Err(Reason::MaxItems);
        }
        if self.room < 2 {
            return Err(Reason::Budget);
        }
        let heading = self.heading_tokens(candidate);
        let room = self.room.checked_sub(heading).ok_or(Reason::Budget)?;
        let chosen = self.fit(index, room)?;
        if let Some(earlier) = self
            .duplicates
            .check(index, candidate.speaker, candidate.text)
        {
            return Err(Reason::DuplicateOf(earlier));
        }
        self.add(chosen);
        Ok(())
    }

    /// A candidate whole if it fits its share, else as an excerpt of that share, else whole if there is room.
    fn fit(&mut self, index: usize, room: usize) -> Result<Chosen, Reason> {
        let candidate = &self.candidates[index];
        let most = self.options.per_item_tokens.unwrap_or(usize::MAX);
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
            if let Some(cut) = self.cut(index, limit.min(fair)) {
                self.vain_cuts = 0;
                return Ok(cut);
            }
            self.vain_cuts += 1;
        }
        let least = whole
            .as_ref()
            .map_or_else(|| words(candidate.text), |whole| whole.tokens);
        let refusal = if least > most {
            Reason::TooLong
        } else {
            Reason::Budget
        };
        let whole = whole.or_else(|| (least <= limit).then(|| self.whole(index)).flatten());
        whole.filter(|whole| whole.tokens <= limit).ok_or(refusal)
    }

    /// A candidate with all its text; `None` if nothing of it is visible.
    fn whole(&self, index: usize) -> Option<Chosen> {
        let candidate = &self.candidates[index];
        let line = render::line(candidate, candidate.text, self.options)?;
        let tokens = self.options.tokenizer.count(&line);
        Some(Chosen {
            candidate: index,
            extent: Extent::Whole,
            line,
            tokens,
        })
    }

    /// An excerpt whose line has at most `room` tokens, if a useful one can be had.
    fn cut(&self, index: usize, room: usize) -> Option<Chosen> {
        let candidate = &self.candidates[index];
        if room < self.options.minimum_useful_tokens {
            return None;
        }
        let pieces = Pieces::of(candidate, self.options.tokenizer)?;
        let speaker = render::line(candidate, "-", self.options)?;
        let mut target = room.saturating_sub(self.options.tokenizer.count(&speaker));
        // Counts of pieces do not add up exactly: ask for less until the line as a whole fits.
        for _ in 0..4 {
            let ranges = pieces.choose(target);
            if ranges.is_empty() {
                return None;
            }
            let line = render::line(
                candidate,
                &excerpt::text(candidate.text, &ranges),
                self.options,
            )?;
            let tokens = self.options.tokenizer.count(&line);
            if tokens <= room {
                let useful = tokens >= self.options.minimum_useful_tokens;
                return useful.then_some(Chosen {
                    candidate: index,
                    extent: Extent::Excerpt(ranges),
                    line,
                    tokens,
                });
            }
            target = target.saturating_sub(tokens - room + 1);
        }
        None
    }

    fn add(&mut self, chosen: Chosen) {
        let candidate = &self.candidates[chosen.candidate];
        let heading = self.heading_tokens(candidate);
        self.headings
            .insert(render::heading_key(candidate, self.options), 0);
        self.room = self.room.saturating_sub(chosen.tokens + heading);
        self.chosen.push(chosen);
    }

    /// The tokens that a candidate's heading would add: none if it is there already.
    fn heading_tokens(&mut self, candidate: &Candidate<'_>) -> usize {
        let key = render::heading_key(candidate, self.options);
        let count = || {
            self.options
                .tokenizer
                .count(&render::heading(candidate, self.options))
        };
        *self.headings.entry(key).or_insert_with(count)
    }

    /// Lets excerpts become whole turns again, best first, as far as room is left.
    fn grow(&mut self) {
        let most = self.options.per_item_tokens.unwrap_or(usize::MAX);
        for at in 0..self.chosen.len() {
            let Chosen {
                candidate, tokens, ..
            } = self.chosen[at];
            let limit = (tokens + self.room).min(most);
            if self.chosen[at].extent == Extent::Whole
                || words(self.candidates[candidate].text) > limit
            {
                continue;
            }
            if let Some(whole) = self.whole(candidate).filter(|whole| whole.tokens <= limit) {
                self.room = self.room + tokens - whole.tokens;
                self.chosen[at] = whole;
            }
        }
    }
}

/// The words of a text between white space. Tokenizers do not join words, so a text has at least so many tokens; one that
/// has more words than there is room need not be counted.
fn words(text: &str) -> usize {
    text.split_whitespace().count()
}
