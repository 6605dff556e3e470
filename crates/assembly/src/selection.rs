//! Selection: which candidates enter, whole or as excerpts.
//!
//! Candidates are taken in rank order, and one that does not fit is skipped for smaller ones behind it: nothing is packed while something of
//! higher rank that fits is left out. Orders by value per token were measured on LoCoMo and gave no lasting gain over this. With
//! excerpts allowed an item first gets at most a fair share of the budget; what is left in the end lets excerpts grow back to whole ones.

mod admission;
mod fitting;
mod lineage;
mod windows;

pub(crate) use fitting::Fitting;
use fitting::words;

use crate::block::{Extent, LeftOut, Reason, Trace};
use crate::candidate::Candidate;
use crate::duplicates::{Duplicates, Said};
use crate::options::{Options, Order};
use crate::ranking::Ranking;
use crate::render::{self, HeadingKey};
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use windows::Windows;

/// A candidate that was chosen.
pub(crate) struct Chosen {
    pub(crate) candidate: usize,
    pub(crate) extent: Extent,
    pub(crate) line: String,
    pub(crate) tokens: usize,
    /// What is not shown of it stands in another item: it does not grow.
    pub(crate) trimmed: bool,
    /// Candidates that stand behind it.
    pub(crate) merged: Vec<usize>,
}

/// The choice so far.
pub(crate) struct Selection<'a> {
    candidates: &'a [Candidate<'a>],
    options: &'a Options<'a>,
    fitting: Fitting<'a>,
    pub(crate) ranking: Ranking<'a>,
    /// Tokens that are left, by the sum of the lines' counts; the whole block is counted in the end.
    room: usize,
    headings: HashMap<(HeadingKey, Option<u64>), usize>,
    duplicates: Duplicates,
    windows: Windows<'a>,
    /// Candidates by their ids.
    known: HashMap<&'a str, usize>,
    /// Candidates that were considered.
    decided: Vec<bool>,
    /// The places in `chosen` of those that have an id.
    ids: HashMap<&'a str, usize>,
    /// The numbers of words of what was chosen.
    lengths: HashSet<usize>,
    /// Of each session and source, how many were chosen.
    sessions: HashMap<u64, usize>,
    sources: HashMap<&'a str, usize>,
    pub(crate) chosen: Vec<Chosen>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) trace: Trace,
}

impl<'a> Selection<'a> {
    /// Chooses from all candidates; `chosen` is in the order of choice.
    pub(crate) fn of(candidates: &'a [Candidate<'a>], options: &'a Options<'a>) -> Self {
        let (open, close) = render::frame(options);
        let open = [options.place.separator, &open].concat();
        let tokenizer = options.tokenizer;
        let frame = tokenizer.added(options.place.before, &open) + tokenizer.count(&close);
        let admission = admission::of(candidates, options);
        let mut selection = Self {
            candidates,
            options,
            fitting: Fitting::new(candidates, options),
            ranking: Ranking::of(candidates, options),
            room: options.budget_tokens.saturating_sub(frame),
            headings: HashMap::new(),
            duplicates: Duplicates::default(),
            windows: Windows::default(),
            known: by_id(candidates),
            decided: vec![false; candidates.len()],
            ids: HashMap::new(),
            lengths: HashSet::new(),
            sessions: HashMap::new(),
            sources: HashMap::new(),
            chosen: Vec::new(),
            left_out: Vec::new(),
            trace: admission.trace,
        };
        while let Some(index) = selection.ranking.next() {
            // A successor is decided before the candidate that it ended.
            for index in selection.chain_to(index).into_iter().rev() {
                selection.decide(index, admission.refused[index]);
            }
        }
        selection.rescue();
        selection.absorb();
        selection.grow();
        selection
    }

    /// A candidate, what says how it is now, and so on, as far as they are not decided yet.
    fn chain_to(&self, index: usize) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut next = Some(index);
        while let Some(index) = next.filter(|at| !self.decided[*at] && !chain.contains(at)) {
            chain.push(index);
            let successor = self.candidates[index].successor;
            next = successor.and_then(|id| self.known.get(id).copied());
        }
        chain
    }

    fn decide(&mut self, index: usize, refused: Option<Reason>) {
        self.decided[index] = true;
        let admitted = refused.map_or(Ok(()), Err);
        let beside = admitted.and_then(|()| self.beside_successor(index));
        if let Err(reason) = beside.and_then(|()| self.consider(index)) {
            self.leave_out(index, reason);
        }
    }

    /// Refuses a candidate whose successor was left out for want of room.
    fn beside_successor(&self, index: usize) -> Result<(), Reason> {
        let successor = self.candidates[index].successor;
        let Some(successor) = successor.and_then(|id| self.known.get(id)) else {
            return Ok(());
        };
        let lacks_room = |left: &LeftOut| {
            let reasons = [
                Reason::Budget,
                Reason::TooLong,
                Reason::MaxItems,
                Reason::PerSessionCap,
                Reason::PerSourceCap,
                Reason::Superseded,
            ];
            left.candidate == *successor && reasons.contains(&left.reason)
        };
        match self.left_out.iter().any(lacks_room) {
            true => Err(Reason::Superseded),
            false => Ok(()),
        }
    }

    fn leave_out(&mut self, candidate: usize, reason: Reason) {
        self.left_out.push(LeftOut { candidate, reason });
    }

    fn consider(&mut self, index: usize) -> Result<(), Reason> {
        let candidate = &self.candidates[index];
        let said = LazyCell::new(|| Said::of(candidate.speaker, candidate.text));
        if let Some(at) = self.repeats(candidate, || *said) {
            return Err(self.duplicate(index, at));
        }
        if let Some(at) = self.derived_from_shown(candidate) {
            self.chosen[at].merged.push(index);
            return Err(Reason::DerivedFromIncluded);
        }
        self.capped(candidate)?;
        let heading = self.heading_tokens(index);
        let room = self.room.checked_sub(heading).ok_or(Reason::Budget)?;
        let chosen = match self.windows.untold(candidate) {
            Ok(rest) if rest.len() == candidate.text.len() => self.fitting.fit(index, room)?,
            Ok(rest) => self.fitting.trimmed(index, rest, room)?,
            Err(at) => return Err(self.duplicate(index, at)),
        };
        // What does not fit is not compared at such length.
        if let Some(earlier) = self.duplicates.check(index, *said) {
            let at = self
                .place_of(earlier)
                .expect("only what was chosen is remembered");
            return Err(self.duplicate(index, at));
        }
        self.add(chosen);
        Ok(())
    }

    /// Which of the chosen has the same id, or says the same.
    fn repeats(&self, candidate: &Candidate<'_>, said: impl FnOnce() -> Said) -> Option<usize> {
        let by_id = self.ids.get(candidate.id).copied();
        by_id.or_else(|| {
            // Folding is dear: most texts that do not fit are told apart by their length.
            let like = self.lengths.contains(&words(candidate.text));
            like.then(|| self.duplicates.earlier(said()))
                .flatten()
                .and_then(|earlier| self.place_of(earlier))
        })
    }

    fn place_of(&self, candidate: usize) -> Option<usize> {
        let is_it = |chosen: &Chosen| chosen.candidate == candidate;
        self.chosen.iter().position(is_it)
    }

    fn duplicate(&mut self, index: usize, at: usize) -> Reason {
        self.chosen[at].merged.push(index);
        Reason::Duplicate(self.chosen[at].candidate)
    }

    fn capped(&self, candidate: &Candidate<'_>) -> Result<(), Reason> {
        let full = |most: Option<usize>, count: usize| most.is_some_and(|most| count >= most);
        let of_session = self.sessions.get(&candidate.session).copied();
        let of_source = self.sources.get(candidate.source).copied();
        if full(self.options.max_items, self.chosen.len()) {
            Err(Reason::MaxItems)
        } else if full(self.options.max_per_session, of_session.unwrap_or(0)) {
            Err(Reason::PerSessionCap)
        } else if full(self.options.max_per_source, of_source.unwrap_or(0)) {
            Err(Reason::PerSourceCap)
        } else if self.room < 2 {
            Err(Reason::Budget)
        } else {
            Ok(())
        }
    }

    fn add(&mut self, chosen: Chosen) {
        let candidate = &self.candidates[chosen.candidate];
        let heading = self.heading_tokens(chosen.candidate);
        self.headings
            .insert(self.heading_place(chosen.candidate), 0);
        self.room = self.room.saturating_sub(chosen.tokens + heading);
        *self.sessions.entry(candidate.session).or_default() += 1;
        *self.sources.entry(candidate.source).or_default() += 1;
        self.lengths.insert(words(candidate.text));
        let place = self.chosen.len();
        if !candidate.id.is_empty() {
            self.ids.insert(candidate.id, place);
        }
        if chosen.extent == Extent::Whole {
            self.windows.insert(candidate, place);
        }
        self.ranking.chosen(chosen.candidate);
        self.chosen.push(chosen);
    }

    /// The tokens that a candidate's heading would add: none if it is there already. What has no date stands under a blank line, with which no block
    /// begins.
    fn heading_tokens(&mut self, index: usize) -> usize {
        let candidate = &self.candidates[index];
        if self.chosen.is_empty() && !render::has_date(candidate, self.options) {
            return 0;
        }
        let count = || {
            let heading = render::heading(candidate, self.options);
            self.options.tokenizer.count(&heading)
        };
        let place = self.heading_place(index);
        *self.headings.entry(place).or_insert_with(count)
    }

    /// What shares a heading: what stands together in the order of the block.
    fn heading_place(&self, index: usize) -> (HeadingKey, Option<u64>) {
        let candidate = &self.candidates[index];
        let together = match self.options.order {
            Order::Chronological => None,
            Order::BestLast => Some(candidate.session),
            Order::Rank | Order::Sandwich => Some(index as u64),
        };
        (render::heading_key(candidate, self.options), together)
    }

    /// Where nothing fits, the best of what is too long is cut to what there is (AMP item 72).
    fn rescue(&mut self) {
        if !self.chosen.is_empty() || !self.options.cut_at_end {
            return;
        }
        let too_long = |left: &LeftOut| matches!(left.reason, Reason::Budget | Reason::TooLong);
        let Some(at) = self.left_out.iter().position(too_long) else {
            return;
        };
        let index = self.left_out[at].candidate;
        let room = self.room.saturating_sub(self.heading_tokens(index));
        if let Some(cut) = self.fitting.beginning(index, room) {
            self.left_out.remove(at);
            self.add(cut);
        }
    }

    /// Lets excerpts become whole again, best first, as far as room is left.
    fn grow(&mut self) {
        for at in 0..self.chosen.len() {
            let chosen = &self.chosen[at];
            if chosen.extent == Extent::Whole || chosen.trimmed {
                continue;
            }
            let (index, tokens) = (chosen.candidate, chosen.tokens);
            if let Some(whole) = self.fitting.whole_within(index, tokens + self.room) {
                self.room = self.room + tokens - whole.tokens;
                let merged = std::mem::take(&mut self.chosen[at].merged);
                self.chosen[at] = Chosen { merged, ..whole };
            }
        }
    }
}

/// Candidates by their ids; of those that share one the first.
fn by_id<'a>(candidates: &'a [Candidate<'a>]) -> HashMap<&'a str, usize> {
    let mut known = HashMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        if !candidate.id.is_empty() {
            known.entry(candidate.id).or_insert(index);
        }
    }
    known
}
