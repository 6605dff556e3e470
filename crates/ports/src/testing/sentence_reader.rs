//! A stand-in for the reader of turns that goes by sentences and their words.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::statement::{
    MentionedName, NameKind, RelationScores, Statement, StatementKind, StatementLine,
    StatementOwner, StatementRelation,
};
use memfleet_domain::tense::{PromptTense, TenseScores};

use crate::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnReader,
    TurnText, missing_reader,
};

/// Words that a later statement shares with the one that it ends, from the beginning on.
const SHARED_WORDS: usize = 3;

/// Letters of a word that a need is told by.
const TELLING_LETTERS: usize = 4;

/// A reader without a model. Each sentence is a statement: one that asks is a question, one in the
/// first person is a state of the speaker that is kept, any other is general. A statement ends an
/// earlier one that begins with the same three words and goes on otherwise; after "No, " it
/// corrects it, and after "Perhaps " it ends it with a probability of three quarters. Behind a
/// question that has no word of four letters in common with either it does nothing to it. A line is
/// needed as much as words of four letters of the prompt stand in it. A prompt with the word
/// `before` asks about what held before. Capitalised words inside a sentence are names of places.
#[derive(Debug, Default)]
pub struct SentenceReader {
    missing: AtomicBool,
    asked: AtomicU32,
}

impl SentenceReader {
    /// Name and version.
    pub const NAME: &'static str = "reader-0";

    /// From now on the model that it builds on is missing, or there again.
    pub fn set_missing(&self, missing: bool) {
        self.missing.store(missing, Ordering::SeqCst);
    }

    /// Questions asked so far.
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    fn answers<T>(&self, answers: impl Iterator<Item = T>) -> Result<ReaderAnswers<T>, Fault> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.missing.load(Ordering::SeqCst) {
            true => Err(missing_reader("base")),
            false => Ok(ReaderAnswers {
                reader: Self::NAME.to_owned(),
                answers: answers.collect(),
            }),
        }
    }
}

#[async_trait]
impl TurnReader for SentenceReader {
    async fn statements(
        &self,
        turns: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        let statements = |turn: &TurnInContext| {
            let sentences = sentences(&turn.turn.text).into_iter();
            sentences
                .map(|bytes| statement(&turn.turn, bytes))
                .collect()
        };
        self.answers(turns.iter().map(statements))
    }

    async fn relations(
        &self,
        pairs: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        self.answers(pairs.iter().map(relations))
    }

    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        let asked = telling_words(&question.prompt);
        let need = |line: &TurnText| {
            let told = telling_words(&line.text);
            asked.intersection(&told).count() as f32 / asked.len().max(1) as f32
        };
        let read = self.answers(question.lines.iter().map(need))?;
        let says_before = words(&question.prompt).any(|word| word == "before");
        let tense = match says_before {
            true => PromptTense::Before,
            false => PromptTense::Now,
        };
        Ok(PromptReading {
            reader: read.reader,
            tense: TenseScores::certain(tense),
            needs: read.answers,
        })
    }
}

/// Bytes of the sentences of a text.
fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for part in text.split_inclusive(['.', '!', '?', '\n']) {
        let blank = part.len() - part.trim_start().len();
        let bytes = start + blank..start + part.trim_end().len();
        if !bytes.is_empty() {
            sentences.push(bytes);
        }
        start += part.len();
    }
    sentences
}

fn statement(turn: &TurnText, bytes: Range<usize>) -> Statement {
    let text = &turn.text[bytes.clone()];
    let words: Vec<String> = words(text).collect();
    let says = |said: &[&str]| words.iter().any(|word| said.contains(&word.as_str()));
    let owner = match (says(&["i", "i'm", "my"]), says(&["we", "our"])) {
        (true, _) => StatementOwner::Speaker,
        (_, true) => StatementOwner::Group,
        _ => StatementOwner::Thing,
    };
    let kind = match (text.ends_with('?'), owner) {
        (true, _) => StatementKind::Question,
        (_, StatementOwner::Thing) => StatementKind::General,
        _ => StatementKind::State,
    };
    let is_kept = kind == StatementKind::State && !turn.is_assistant;
    let names = names(text, bytes.start);
    Statement {
        kind,
        kind_probability: 1.0,
        owner,
        owner_probability: 1.0,
        negated: f32::from(u8::from(says(&["not", "don't", "never"]))),
        keep: f32::from(u8::from(is_kept)),
        ends: 0.0,
        names,
        line: is_kept.then(|| StatementLine {
            bytes: bytes.clone(),
            probability: 1.0,
        }),
        bytes,
        vectors: None,
    }
}

/// Words of a sentence behind its first that begin with a capital letter, as names of places.
fn names(sentence: &str, start: usize) -> Vec<MentionedName> {
    let behind = sentence.find(' ').unwrap_or(sentence.len());
    let words = sentence[behind..].split_inclusive(|c: char| !c.is_alphanumeric());
    let mut at = start + behind;
    let mut names = Vec::new();
    for word in words {
        let name = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        if name != "I" && name.starts_with(char::is_uppercase) {
            names.push(MentionedName {
                bytes: at..at + name.len(),
                kind: NameKind::Place,
            });
        }
        at += word.len();
    }
    names
}

fn relations(pair: &TurnComparison) -> Vec<RelationScores> {
    let text = |turn: &TurnText, bytes: &Range<usize>| {
        words(&turn.text[bytes.clone()]).collect::<Vec<String>>()
    };
    let asked = pair.question.as_deref().map(telling_words);
    let is_asked = |said: [&[String]; 2]| {
        let mut said = said.into_iter().flatten();
        asked
            .as_ref()
            .is_none_or(|asked| said.any(|word| asked.contains(word)))
    };
    let mut found = Vec::new();
    for (later, bytes) in pair.later.statements.iter().enumerate() {
        let after = text(&pair.later.turn, bytes);
        for (earlier, bytes) in pair.earlier.statements.iter().enumerate() {
            let before = text(&pair.earlier.turn, bytes);
            let probabilities = match after.split_first() {
                _ if !is_asked([&before, &after]) => StatementRelation::ALL
                    .map(|it| f32::from(u8::from(it == StatementRelation::Unrelated))),
                Some((word, rest)) if word == "perhaps" => {
                    let relation = relation(&before, rest);
                    StatementRelation::ALL.map(|it| match it {
                        StatementRelation::Unrelated => 0.25,
                        _ if it == relation => 0.75,
                        _ => 0.0,
                    })
                }
                _ => {
                    let relation = relation(&before, &after);
                    StatementRelation::ALL.map(|it| if it == relation { 0.996 } else { 0.001 })
                }
            };
            found.push(RelationScores {
                later,
                earlier,
                probabilities,
            });
        }
    }
    found
}

fn relation(before: &[String], after: &[String]) -> StatementRelation {
    let (corrects, after) = match after {
        [no, rest @ ..] if no == "no" => (true, rest),
        _ => (false, after),
    };
    let shared = before.iter().zip(after).take_while(|(a, b)| a == b);
    match shared.count() {
        _ if before == after => StatementRelation::Restates,
        SHARED_WORDS.. if corrects => StatementRelation::Corrects,
        SHARED_WORDS.. => StatementRelation::Ends,
        _ => StatementRelation::Unrelated,
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn telling_words(text: &str) -> HashSet<String> {
    let is_telling = |word: &String| word.chars().count() >= TELLING_LETTERS;
    words(text).filter(is_telling).collect()
}
