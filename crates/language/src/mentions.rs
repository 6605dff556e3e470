//! Who a text is about: names it mentions, and whether it speaks in the first or the second person.

use crate::fold::fold;
use crate::language::Language;
use crate::spaceless::Spaceless;
use crate::stopwords;
use crate::words::{self, Word};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;
use unicode_script::{Script, UnicodeScript};

/// Titles that are no first names.
const TITLES: &[&str] = &[
    "dr", "mr", "mrs", "ms", "prof", "sir", "the", "herr", "frau", "m", "mme", "sr", "sra", "don",
];

/// Letters of the shortest short form of a name.
const SHORT_FORM: usize = 3;

/// A name found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Index into the names that were looked for.
    pub name: usize,
    /// Bytes of the text, without a possessive ending.
    pub span: Range<usize>,
}

/// The names a text mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Each mentioned name once, where it first stands, in order.
    pub mentions: Vec<Mention>,
    /// At least two names, and the first two are joined by a coordinator ("and"), or the text says "both".
    pub joined: bool,
}

/// Finds whole names, or the first word of names of several words, whatever their case and accents, or a short form of the
/// first word. A first name that two
/// names share mentions both. Names in scripts without spaces, and Korean names, are found inside longer runs.
pub fn mentions<N: AsRef<str>>(text: &str, names: &[N], language: Language) -> Mentions {
    let words = words::of(text);
    let find = |(name, written): (usize, &N)| {
        let span = find(text, &words, written.as_ref())?;
        Some(Mention { name, span })
    };
    let mut mentions: Vec<Mention> = names.iter().enumerate().filter_map(find).collect();
    let find_short = |(name, written): (usize, &N)| {
        let known = mentions.iter().any(|mention| mention.name == name);
        let span =
            (!known).then(|| find_short_form(text, &words, written.as_ref(), &mentions, language));
        Some(Mention { name, span: span?? })
    };
    let short: Vec<Mention> = names.iter().enumerate().filter_map(find_short).collect();
    mentions.extend(short);
    mentions.sort_by_key(|mention| (mention.span.start, mention.name));
    let joined = match mentions.as_slice() {
        [first, second, ..] => {
            let both = words
                .iter()
                .any(|word| Table::Both.has(language, &word.folded));
            both || text
                .get(first.span.end..second.span.start)
                .is_some_and(|between| coordinates(between, language))
        }
        _ => false,
    };
    Mentions { mentions, joined }
}

/// Whether the text between two names is only a coordinator, past a possessive "s".
fn coordinates(between: &str, language: Language) -> bool {
    let mut words = words::of(between)
        .into_iter()
        .map(|word| word.folded)
        .filter(|word| word != "s")
        .peekable();
    let coordinator = words.peek().is_some() || between.contains(['&', '+']);
    coordinator
        && words
            .all(|word| Table::And.has(language, &word) || Table::And.has(Language::Other, &word))
}

/// How many words of a text are pronouns of the first and of the second person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Persons {
    /// First person: I, me, my, we…
    pub first: usize,
    /// Second person: you, your…
    pub second: usize,
    /// All words.
    pub words: usize,
}

/// Whom a question speaks of, by its pronouns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    /// It has a word of the first person: about the one who asks.
    First,
    /// It has words of the second person and none of the first: about the one who is asked.
    Second,
}

impl Persons {
    /// Counts the persons of a text; zero of each in languages without a table (`data/persons.txt`).
    pub fn count(text: &str, language: Language) -> Self {
        let words = words::of(text);
        let of = |table: Table| {
            words
                .iter()
                .filter(|word| table.has(language, &word.folded))
                .count()
        };
        Self {
            first: of(Table::First),
            second: of(Table::Second),
            words: words.len(),
        }
    }

    /// The person that decides whom a question is about.
    pub fn person(self) -> Option<Person> {
        match (self.first, self.second) {
            (1.., _) => Some(Person::First),
            (0, 1..) => Some(Person::Second),
            (0, 0) => None,
        }
    }
}

/// Where a name stands in a text.
fn find(text: &str, words: &[Word], name: &str) -> Option<Range<usize>> {
    if !name.trim().is_empty() && name.trim().chars().all(is_written_without_spaces) {
        let start = text.find(name.trim())?;
        return Some(start..start + name.trim().len());
    }
    let name: Vec<String> = words::of(name)
        .into_iter()
        .map(|word| word.folded)
        .collect();
    let first = name.first()?;
    let whole = words
        .windows(name.len())
        .find(|window| window.iter().map(|word| &word.folded).eq(&name));
    if let Some([first, .., last]) = whole {
        return Some(first.span.start..last.span.end);
    }
    let nameable =
        name.len() == 1 || (first.chars().nth(1).is_some() && !TITLES.contains(&first.as_str()));
    let word = words
        .iter()
        .find(|word| nameable && word.folded == *first)?;
    Some(word.span.clone())
}

/// Where a short form of a name stands in a text, as "Mel" of "Melanie", past the names `taken` already.
fn find_short_form(
    text: &str,
    words: &[Word],
    name: &str,
    taken: &[Mention],
    language: Language,
) -> Option<Range<usize>> {
    let name = words::of(name).into_iter().next()?.folded;
    let free = |word: &&Word| {
        taken
            .iter()
            .all(|other| !other.span.contains(&word.span.start))
    };
    let short = |word: &&Word| is_short_form(&text[word.span.clone()], word, &name, language);
    let word = words.iter().filter(free).find(short)?;
    Some(word.span.clone())
}

/// Whether a word of at least three letters is the beginning of a name, as "Mel" of "Melanie". It must be written like a
/// name and must not be a word that every text has ("Will", "Can").
fn is_short_form(written: &str, word: &Word, name: &str, language: Language) -> bool {
    word.folded.chars().count() >= SHORT_FORM
        && word.folded.len() < name.len()
        && name.starts_with(&word.folded)
        && written.starts_with(char::is_uppercase)
        && !stopwords::of(language).contains(&word.folded)
}

fn is_written_without_spaces(letter: char) -> bool {
    Spaceless::of(letter).is_some() || letter.script() == Script::Hangul
}

/// A word list of `data/persons.txt`.
#[derive(Clone, Copy)]
pub(crate) enum Table {
    And,
    Both,
    First,
    Second,
}

impl Table {
    /// Whether a folded word is in the language's list.
    pub(crate) fn has(self, language: Language, word: &str) -> bool {
        static LISTS: LazyLock<HashMap<(&str, &str), HashSet<String>>> = LazyLock::new(|| {
            let lines = include_str!("../data/persons.txt").lines();
            let lines = lines.filter_map(|line| {
                let (head, list) = line.split_once(':')?;
                Some((head.split_once(' ')?, list))
            });
            lines
                .map(|(head, list)| (head, list.split_whitespace().map(fold).collect()))
                .collect()
        });
        LISTS
            .get(&(language.code(), self.name()))
            .is_some_and(|list| list.contains(word))
    }

    fn name(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Both => "both",
            Self::First => "first",
            Self::Second => "second",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str, names: &[&str]) -> (Vec<usize>, bool) {
        let found = mentions(text, names, Language::English);
        (
            found
                .mentions
                .into_iter()
                .map(|mention| mention.name)
                .collect(),
            found.joined,
        )
    }

    #[test]
    fn names_are_found_in_order_as_whole_words_and_possessives() {
        let names = ["Caroline", "Melanie", "Mel"];
        assert_eq!(
            found("What did melanie say about Caroline's trip?", &names),
            (vec![1, 0], false)
        );
        assert_eq!(found("CAROLINE and Melanie", &names), (vec![0, 1], true));
        assert_eq!(
            found("Do Mel, Caroline both run?", &names),
            (vec![2, 0], true)
        );
        assert_eq!(
            found("Caroline told Melanie and Mel", &names),
            (vec![0, 1, 2], false)
        );
        assert_eq!(found("caramel", &names), (vec![], false));
    }

    #[test]
    fn short_forms_are_understood_where_no_one_has_that_name() {
        let names = ["Melanie Wood", "Caroline"];
        assert_eq!(
            found("Did Mel paint Caroline?", &names),
            (vec![0, 1], false)
        );
        assert_eq!(found("Did mel paint?", &names), (vec![], false));
        assert_eq!(found("Ca. 20 Me?", &names), (vec![], false));
        assert_eq!(
            found("Will he come? Can she?", &["William", "Candice"]),
            (vec![], false)
        );
    }

    #[test]
    fn first_names_accents_and_spaceless_scripts_are_understood() {
        assert_eq!(
            found(
                "Did Monica call Zoe?",
                &["Zoë Ng", "Monica Geller", "Dr. Ng"]
            ),
            (vec![1, 0], false)
        );
        assert_eq!(
            found("田中さんと佐藤さんは", &["佐藤", "田中"]),
            (vec![1, 0], false)
        );
        assert_eq!(found("田中と佐藤", &["佐藤", "田中"]), (vec![1, 0], true));
        assert_eq!(found("민수는 어디?", &["민수"]), (vec![0], false));
    }

    #[test]
    fn the_person_of_a_question_is_first_before_second() {
        let person = |text, language| Persons::count(text, language).person();
        assert_eq!(
            person("What did you tell me?", Language::English),
            Some(Person::First)
        );
        assert_eq!(
            person("What did you say?", Language::English),
            Some(Person::Second)
        );
        assert_eq!(person("What did she say?", Language::English), None);
        assert_eq!(
            person("Was hast du mir gesagt?", Language::German),
            Some(Person::First)
        );
        assert_eq!(
            Persons::count("I'm my own boss", Language::English),
            Persons {
                first: 2,
                second: 0,
                words: 5
            }
        );
    }

    proptest! {
        #[test]
        fn any_text_and_names_give_valid_spans(text in any::<String>(), names in prop::collection::vec(any::<String>(), 0..4)) {
            for mention in mentions(&text, &names, Language::English).mentions {
                prop_assert!(text.get(mention.span).is_some() && mention.name < names.len());
            }
        }

        #[test]
        fn a_name_that_is_in_the_text_is_mentioned(before in "[a-z ]{0,20}", name in "[A-Z][a-z]{2,8}( [A-Z][a-z]{2,8})?") {
            let text = format!("{before} {name}'s");
            prop_assert_eq!(mentions(&text, &[&name], Language::English).mentions.len(), 1);
        }
    }
}
