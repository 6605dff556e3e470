//! The one analyzer of index and queries: text in any script → lexical terms.
//!
//! Words are runs of letters, digits and marks; in scripts without spaces, pairs of characters. A compound (address, path,
//! version, date, identifier) is kept whole and also given in its parts. A word is lower-cased, stemmed and accent-folded.
//! The scanner is our own rather than UAX 29 words because those split what must stay whole (`a@b.org`, `2023-05-08`).

mod compound;
mod word;

use crate::fold::{fold, normalise};
use crate::language::Language;
use crate::spaceless::{self, Spaceless};
use crate::stopwords;
use rust_stemmers::Stemmer;
use std::collections::HashSet;
use unicode_normalization::char::is_combining_mark;
use unicode_script::Script;

/// The longest term in bytes; what is longer (encoded blobs) is cut here, in the index and in queries alike.
const TERM_BYTES: usize = 96;

/// Turns text into terms for one language. Cheap to keep, some microseconds to make; shareable between threads.
pub struct Analyzer {
    language: Language,
    stop_words: &'static HashSet<String>,
    stemmers: Vec<(Script, Stemmer)>,
}

/// What a term came from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Content,
    StopWord,
}

impl Analyzer {
    /// The analyzer of a language; an index and its queries must use the same.
    pub fn new(language: Language) -> Self {
        let scripts = [
            Script::Latin,
            Script::Cyrillic,
            Script::Greek,
            Script::Arabic,
            Script::Tamil,
        ];
        let stemmer = |script| Some((script, Stemmer::create(language.algorithm(script)?)));
        Self {
            language,
            stop_words: stopwords::of(language),
            stemmers: scripts.into_iter().filter_map(stemmer).collect(),
        }
    }

    /// The language given to [`Analyzer::new`].
    pub fn language(&self) -> Language {
        self.language
    }

    /// The index terms of a text, in order, with repeats (term frequencies count them).
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut out = Vec::with_capacity(text.len() / 5);
        self.visit(text, |term| out.push(term.to_owned()));
        out
    }

    /// Calls `visit` with every index term of a text: [`Analyzer::terms`] without an allocation a term.
    pub fn visit(&self, text: &str, mut visit: impl FnMut(&str)) {
        self.scan(text, &mut |term, _| visit(term));
    }

    /// The terms of a query: its index terms without stop words; all of them if it has nothing but stop words.
    pub fn query_terms(&self, text: &str) -> Vec<String> {
        let mut content = Vec::new();
        let mut stop_words = Vec::new();
        self.scan(text, &mut |term, origin| match origin {
            Origin::Content => content.push(term.to_owned()),
            Origin::StopWord => stop_words.push(term.to_owned()),
        });
        if content.is_empty() {
            stop_words
        } else {
            content
        }
    }

    /// Whether a word is a stop word of the language, whatever its case and accents.
    pub fn is_stop_word(&self, word: &str) -> bool {
        self.stop_words.contains(&fold(word))
    }

    fn scan(&self, text: &str, emit: &mut dyn FnMut(&str, Origin)) {
        // Folding and stemming can leave nothing of a word that is only marks.
        let emit = &mut |term: &str, origin| {
            if !term.is_empty() {
                emit(cut(term), origin);
            }
        };
        let text = normalise(text);
        for chunk in text.split_whitespace() {
            if chunk.is_ascii() {
                self.spaced(chunk, emit);
            } else {
                self.any_script(chunk, emit);
            }
        }
    }

    /// Splits a chunk where scripts with and without spaces meet.
    fn any_script(&self, chunk: &str, emit: &mut dyn FnMut(&str, Origin)) {
        let mut rest = chunk;
        while let Some(first) = rest.chars().next() {
            let class = Spaceless::of(first);
            let end = rest
                .char_indices()
                .find(|&(_, letter)| Spaceless::of(letter) != class)
                .map_or(rest.len(), |(at, _)| at);
            let (run, after) = rest.split_at(end);
            match class {
                None => self.spaced(run, emit),
                Some(_) => spaceless::pairs(run, |pair| emit(pair, self.origin(pair))),
            }
            rest = after;
        }
    }

    /// Finds the words and compounds of a chunk without white space.
    fn spaced(&self, chunk: &str, emit: &mut dyn FnMut(&str, Origin)) {
        if chunk.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return self.plain(chunk, emit);
        }
        for compound in compound::split(chunk) {
            self.compound(compound, emit);
        }
    }

    fn origin(&self, lowered: &str) -> Origin {
        if self.stop_words.contains(lowered) {
            Origin::StopWord
        } else {
            Origin::Content
        }
    }
}

fn is_word_char(letter: char) -> bool {
    letter.is_alphanumeric() || (!letter.is_ascii() && is_combining_mark(letter))
}

/// At most [`TERM_BYTES`] of a term, whole characters.
fn cut(term: &str) -> &str {
    &term[..term.floor_char_boundary(TERM_BYTES)]
}

#[cfg(test)]
mod tests;
