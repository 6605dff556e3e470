//! The memory tool calls of one turn: how many rounds, how many tokens, what was asked and what was given (AMP items 22–24, 29–31).
//!
//! [`Turn`] is plain data to be kept between calls, perhaps by several processes in turn. A *round* is one reply of the model that calls
//! memory, with all of its calls. The order of use: [`Turn::open`] a round, for each call [`Turn::ask`] and, if it is to run,
//! [`Turn::fresh`] and [`Turn::deliver`], then [`Turn::close`] the round; when [`Turn::must_finalize`], the next call of the model is the last.

mod asked;

use crate::tools::{Ask, BadArguments};
pub use memfleet_domain::assembly::Termination;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the model is told instead of results that it has.
pub const ALREADY_RETURNED: &str = "The results of this query were already returned in this turn. Use them, or ask for something else.";
/// What the model is told when nothing new is found.
pub const NOTHING_NEW: &str = "Nothing else was found. Answer with what you have.";

/// The limits of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Rounds that reach memory; 0 for none.
    pub rounds: u32,
    /// Tokens of all results together.
    pub tokens: u32,
    /// Tokens of one result.
    pub tokens_per_call: u32,
    /// Calls whose arguments are no JSON after which the model is taken for one that cannot call tools (AMP item 25). Who names the wrong field is
    /// told so, and may try again.
    pub malformed: u32,
    /// Rounds in a row that find nothing new.
    pub fruitless: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: 3,
            tokens: 8_000,
            tokens_per_call: 4_000,
            malformed: 2,
            fruitless: 2,
        }
    }
}

/// The state of one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    limits: Limits,
    rounds: u32,
    tokens: u32,
    malformed: u32,
    fruitless: u32,
    /// Digests of what was asked, normalised.
    asked: BTreeSet<String>,
    delivered: BTreeSet<String>,
    open: Option<Round>,
    termination: Option<Termination>,
}

/// What happened in the round that is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Round {
    calls: u32,
    repeated: u32,
    malformed: u32,
    new: u32,
}

/// What to do with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run it; its result may have this many tokens.
    Run {
        /// The call's limit or what is left of the turn's, whichever is less.
        tokens: u32,
    },
    /// Do not run it; these words are its result.
    Answer(&'static str),
    /// Do not run it; the turn's use of memory has ended.
    Ended(Termination),
}

/// More tokens than the call was allowed. Nothing is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a result of {tokens} tokens is over the {allowed} that are left")]
pub struct OverBudget {
    /// Of the result.
    pub tokens: u32,
    /// What it might have had.
    pub allowed: u32,
}

impl Turn {
    /// A turn that has asked nothing yet. `delivered` are ids that the prompt holds already.
    pub fn new(limits: Limits, delivered: impl IntoIterator<Item = String>) -> Self {
        Self {
            limits,
            rounds: 0,
            tokens: 0,
            malformed: 0,
            fruitless: 0,
            asked: BTreeSet::new(),
            delivered: delivered.into_iter().collect(),
            open: None,
            termination: None,
        }
    }

    /// Begins a round; one that is open is closed first. After the last round, or when the turn has ended, memory is not reached any more.
    pub fn open(&mut self) -> Result<(), Termination> {
        self.close();
        if let Some(termination) = self.termination {
            return Err(termination);
        }
        if self.rounds >= self.limits.rounds {
            return Err(self.end(Termination::RoundLimit));
        }
        self.rounds += 1;
        self.open = Some(Round::default());
        Ok(())
    }

    /// Whether a call is to be run. It belongs to the open round; where none is open, one is opened.
    pub fn ask(&mut self, ask: &Ask) -> Verdict {
        if self.open.is_none()
            && let Err(termination) = self.open()
        {
            return Verdict::Ended(termination);
        }
        let tokens = self.allowed();
        let is_new = self.asked.insert(asked::key(ask));
        let round = self.open.get_or_insert_default();
        round.calls += 1;
        if !is_new {
            round.repeated += 1;
            return Verdict::Answer(ALREADY_RETURNED);
        }
        if tokens == 0 {
            return Verdict::Ended(self.end(Termination::TokenBudget));
        }
        Verdict::Run { tokens }
    }

    /// Notes a call whose arguments are wrong, and gives the words that are its result (AMP item 31).
    pub fn reject(&mut self, error: &BadArguments) -> String {
        if self.open.is_some() || self.open().is_ok() {
            let round = self.open.get_or_insert_default();
            round.calls += 1;
            round.malformed += 1;
        }
        if *error == BadArguments::NotAnObject {
            self.malformed = self.malformed.saturating_add(1);
        }
        if self.malformed >= self.limits.malformed {
            self.end(Termination::ToolsRejected);
        }
        format!("Error: {error}.")
    }

    /// The ids that were not given in this turn before, each once, in their order (AMP item 30).
    pub fn fresh<'i>(&self, ids: &[&'i str]) -> Vec<&'i str> {
        let mut seen = BTreeSet::new();
        ids.iter()
            .copied()
            .filter(|id| !self.delivered.contains(*id) && seen.insert(*id))
            .collect()
    }

    /// Notes what a call's result holds and how many tokens it has, its notices among them (AMP item 29).
    pub fn deliver(&mut self, ids: &[&str], tokens: u32) -> Result<(), OverBudget> {
        let allowed = self.allowed();
        if tokens > allowed {
            return Err(OverBudget { tokens, allowed });
        }
        self.tokens += tokens;
        let before = self.delivered.len();
        self.delivered.extend(ids.iter().map(|id| (*id).to_owned()));
        let round = self.open.get_or_insert_default();
        round.new += (self.delivered.len() - before) as u32;
        Ok(())
    }

    /// Ends a round and sees whether another may follow.
    pub fn close(&mut self) -> Option<Termination> {
        let round = self.open.take()?;
        if round.new > 0 {
            self.fruitless = 0;
        } else if round.malformed < round.calls {
            self.fruitless += 1;
        }
        let only_repeated = round.calls > 0 && round.repeated == round.calls;
        let end = match () {
            () if only_repeated => Some(Termination::RepeatedQuery),
            () if self.fruitless >= self.limits.fruitless => Some(Termination::NoNewResults),
            () if self.tokens >= self.limits.tokens => Some(Termination::TokenBudget),
            () if self.rounds >= self.limits.rounds => Some(Termination::RoundLimit),
            () => None,
        };
        if let Some(termination) = end {
            self.end(termination);
        }
        self.termination
    }

    /// Ends the turn for a reason from outside. The first reason stands.
    pub fn end(&mut self, termination: Termination) -> Termination {
        *self.termination.get_or_insert(termination)
    }

    /// It without what was asked: what it found is forgotten, and may be asked for again. All that was counted stays.
    #[must_use]
    pub fn forgotten(&self) -> Self {
        Self {
            asked: BTreeSet::new(),
            ..self.clone()
        }
    }

    /// Notes that nothing came of what was asked: it may be asked again. The call and its round count.
    pub fn take_back(&mut self, ask: &Ask) {
        self.asked.remove(&asked::key(ask));
    }

    /// Goes on with a turn whose client came back with its tools' results.
    pub fn resume(&mut self) {
        if self.termination == Some(Termination::ClientToolPending) {
            self.termination = None;
        }
    }

    /// Why the turn ended; `None` while it goes on.
    pub fn termination(&self) -> Option<Termination> {
        self.termination
    }

    /// Whether the next call of the model has to be its last: without memory tools, or with tools forbidden (AMP item 23). Further calls of
    /// a round that is open may still be run.
    pub fn must_finalize(&self) -> bool {
        self.termination.is_some() || self.rounds >= self.limits.rounds || self.tokens_left() == 0
    }

    /// Rounds used.
    pub fn rounds_used(&self) -> u32 {
        self.rounds
    }

    /// Rounds left.
    pub fn rounds_left(&self) -> u32 {
        match self.termination {
            Some(_) => 0,
            None => self.limits.rounds.saturating_sub(self.rounds),
        }
    }

    /// Tokens given.
    pub fn tokens_used(&self) -> u32 {
        self.tokens
    }

    /// Tokens left for all further results.
    pub fn tokens_left(&self) -> u32 {
        self.limits.tokens.saturating_sub(self.tokens)
    }

    /// The ids given, those that were in the prompt among them.
    pub fn delivered(&self) -> impl Iterator<Item = &str> {
        self.delivered.iter().map(String::as_str)
    }

    fn allowed(&self) -> u32 {
        self.tokens_left().min(self.limits.tokens_per_call)
    }
}

#[cfg(test)]
mod tests;
