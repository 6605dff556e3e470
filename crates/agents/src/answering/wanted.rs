//! What the evidence must cover: the words of the question that carry meaning. Who is asked about is looked at apart, since the
//! name of a speaker alone is no evidence; a time is covered by a turn of that time, too.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_language::mentions::mentions;
use memfleet_language::time::references;
use memfleet_language::{Analyzer, Language};

use super::{Evidence, Question};
use crate::asking::{Asking, NOW, PAST};
use crate::relevance::Term;

/// Words that only word a question.
const WORDING: [&str; 16] = [
    "currently",
    "current",
    "presently",
    "present",
    "latest",
    "exactly",
    "actually",
    "tell",
    "know",
    "remember",
    "mention",
    "mentioned",
    "say",
    "said",
    "kind",
    "used",
];

/// A word of the question that carries meaning.
#[derive(Debug)]
pub struct Word {
    /// Its terms.
    pub terms: Vec<String>,
    /// Whether it is part of a time.
    pub is_time: bool,
    /// Whether it says what sort of thing is asked for: "city" of "which city".
    pub is_sort: bool,
    /// Whether it is a name, as far as letters show it.
    pub is_name: bool,
}

/// What a question wants to have covered.
pub struct Wanted {
    /// Terms of the language that the question is read in.
    pub analyzer: Analyzer,
    /// Its words without names of speakers.
    pub words: Vec<Word>,
    /// All its terms.
    pub all: HashSet<String>,
    /// The speakers that it names.
    pub speakers: Vec<String>,
    /// The times that it names.
    pub times: Vec<TimeRange>,
    /// The terms that must be covered, by how rare they are in the evidence.
    pub terms: Vec<Term>,
}

impl Wanted {
    /// Of a question, with what was found for it.
    pub fn of(question: &Question<'_>, asking: &Asking, evidence: &[Evidence<'_>]) -> Self {
        let analyzer = Analyzer::new(question.language);
        let mut speakers: Vec<String> = evidence
            .iter()
            .map(|found| found.turn.accepted.speaker.to_string())
            .collect();
        speakers.sort_unstable();
        speakers.dedup();
        let named = mentions(question.text, &speakers, question.language).mentions;
        let times = references(
            question.text,
            question.asked_at,
            question.zone,
            question.language,
        );
        let reading = Reading {
            text: question.text,
            analyzer: &analyzer,
            language: question.language,
            names: named.iter().map(|name| name.span.clone()).collect(),
            times: times.iter().map(|time| time.span.clone()).collect(),
            now: now_words(question.text),
            is_of_the_past: asking.is_of_the_past(),
        };
        let words = reading.words();
        let texts = evidence.iter().map(|found| found.text);
        let terms = terms(&analyzer, &words, texts);
        Self {
            all: analyzer.terms(question.text).into_iter().collect(),
            speakers: named
                .into_iter()
                .map(|name| speakers[name.name].clone())
                .collect(),
            times: times
                .iter()
                .map(|time| TimeRange {
                    start: Some(time.start),
                    end: Some(time.end),
                })
                .collect(),
            words,
            terms,
            analyzer,
        }
    }

    /// Whether the question names the time of an instant.
    pub fn is_then(&self, instant: Timestamp) -> bool {
        self.times.iter().any(|time| time.contains(instant))
    }

    /// The terms of a word that are covered when a turn is of a time that the question names.
    pub fn of_times(&self) -> impl Iterator<Item = &str> {
        self.terms_of(|word| word.is_time)
    }

    /// The terms that say which sort of thing is asked for.
    pub fn of_sorts(&self) -> impl Iterator<Item = &str> {
        self.terms_of(|word| word.is_sort)
    }

    /// The terms of these words, as far as they must be covered.
    pub fn terms_of_words(&self, words: &[&str]) -> Vec<&str> {
        let theirs: HashSet<String> = words
            .iter()
            .flat_map(|word| self.analyzer.query_terms(word))
            .collect();
        let terms = self.terms.iter().map(|term| term.text.as_str());
        terms.filter(|term| theirs.contains(*term)).collect()
    }

    fn terms_of(&self, is_meant: fn(&Word) -> bool) -> impl Iterator<Item = &str> {
        let words = self.words.iter().filter(move |word| is_meant(word));
        words.flat_map(|word| word.terms.iter().map(String::as_str))
    }
}

/// A question that is read word by word.
struct Reading<'r> {
    text: &'r str,
    analyzer: &'r Analyzer,
    language: Language,
    names: Vec<Range<usize>>,
    times: Vec<Range<usize>>,
    now: HashSet<&'static str>,
    is_of_the_past: bool,
}

impl Reading<'_> {
    fn words(&self) -> Vec<Word> {
        let mut words = Vec::new();
        let mut is_sort = false;
        for (at, text) in pieces(self.text) {
            let folded = memfleet_language::fold(text);
            if ["what", "which"].contains(&folded.as_str()) {
                is_sort = true;
                continue;
            }
            if self.analyzer.is_stop_word(text) {
                // "What kind of car" goes on behind its "of".
                is_sort &= folded == "of";
                continue;
            }
            let is_here = |spans: &[Range<usize>]| spans.iter().any(|span| span.contains(&at));
            if is_here(&self.names) || self.is_wording(&folded) {
                continue;
            }
            let terms = self.analyzer.query_terms(text);
            if terms.is_empty() {
                continue;
            }
            words.push(Word {
                is_time: is_here(&self.times),
                is_sort,
                is_name: self.is_name(at, text),
                terms,
            });
        }
        words
    }

    /// Whether a word says nothing of what is asked for.
    fn is_wording(&self, folded: &str) -> bool {
        WORDING.contains(&folded)
            || self.now.contains(folded)
            || self.is_of_the_past && PAST.contains(&folded)
    }

    /// German writes every noun as other languages write names.
    fn is_name(&self, at: usize, text: &str) -> bool {
        let is_first = self.text[..at].trim().is_empty();
        let is_capital = text.chars().next().is_some_and(char::is_uppercase);
        is_capital && !is_first && self.language != Language::German
    }
}

/// The words of the times in a text that mean the present.
fn now_words(text: &str) -> HashSet<&'static str> {
    let folded = memfleet_language::fold(text);
    let said = NOW.into_iter().filter(|now| folded.contains(now));
    said.flat_map(|now| now.split(' ')).collect()
}

/// Words with the bytes where they begin, without possessive endings.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    let words = text.split(move |letter: char| {
        !letter.is_alphanumeric() && !['\'', '’', '-', '.', '@', '_'].contains(&letter)
    });
    words.filter_map(move |piece| {
        let at = rest + text[rest..].find(piece)?;
        rest = at + piece.len();
        let lead = piece.len() - piece.trim_start_matches(['\'', '’', '-', '.']).len();
        let word = piece.trim_matches(['\'', '’', '-', '.']);
        let word = word.trim_end_matches("'s").trim_end_matches("’s");
        (!word.is_empty()).then_some((at + lead, word))
    })
}

/// The terms of words, each once. One that no turn has is the rarest, so that what was never said leaves much uncovered.
fn terms<'t>(
    analyzer: &Analyzer,
    words: &[Word],
    texts: impl Iterator<Item = &'t str>,
) -> Vec<Term> {
    let mut having: HashMap<&str, u32> = HashMap::new();
    for word in words {
        having.extend(word.terms.iter().map(|term| (term.as_str(), 0)));
    }
    let mut count = 0;
    for text in texts {
        count += 1;
        let mut here: HashSet<&str> = HashSet::new();
        let said = analyzer.terms(text);
        for term in &said {
            if let Some((term, _)) = having.get_key_value(term.as_str()) {
                here.insert(term);
            }
        }
        for term in here {
            *having.entry(term).or_default() += 1;
        }
    }
    let idf = |having: u32| {
        let (all, having) = (count as f32, having as f32);
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    };
    let mut terms: Vec<Term> = having
        .into_iter()
        .map(|(term, having)| Term {
            text: term.to_owned(),
            idf: idf(having),
        })
        .collect();
    terms.sort_by(|one, two| one.text.cmp(&two.text));
    terms
}
