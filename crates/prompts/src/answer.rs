//! A question answered from memory, with citations to turns, in free text so that it can be streamed. [`Citations`] reads it piece
//! by piece: what it cites was shown, or the citation is left out.

use memfleet_domain::Timestamp;
use memfleet_domain::ids::TurnId;
use memfleet_ports::language_model::{Agent, Call, PromptId};
use serde::Serialize;
use tokio::time::Instant;

use crate::handles::{self, Turn, named};
use crate::press::{Press, Template};

/// What a model says where the turns hold no answer.
const ABSTAINS: &str = "NOT_IN_MEMORY";
/// Longest citation, in bytes: a bracket that is longer is text.
const CITATION: usize = 64;

/// A question with what memory holds of it.
#[derive(Serialize)]
pub struct Question<'a> {
    /// The question.
    pub question: &'a str,
    /// When it is asked.
    pub now: Timestamp,
    /// What was found, in order of time.
    #[serde(serialize_with = "handles::turns")]
    pub turns: &'a [Turn],
    /// Sentences derived from them: facts as they are at present, summaries.
    pub derived: &'a [String],
}

impl Template for Question<'_> {
    const ID: PromptId = PromptId {
        name: "answer",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/answer.v1.j2");
}

impl Press {
    /// The call of a question.
    pub fn question(&self, question: &Question<'_>, deadline: Instant) -> Call {
        Call {
            agent: Agent::Answer,
            prompt: Question::ID,
            messages: self.print(question),
            schema: None,
            deadline,
        }
    }
}

/// Part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Words for the reader.
    Text(String),
    /// Where the words before it are from.
    Cites(TurnId),
    /// Memory holds no answer. Nothing else comes.
    Abstains,
}

/// Reads an answer as it arrives.
#[derive(Debug)]
pub struct Citations {
    /// The turns that were shown, in their order.
    turns: Vec<TurnId>,
    /// Text that may still become a citation, or the word for no answer.
    held: String,
    has_begun: bool,
    has_ended: bool,
    /// Citations of what was not shown.
    pub unknown: u32,
}

impl Citations {
    /// Of an answer to a question with these turns.
    pub fn of(turns: &[Turn]) -> Self {
        Self {
            turns: turns.iter().map(|turn| turn.id).collect(),
            held: String::new(),
            has_begun: false,
            has_ended: false,
            unknown: 0,
        }
    }

    /// What more text brings.
    pub fn push(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        self.read(false)
    }

    /// What is left when the answer is complete.
    pub fn finish(&mut self) -> Vec<Part> {
        self.read(true)
    }

    fn read(&mut self, is_last: bool) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.has_ended || !self.begins(is_last, &mut parts) {
            return parts;
        }
        while let Some(open) = self.held.find('[') {
            emit(&mut parts, &self.held[..open]);
            self.held.drain(..open);
            match self.held.find(']') {
                Some(close) if close <= CITATION => {
                    let inside = self.held[1..close].to_owned();
                    let taken: String = self.held.drain(..=close).collect();
                    if !self.cite(&inside, &mut parts) {
                        emit(&mut parts, &taken);
                    }
                }
                None if self.held.len() <= CITATION && !is_last => return parts,
                _ => {
                    let bracket: String = self.held.drain(..1).collect();
                    emit(&mut parts, &bracket);
                }
            }
        }
        emit(&mut parts, &std::mem::take(&mut self.held));
        parts
    }

    /// Whether it is known what kind of answer this is.
    fn begins(&mut self, is_last: bool, parts: &mut Vec<Part>) -> bool {
        if self.has_begun {
            return true;
        }
        let start = self.held.trim_start();
        if start.starts_with(ABSTAINS) || (is_last && start.is_empty()) {
            self.has_ended = true;
            parts.push(Part::Abstains);
            return false;
        }
        self.has_begun = is_last || !ABSTAINS.starts_with(start);
        self.has_begun
    }

    /// Whether a bracket is a citation: handles with commas between.
    fn cite(&mut self, inside: &str, parts: &mut Vec<Part>) -> bool {
        let handles = inside.split([',', ';']).map(str::trim);
        let is_handle = |text: &str| {
            let digits = text.strip_prefix('T').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !handles.clone().all(is_handle) {
            return false;
        }
        for handle in handles {
            match named(&self.turns, 'T', handle) {
                Some(turn) => parts.push(Part::Cites(*turn)),
                None => self.unknown += 1,
            }
        }
        true
    }
}

fn emit(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(before)) => before.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}
