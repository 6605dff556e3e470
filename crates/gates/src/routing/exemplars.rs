//! Labelled examples and how they decide, as data (`data/exemplars.toml`); a tenant may bring its own.

use std::collections::HashSet;
use std::sync::LazyLock;

use memfleet_language::fold;
use serde::Deserialize;

const SHIPPED: &str = include_str!("../../data/exemplars.toml");

/// The most examples of one class: each is embedded anew when the model changes, and compared with every query.
const MOST: usize = 2000;

/// The longest example, in bytes.
const LONGEST: usize = 500;

/// Examples of the two classes (AMP item 56).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// How similarities become a decision (AMP item 54). The likeness to a class is the mean of the `neighbours` best cosines to its examples, and
/// the margin is the likeness to `none` less the likeness to `memory`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// The memories of a space below which no query is skipped, unless it has none at all (AMP item 57).
    pub fewest_memories: u64,
    /// Words, without case and apostrophes, with which no query is skipped: those of somebody who speaks of his own.
    pub personal: HashSet<String>,
}

/// Why data are no examples.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No TOML of this shape.
    #[error("examples cannot be read: {0}")]
    Unreadable(#[from] toml::de::Error),
    /// A value out of its range.
    #[error("`{0}` of the examples is out of range")]
    OutOfRange(&'static str),
    /// An example that is blank or too long.
    #[error("example {place} of `{class}` is blank or longer than {LONGEST} bytes")]
    Unusable {
        /// `memory` or `none`.
        class: &'static str,
        /// Counted from 1.
        place: usize,
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
        let read = toml::from_str::<Self>(text)?;
        read.decision.check()?;
        check("memory", &read.memory, read.decision.neighbours)?;
        check("none", &read.none, read.decision.neighbours)?;
        Ok(read)
    }

    /// Every example in the order that [`super::Router::new`] wants their vectors in: `memory` first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.memory.iter().chain(&self.none).map(String::as_str)
    }
}

impl Decision {
    /// Whether the text is of the kind that the examples can judge: words enough, letters that the model knows, nothing personal.
    pub(super) fn can_read(&self, text: &str) -> bool {
        let folded = fold(text).replace(['\'', '’'], "");
        let words = folded.split(|letter: char| !letter.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty()).collect::<Vec<_>>();
        words.len() >= self.fewest_words
            && !words.iter().any(|word| self.personal.contains(*word))
            && self.knows_letters(text)
    }

    fn knows_letters(&self, text: &str) -> bool {
        let (mut all, mut foreign) = (0_u32, 0_u32);
        for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
            all += 1;
            foreign += u32::from(!letter.is_ascii());
        }
        f64::from(foreign) <= f64::from(self.most_foreign) * f64::from(all)
    }

    fn check(&self) -> Result<(), Error> {
        let checks = [
            ("neighbours", self.neighbours > 0),
            ("margin", (0.0..=2.0).contains(&self.margin)),
            ("likeness", (-1.0..=1.0).contains(&self.likeness)),
            ("most_foreign", (0.0..=1.0).contains(&self.most_foreign)),
        ];
        match checks.into_iter().find(|(_, holds)| !holds) {
            Some((name, _)) => Err(Error::OutOfRange(name)),
            None => Ok(()),
        }
    }
}

fn check(class: &'static str, examples: &[String], neighbours: usize) -> Result<(), Error> {
    if !(neighbours..=MOST).contains(&examples.len()) {
        return Err(Error::OutOfRange(class));
    }
    let is_unusable = |it: &String| it.trim().is_empty() || it.len() > LONGEST;
    match examples.iter().position(is_unusable) {
        Some(place) => Err(Error::Unusable {
            class,
            place: place + 1,
        }),
        None => Ok(()),
    }
}
