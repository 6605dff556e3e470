//! Words of a sentence with their parts of speech, from the lists in `data/`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use memfleet_language::fold;

/// Part of speech of a word: a list of `data/english.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    Be,
    Have,
    Do,
    Negation,
    Opening,
    Preposition,
    Determiner,
    Pronoun,
}

const PARTS: [(&str, Part); 8] = [
    ("be", Part::Be),
    ("have", Part::Have),
    ("do", Part::Do),
    ("negation", Part::Negation),
    ("opening", Part::Opening),
    ("preposition", Part::Preposition),
    ("determiner", Part::Determiner),
    ("pronoun", Part::Pronoun),
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

/// Base of a verb, and whether a form is its past.
type VerbForm = (String, bool);

/// Forms of verbs. A past that is a participle too counts as past.
static VERBS: LazyLock<HashMap<String, VerbForm>> = LazyLock::new(|| {
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
            let mut insert = |word: String, is_past| {
                verbs.entry(word).or_insert((base.to_owned(), is_past));
            };
            insert(base.to_owned(), false);
            insert(with_s(base), false);
            insert(past, true);
            insert(participle, false);
            insert(with_ing(base), false);
        }
    }
    verbs
});

/// The lists of a data file: name and words.
pub fn lines(data: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = data.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": "))
}

fn with_s(base: &str) -> String {
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
    /// Whether it is punctuation.
    pub is_mark: bool,
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

    /// Base of the verb, and whether this is its past, if the word may be a verb.
    pub fn verb(&self) -> Option<(&'static str, bool)> {
        if self.is_mark {
            return None;
        }
        let known = VERBS.get(&self.low);
        known.map(|(base, is_past)| (base.as_str(), *is_past))
    }

    pub fn is_name(&self) -> bool {
        !self.is_mark
            && self.text.starts_with(char::is_uppercase)
            && self.low != "i"
            && !self.is_any(&[Part::Opening, Part::Pronoun])
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

/// The words of a text, and the marks between them.
pub fn words(text: &str) -> Vec<Word> {
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
                push(&mut words, &text[first..at]);
                open = None;
            }
            _ => {}
        }
        if !inside && !letter.is_whitespace() && at < text.len() {
            words.push(Word {
                text: letter.to_string(),
                low: letter.to_string(),
                is_mark: true,
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

fn push(words: &mut Vec<Word>, text: &str) {
    let low = fold(text).replace('’', "'");
    let mut add = |text: &str, low: &str| {
        words.push(Word {
            text: text.to_owned(),
            low: low.to_owned(),
            is_mark: false,
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
