//! Gate 1: what the words of one utterance say about memory, by rules whose words are data (`data/rules`).
//!
//! A pleasantry is skipped only when phrases of the data cover the whole utterance; a word that is left over leaves it undecided. So does
//! a language that the data does not know, and anything long.

mod characters;
mod code;
mod command;
mod lexicon;
mod lists;
mod pleasantry;
mod recall;
mod tokens;

use std::sync::LazyLock;

use memfleet_domain::assembly::{GateOutcome, Reason};

pub(crate) use characters::{asks, is_punctuation, is_word};
pub(crate) use code::is_code;
use command::Commands;
use lexicon::Lexicon;

/// Version of the rules and their data; counts up with every change of either.
pub const VERSION: &str = "4";

/// The longest text that can be a pleasantry, in bytes.
const LONGEST_PLEASANTRY: usize = 400;

/// What a user says in a turn.
#[derive(Debug, Clone, Copy)]
pub struct Utterance<'a> {
    /// The text as the user wrote it.
    pub text: &'a str,
    /// Its conversation so far.
    pub before: Before,
}

/// Conversation before an utterance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Before {
    /// Nothing: it opens the conversation.
    #[default]
    Nothing,
    /// Turns; "yes" then answers one of them.
    Turns,
    /// Turns, of which the assistant's last one asks: whatever follows is an answer that the
    /// assistant goes on from.
    Question,
}

impl Before {
    /// Conversation before an utterance, where it has turns, by the last one of the
    /// assistant.
    pub fn reply(text: &str) -> Self {
        match asks(text) {
            true => Self::Question,
            false => Self::Turns,
        }
    }
}

/// What the rules say of an utterance, and by which of them (AMP item 51).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// `Skip`, `Force`, or `Pass` where the rules cannot tell.
    pub outcome: GateOutcome,
    /// Why.
    pub reason: Reason,
    /// Id of the rule, for example `pleasantry.en.thanks`; none where no rule matches.
    pub rule: Option<String>,
    /// What of the data it matched, for example `thanks a lot`; none for a rule without data.
    pub pattern: Option<String>,
    /// [`VERSION`] of the rules.
    pub version: &'static str,
}

impl Judgement {
    fn new(outcome: GateOutcome, reason: Reason, hit: Option<Hit>) -> Self {
        let (rule, pattern) = hit.map(|hit| (hit.rule, hit.pattern)).unzip();
        Self {
            outcome,
            reason,
            rule,
            pattern: pattern.filter(|pattern| !pattern.is_empty()),
            version: VERSION,
        }
    }
}

/// The rule that matched, and the phrase of the data; empty for a rule without data.
struct Hit {
    rule: String,
    pattern: String,
}

/// The rules with their data.
pub struct Rules {
    lexicon: Lexicon,
    commands: Commands,
}

impl Rules {
    /// The rules that come with memfleet; read once a process.
    pub fn shipped() -> &'static Self {
        static SHIPPED: LazyLock<Rules> = LazyLock::new(|| Rules {
            lexicon: Lexicon::shipped(),
            commands: Commands::shipped(),
        });
        &SHIPPED
    }

    /// Judges one utterance. Never panics, and looks at a bounded part of a long one.
    pub fn judge(&self, utterance: Utterance<'_>) -> Judgement {
        let text = utterance.text;
        if characters::is_empty(text) {
            return skip(Reason::Empty, "empty", "");
        }
        if let Some(command) = self.commands.find(text) {
            return skip(Reason::Command, "command", command);
        }
        if utterance.before == Before::Question {
            return self.refers(text);
        }
        if text.len() <= LONGEST_PLEASANTRY
            && let Some(hit) = pleasantry::find(&self.lexicon, utterance)
        {
            return Judgement::new(GateOutcome::Skip, Reason::Pleasantry, Some(hit));
        }
        // After a turn of the assistant, code may be what it asked for.
        if utterance.before == Before::Nothing
            && let Some(kind) = code::find(text)
        {
            return skip(Reason::CodeOnly, kind, "");
        }
        self.refers(text)
    }

    /// Judges what is not skipped.
    fn refers(&self, text: &str) -> Judgement {
        match recall::find(&self.lexicon, text) {
            Some(hit) => Judgement::new(GateOutcome::Force, Reason::MemoryReference, Some(hit)),
            None => Judgement::new(GateOutcome::Pass, Reason::Undecided, None),
        }
    }
}

fn skip(reason: Reason, rule: &str, pattern: &str) -> Judgement {
    let hit = Hit {
        rule: rule.to_owned(),
        pattern: pattern.to_owned(),
    };
    Judgement::new(GateOutcome::Skip, reason, Some(hit))
}

#[cfg(test)]
mod tests;
