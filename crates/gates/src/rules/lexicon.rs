//! The phrases of all languages in two tries over tokens: an utterance may mix languages, and nothing guesses which one it is in.

use std::collections::{HashMap, HashSet};

use super::lists::{Kind, Lists};
use super::tokens::{Token, Tokens, spellings};

macro_rules! shipped {
    ($($language:literal)*) => {
        &[$(($language, include_str!(concat!("../../data/rules/", $language, ".toml")))),*]
    };
}

/// Language and lists. English comes first: a phrase that several have is its.
const SHIPPED: &[(&str, &str)] = shipped!(
    "en" "de" "fr" "es" "it" "pt" "nl" "pl" "ru" "tr" "ar" "hi" "zh" "ja" "ko" "th" "vi" "id" "sv" "uk"
);

/// A phrase of the data.
#[derive(Debug, Clone)]
pub struct Phrase {
    /// What it does; meaningless for references to memory.
    pub kind: Kind,
    /// The language of its list.
    pub language: &'static str,
    /// As it is in the list.
    pub text: String,
}

/// All phrases.
#[derive(Debug, Default)]
pub struct Lexicon {
    words: HashMap<String, u32>,
    /// Phrases that pleasantries are made of.
    pub pleasantries: Trie,
    /// Phrases that refer to memory.
    pub recall: Trie,
    laughter: Vec<String>,
    no_names: HashSet<String>,
}

/// Phrases by their tokens.
#[derive(Debug, Default)]
pub struct Trie {
    next: HashMap<(u32, u32), u32>,
    phrases: Vec<Option<Phrase>>,
}

/// No word of any phrase.
const UNKNOWN: u32 = u32::MAX;

impl Lexicon {
    /// The lists that come with memfleet.
    pub fn shipped() -> Self {
        let mut lexicon = Self::default();
        for (language, data) in SHIPPED {
            let lists: Lists = toml::from_str(data).expect("the shipped word lists are lists");
            lexicon.add(language, &lists);
        }
        lexicon
    }

    fn add(&mut self, language: &'static str, lists: &Lists) {
        let words = &mut self.words;
        for (kind, phrase) in lists.pleasantries() {
            self.pleasantries.add(words, kind, language, phrase);
        }
        for phrase in lists.recall() {
            self.recall.add(words, Kind::Filler, language, phrase);
        }
        let folded = |phrase: &str| memfleet_language::fold(phrase);
        self.laughter.extend(lists.laughter().map(folded));
        self.no_names.extend(lists.no_names().map(folded));
    }

    /// The ids of a token's spellings that phrases have.
    pub fn ids(&self, token: &Token) -> Vec<u32> {
        let known = |word: String| self.words.get(&word).copied();
        spellings(&token.word).filter_map(known).collect()
    }

    /// Whether it is laughter: a syllable twice or more, the last perhaps cut short.
    pub fn is_laughter(&self, token: &Token) -> bool {
        self.laughter
            .iter()
            .any(|syllable| repeats(&token.word, syllable))
    }

    /// Whether it can be a name after a greeting.
    pub fn can_be_name(&self, token: &Token) -> bool {
        token.is_title && token.is_last && !self.no_names.contains(&token.word)
    }
}

impl Trie {
    fn add(
        &mut self,
        words: &mut HashMap<String, u32>,
        kind: Kind,
        language: &'static str,
        text: &str,
    ) {
        self.phrases.resize_with(self.phrases.len().max(1), || None);
        let mut node = 0;
        for token in Tokens::read(text).tokens {
            let fresh = u32::try_from(words.len()).unwrap_or(UNKNOWN);
            let word = *words.entry(token.word).or_insert(fresh);
            let created = self.phrases.len() as u32;
            node = *self.next.entry((node, word)).or_insert(created);
            if node == created {
                self.phrases.push(None);
            }
        }
        let phrase = &mut self.phrases[node as usize];
        let is_free = phrase
            .as_ref()
            .is_none_or(|it| it.kind == Kind::Filler && kind != it.kind);
        if node != 0 && is_free {
            *phrase = Some(Phrase {
                kind,
                language,
                text: text.to_owned(),
            });
        }
    }

    /// The phrases that begin at `start`, with the place after each. `ids` has the ids of each token.
    pub fn at<'a>(&'a self, ids: &[Vec<u32>], start: usize) -> Vec<(usize, &'a Phrase)> {
        let (mut nodes, mut found) = (vec![0], Vec::new());
        for (place, ids) in ids.iter().enumerate().skip(start) {
            let steps = nodes
                .iter()
                .flat_map(|node| ids.iter().map(move |id| (*node, *id)));
            nodes = steps
                .filter_map(|step| self.next.get(&step).copied())
                .collect();
            if nodes.is_empty() {
                break;
            }
            let phrases = nodes
                .iter()
                .filter_map(|node| self.phrases[*node as usize].as_ref());
            found.extend(phrases.map(|phrase| (place + 1, phrase)));
        }
        found
    }
}

fn repeats(word: &str, syllable: &str) -> bool {
    let times = word.len() / syllable.len().max(1);
    if times < 2 {
        return false;
    }
    let mut rest = word;
    while let Some(shorter) = rest.strip_prefix(syllable) {
        rest = shorter;
    }
    syllable.starts_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laughter_repeats_a_syllable_and_may_break_off() {
        for word in ["haha", "hahah", "hahahahaha"] {
            assert!(repeats(word, "ha"), "{word}");
        }
        for word in ["ha", "hat", "hahat", ""] {
            assert!(!repeats(word, "ha"), "{word}");
        }
    }

    #[test]
    fn every_shipped_list_is_read() {
        let lexicon = Lexicon::shipped();
        let languages = lexicon
            .pleasantries
            .phrases
            .iter()
            .flatten()
            .map(|it| it.language);
        assert_eq!(languages.collect::<HashSet<_>>().len(), SHIPPED.len());
    }
}
