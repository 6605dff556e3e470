//! The words of a sentence with what they may do in a clause, from the lists in `data/`.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use memfleet_language::fold;

/// What a word may do; lists of `data/english.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    Be,
    Have,
    Do,
    Modal,
    Future,
    Negation,
    Adverb,
    Opening,
    Subordinate,
    Hypothetical,
    Report,
    Doubt,
    Preposition,
    Particle,
    Determiner,
    Pronoun,
    Cut,
    Linking,
}

const PARTS: [(&str, Part); 18] = [
    ("be", Part::Be),
    ("have", Part::Have),
    ("do", Part::Do),
    ("modal", Part::Modal),
    ("future", Part::Future),
    ("negation", Part::Negation),
    ("adverb", Part::Adverb),
    ("opening", Part::Opening),
    ("subordinate", Part::Subordinate),
    ("hypothetical", Part::Hypothetical),
    ("report", Part::Report),
    ("doubt", Part::Doubt),
    ("preposition", Part::Preposition),
    ("particle", Part::Particle),
    ("determiner", Part::Determiner),
    ("pronoun", Part::Pronoun),
    ("cut", Part::Cut),
    ("linking", Part::Linking),
];

static LISTS: LazyLock<HashMap<Part, HashSet<&str>>> = LazyLock::new(|| {
    let mut lists: HashMap<Part, HashSet<&str>> = HashMap::new();
    for (name, words) in lines(include_str!("../../data/english.txt")) {
        let part = PARTS.iter().find(|(known, _)| *known == name);
        let (_, part) = part.expect("every list has a part");
        lists
            .entry(*part)
            .or_default()
            .extend(words.split_whitespace());
    }
    lists
});

/// How a verb stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Base,
    Present,
    Past,
    Participle,
    Progressive,
}

/// Forms of verbs: base and form. A past that is a participle too counts as past.
static VERBS: LazyLock<HashMap<String, (String, Form)>> = LazyLock::new(|| {
    let mut verbs = HashMap::new();
    for (kind, list) in lines(include_str!("../../data/verbs.txt")) {
        for verb in list.split_whitespace() {
            let mut forms = verb.split('/');
            let base = forms.next().unwrap_or_default();
            let (past, participle) = match (kind, forms.next(), forms.next()) {
                ("irregular", Some(past), Some(participle)) => {
                    (past.to_owned(), participle.to_owned())
                }
                _ => (with_ed(base), with_ed(base)),
            };
            let mut insert = |word: String, form| {
                verbs.entry(word).or_insert((base.to_owned(), form));
            };
            insert(base.to_owned(), Form::Base);
            insert(with_s(base), Form::Present);
            insert(past, Form::Past);
            insert(participle, Form::Participle);
            insert(with_ing(base), Form::Progressive);
        }
    }
    verbs
});

/// The past of verbs.
static PASTS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let pasts = VERBS.iter().filter(|(_, (_, form))| *form == Form::Past);
    pasts
        .map(|(past, (base, _))| (base.as_str(), past.as_str()))
        .collect()
});

/// The past of a verb, as far as it is in the list.
pub fn past(base: &str) -> Option<&'static str> {
    PASTS.get(base).copied()
}

/// The lists of a data file: name and words.
pub fn lines(data: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = data.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": "))
}

pub fn with_s(base: &str) -> String {
    match base {
        _ if base.ends_with(['s', 'x', 'z']) || base.ends_with("ch") || base.ends_with("sh") => {
            format!("{base}es")
        }
        _ if ends_in_consonant_y(base) => format!("{}ies", &base[..base.len() - 1]),
        "go" | "do" => format!("{base}es"),
        _ => format!("{base}s"),
    }
}

fn with_ed(base: &str) -> String {
    match base {
        _ if base.ends_with('e') => format!("{base}d"),
        _ if ends_in_consonant_y(base) => format!("{}ied", &base[..base.len() - 1]),
        _ if doubles(base) => format!("{base}{}ed", &base[base.len() - 1..]),
        _ => format!("{base}ed"),
    }
}

fn with_ing(base: &str) -> String {
    match base {
        "be" | "see" => format!("{base}ing"),
        "die" | "lie" => format!("{}ying", &base[..1]),
        _ if base.ends_with('e') => format!("{}ing", &base[..base.len() - 1]),
        _ if doubles(base) => format!("{base}{}ing", &base[base.len() - 1..]),
        _ => format!("{base}ing"),
    }
}

fn ends_in_consonant_y(base: &str) -> bool {
    base.ends_with('y') && !base[..base.len() - 1].ends_with(['a', 'e', 'i', 'o', 'u'])
}

/// A short vowel before the last consonant: "stop", "quit", "swap", "jog".
fn doubles(base: &str) -> bool {
    let letters: Vec<char> = base.chars().rev().take(3).collect();
    let vowel = |letter: &char| "aeiou".contains(*letter);
    let one_syllable = base.chars().filter(vowel).count() == 1 || base.starts_with("qu");
    matches!(&letters[..], [last, middle, before, ..]
        if !vowel(last) && !"wxy".contains(*last) && vowel(middle) && (!vowel(before) || base.starts_with("qu")))
        && one_syllable
}

/// A word, or a mark between words.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// As it stands.
    pub text: String,
    /// Folded, contractions written out.
    pub low: String,
    /// Its bytes in the turn.
    pub span: Range<usize>,
    /// Whether it is punctuation.
    pub is_mark: bool,
    /// Whether it belongs to a time expression.
    pub is_time: bool,
}

impl Word {
    pub fn is(&self, part: Part) -> bool {
        !self.is_mark
            && LISTS
                .get(&part)
                .is_some_and(|list| list.contains(self.low.as_str()))
    }

    pub fn is_any(&self, parts: &[Part]) -> bool {
        parts.iter().any(|part| self.is(*part))
    }

    /// Base and form, if it may be a verb.
    pub fn verb(&self) -> Option<(&'static str, Form)> {
        if self.is_mark {
            return None;
        }
        let known = VERBS.get(&self.low);
        known.map(|(base, form)| (base.as_str(), *form))
    }

    pub fn is_name(&self) -> bool {
        !self.is_mark
            && self.text.starts_with(char::is_uppercase)
            && self.low != "i"
            && !self.is_any(&[Part::Opening, Part::Pronoun])
    }

    pub fn is_possessive(&self) -> bool {
        ["my", "our", "his", "her", "their", "your"].contains(&self.low.as_str())
            || self.low.ends_with("'s")
    }
}

/// What a contraction is written out as: the ending, and the word that it is.
const ENDINGS: [(&str, &str); 6] = [
    ("n't", "not"),
    ("'m", "am"),
    ("'re", "are"),
    ("'ve", "have"),
    ("'ll", "will"),
    ("'d", "would"),
];

/// Words after which "'s" is "is".
const SUBJECTS: [&str; 12] = [
    "he",
    "she",
    "it",
    "that",
    "there",
    "here",
    "who",
    "what",
    "this",
    "everything",
    "name",
    "where",
];

/// Words before names that are written with a mark.
const TITLES: [&str; 6] = ["dr", "mr", "mrs", "ms", "prof", "st"];

/// The words of a part of a text that starts at byte `start`.
pub fn words(text: &str, start: usize) -> Vec<Word> {
    let mut words = Vec::new();
    let mut open: Option<usize> = None;
    let characters = text.char_indices().chain([(text.len(), ' ')]);
    for (at, letter) in characters {
        let inside = letter.is_alphanumeric()
            || (open.is_some()
                && "'’-._@+/&".contains(letter)
                && text[at + letter.len_utf8()..].starts_with(char::is_alphanumeric))
            || (open.is_some() && ":,".contains(letter) && is_between_digits(text, at))
            || (letter == '$' || letter == '€' || letter == '£');
        match (open, inside) {
            (None, true) => open = Some(at),
            (Some(first), false) => {
                push(&mut words, &text[first..at], start + first);
                open = None;
            }
            _ => {}
        }
        // The mark of "Dr." ends nothing.
        let abbreviates = letter == '.'
            && words.last().is_some_and(|word| {
                TITLES.contains(&word.low.as_str()) && word.span.end == start + at
            });
        if !inside && !abbreviates && !letter.is_whitespace() && at < text.len() {
            words.push(Word {
                text: letter.to_string(),
                low: letter.to_string(),
                span: start + at..start + at + letter.len_utf8(),
                is_mark: true,
                is_time: false,
            });
        }
    }
    words
}

/// "6:15", "1,450".
pub fn is_between_digits(text: &str, at: usize) -> bool {
    let digit = |letter: char| letter.is_ascii_digit();
    let after = text[at..].chars().nth(1);
    text[..at].ends_with(digit) && after.is_some_and(digit)
}

fn push(words: &mut Vec<Word>, text: &str, start: usize) {
    let low = fold(text).replace('’', "'");
    let span = start..start + text.len();
    let mut add = |text: &str, low: &str| {
        words.push(Word {
            text: text.to_owned(),
            low: low.to_owned(),
            span: span.clone(),
            is_mark: false,
            is_time: false,
        });
    };
    match low.as_str() {
        "can't" | "cannot" => {
            return [("can", "can"), ("not", "not")]
                .into_iter()
                .for_each(|(text, low)| add(text, low));
        }
        "won't" => {
            return [("will", "will"), ("not", "not")]
                .into_iter()
                .for_each(|(text, low)| add(text, low));
        }
        "let's" => return add(text, "lets"),
        _ => {}
    }
    if let Some(stem) = low
        .strip_suffix("'s")
        .filter(|stem| SUBJECTS.contains(stem))
    {
        add(&text[..stem.len().min(text.len())], stem);
        return add("is", "is");
    }
    for (ending, word) in ENDINGS {
        if let Some(stem) = low.strip_suffix(ending) {
            let shown = text.get(..stem.len()).unwrap_or(stem);
            add(shown, stem);
            return add(word, word);
        }
    }
    add(text, &low);
}
