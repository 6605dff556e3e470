//! Labelled examples and how they decide, as data (`data/exemplars.toml`); a tenant may bring its own.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use memfleet_domain::assembly::GateBound;
use memfleet_language::fold;
use serde::Deserialize;
use toml::Spanned;

const SHIPPED: &str = include_str!("../../data/exemplars.toml");

/// The most examples of one class in a document: each is embedded anew when the model changes, and compared with every query.
const MOST: usize = 1000;

/// The longest example, in bytes.
const LONGEST: usize = 500;

/// Examples of the two classes (AMP item 56).
#[derive(Debug, Clone, PartialEq)]
pub struct Exemplars {
    /// Goes to the trace; changes with every change of the examples or the decision.
    pub version: String,
    /// How they decide.
    pub decision: Decision,
    /// Utterances that memory may have something to say to.
    pub memory: Vec<String>,
    /// Utterances that need no memory: general knowledge, small talk, tasks on text that is given.
    pub none: Vec<String>,
}

/// Examples as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    version: String,
    /// Whether the shipped examples stay beside these.
    #[serde(default)]
    shipped: bool,
    /// What it does not say is as in the shipped examples.
    #[serde(default)]
    decision: PartialDecision,
    memory: Option<Class>,
    none: Option<Class>,
}

/// A class, each example with its place in the text.
type Class = Spanned<Vec<Spanned<String>>>;

/// A [`Decision`] as it is written: what is absent is as shipped. Nothing is required, so that a value out of its range is told whatever
/// else is missing.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartialDecision {
    neighbours: Option<usize>,
    margin: Option<f32>,
    likeness: Option<f32>,
    fewest_words: Option<usize>,
    most_foreign: Option<f32>,
    personal: Option<HashSet<String>>,
}

impl PartialDecision {
    fn settled(self) -> Decision {
        // Asked for only where something is absent: the shipped document, which says all, is read by the same function.
        let shipped = || &Exemplars::shipped().decision;
        Decision {
            neighbours: self.neighbours.unwrap_or_else(|| shipped().neighbours),
            margin: self.margin.unwrap_or_else(|| shipped().margin),
            likeness: self.likeness.unwrap_or_else(|| shipped().likeness),
            fewest_words: self.fewest_words.unwrap_or_else(|| shipped().fewest_words),
            most_foreign: self.most_foreign.unwrap_or_else(|| shipped().most_foreign),
            personal: self.personal.unwrap_or_else(|| shipped().personal.clone()),
        }
    }
}

/// How similarities become a decision (AMP item 54). The likeness to a class is the mean of the `neighbours` best cosines to its examples, and
/// the margin is the likeness to `none` less the likeness to `memory`.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Examples a class that count, at least 1.
    pub neighbours: usize,
    /// The margin from which a query is skipped, in 0..=2.
    pub margin: f32,
    /// The likeness to `none` below which no query is skipped, in −1..=1.
    pub likeness: f32,
    /// The words below which no query is skipped.
    pub fewest_words: usize,
    /// The share of letters outside of `A` to `Z` above which no query is skipped, in 0..=1; 1 for a model of many languages.
    pub most_foreign: f32,
    /// Words, without case and apostrophes, with which no query is skipped: those of somebody who speaks of his own.
    pub personal: HashSet<String>,
}

/// Why data are no examples.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No TOML of this shape.
    #[error("line {line} cannot be read: {problem}")]
    Unreadable {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A value out of its range.
    #[error("`decision.{key}` must be {range}")]
    OutOfRange {
        /// The value.
        key: &'static str,
        /// What it may be.
        range: &'static str,
    },
    /// An example, or their number, that cannot be used.
    #[error("line {line}, `{class}`: {problem}")]
    Unusable {
        /// Counted from 1.
        line: usize,
        /// `memory` or `none`.
        class: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
}

impl Exemplars {
    /// The examples that come with memfleet, for its default model; read once a process.
    pub fn shipped() -> &'static Self {
        static READ: LazyLock<Exemplars> =
            LazyLock::new(|| Exemplars::parse(SHIPPED).expect("the shipped examples are examples"));
        &READ
    }

    /// Reads examples, and checks them.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let document: Document = toml::from_str(text).map_err(|error| Error::Unreadable {
            line: line(text, error.span().map_or(0, |span| span.start)),
            problem: error.message().to_owned(),
        })?;
        let shipped = document.shipped.then(Self::shipped);
        let mut decision = document.decision.settled();
        decision.check()?;
        let reading = Reading {
            text,
            fewest: shipped.map_or(decision.neighbours, |_| 0),
        };
        let mut said = HashMap::new();
        let mut memory = reading.class("memory", document.memory, &mut said)?;
        let mut none = reading.class("none", document.none, &mut said)?;
        if let Some(shipped) = shipped {
            // What the document says of an utterance stands over what the shipped examples say.
            let is_new = |text: &&String| !said.contains_key(&fold(text));
            memory.extend(shipped.memory.iter().filter(is_new).cloned());
            none.extend(shipped.none.iter().filter(is_new).cloned());
            decision.personal.extend(shipped.decision.personal.clone());
        }
        Ok(Self {
            version: document.version,
            decision,
            memory,
            none,
        })
    }

    /// Every example in the order that [`super::Router::new`] wants their vectors in: `memory` first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.memory.iter().chain(&self.none).map(String::as_str)
    }
}

/// A document that is read.
struct Reading<'a> {
    text: &'a str,
    /// Examples that a class needs.
    fewest: usize,
}

impl Reading<'_> {
    /// The examples of a class; `said` has the line of every one before.
    fn class(
        &self,
        class: &'static str,
        written: Option<Class>,
        said: &mut HashMap<String, usize>,
    ) -> Result<Vec<String>, Error> {
        let at = written.as_ref().map_or(0, |class| class.span().start);
        let examples = written.map_or_else(Vec::new, Spanned::into_inner);
        let unusable = |at: usize, problem: String| Error::Unusable {
            line: line(self.text, at),
            class,
            problem,
        };
        let (count, fewest) = (examples.len(), self.fewest);
        if count > MOST {
            let problem = format!("{count} examples, {MOST} are allowed: remove some");
            return Err(unusable(at, problem));
        }
        if count < fewest {
            let problem = format!(
                "{count} examples, `decision.neighbours` asks for {fewest}: write more, or say `shipped = true`"
            );
            return Err(unusable(at, problem));
        }
        let check = |example: Spanned<String>| {
            let at = example.span().start;
            let text = example.into_inner();
            match problem(&text, line(self.text, at), said) {
                Some(problem) => Err(unusable(at, problem)),
                None => Ok(text),
            }
        };
        examples.into_iter().map(check).collect()
    }
}

/// What is wrong with an example; it is noted in what was said.
fn problem(text: &str, line: usize, said: &mut HashMap<String, usize>) -> Option<String> {
    if !text.contains(char::is_alphanumeric) {
        return Some("the example has no word: write an utterance, or remove it".to_owned());
    }
    if text.len() > LONGEST {
        let size = text.len();
        return Some(format!(
            "the example has {size} bytes, {LONGEST} are allowed: shorten it"
        ));
    }
    let before = said.insert(fold(text), line)?;
    Some(format!(
        "the example stands on line {before} already: keep one of them"
    ))
}

/// The line of a place in a text, counted from 1.
fn line(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// Share of letters outside of `A` to `Z`; 0 without letters.
fn foreign_share(text: &str) -> f32 {
    let (mut all, mut foreign) = (0_u32, 0_u32);
    for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
        all += 1;
        foreign += u32::from(!letter.is_ascii());
    }
    foreign as f32 / all.max(1) as f32
}

impl Decision {
    /// Bounds of a text that the examples can judge: words enough, nothing personal, letters that the model knows.
    pub(super) fn readability(&self, text: &str) -> [GateBound; 3] {
        let folded = fold(text).replace(['\'', '’'], "");
        let words = folded.split(|letter: char| !letter.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty()).collect::<Vec<_>>();
        let is_personal = |word: &&&str| self.personal.contains(**word);
        let personal = words.iter().filter(is_personal).count();
        [
            GateBound::at_least("words", words.len() as f32, self.fewest_words as f32),
            GateBound::at_most("personal_words", personal as f32, 0.0),
            GateBound::at_most("foreign_letters", foreign_share(text), self.most_foreign),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        let checks = [
            ("neighbours", "at least 1", self.neighbours > 0),
            ("margin", "in 0 to 2", (0.0..=2.0).contains(&self.margin)),
            (
                "likeness",
                "in -1 to 1",
                (-1.0..=1.0).contains(&self.likeness),
            ),
            (
                "most_foreign",
                "in 0 to 1",
                (0.0..=1.0).contains(&self.most_foreign),
            ),
        ];
        match checks.into_iter().find(|(.., holds)| !holds) {
            Some((key, range, _)) => Err(Error::OutOfRange { key, range }),
            None => Ok(()),
        }
    }
}
