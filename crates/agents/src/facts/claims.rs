//! Keys that compare: whoever words it, where somebody lives is `residence` and Lisbon is `lisbon`.

use std::collections::HashMap;
use std::sync::LazyLock;

use memfleet_domain::fact::{Claim, Clause};
use memfleet_language::fold;

use super::words::{is_between_digits, lines};

/// Attribute of a predicate.
static PREDICATES: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| table(include_str!("../../data/attributes.txt")));

/// Attribute of a noun, and what other nouns are.
static NOUNS: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| table(include_str!("../../data/nouns.txt")));

/// Endings of what people work as.
const WORKERS: [&str; 12] = [
    "er", "or", "ist", "ian", "eer", "ant", "man", "woman", "ress", "smith", "wright", "ologist",
];

/// Words before a value that say nothing of it.
const LEADING: [&str; 22] = [
    "a",
    "an",
    "the",
    "my",
    "our",
    "his",
    "her",
    "their",
    "your",
    "some",
    "now",
    "currently",
    "just",
    "really",
    "actually",
    "new",
    "brand-new",
    "called",
    "named",
    "downtown",
    "beautiful",
    "lovely",
];

fn table(data: &'static str) -> HashMap<&'static str, &'static str> {
    let mut table = HashMap::new();
    for (attribute, wordings) in lines(data) {
        for wording in wordings.split(", ") {
            table.insert(wording, attribute);
        }
    }
    table
}

/// The predicates and nouns that tell an attribute.
pub fn wordings(attribute: &str) -> impl Iterator<Item = &'static str> {
    let tables = [&*PREDICATES, &*NOUNS].into_iter().flatten();
    tables.filter_map(move |(wording, of)| (*of == attribute).then_some(*wording))
}

/// What a noun names, if it is in the list.
fn noun(word: &str) -> Option<&'static str> {
    NOUNS.get(word).copied()
}

/// The key of a name or a value: folded, without articles and what only leads up to it.
pub fn key(text: &str) -> String {
    let folded = fold(text).replace('’', "'");
    // "6:15" and "1,450" are one word.
    let parted: String = folded
        .char_indices()
        .map(|(at, letter)| {
            let parts = ",;:!?\"()“”".contains(letter) && !is_between_digits(&folded, at);
            if parts { ' ' } else { letter }
        })
        .collect();
    let words: Vec<&str> = parted
        .split_whitespace()
        .map(|word| word.trim_matches(|letter: char| ".'-".contains(letter)))
        .filter(|word| !word.is_empty())
        .collect();
    let first = words
        .iter()
        .position(|word| !LEADING.contains(word))
        .unwrap_or(0);
    let key = words[first..].join(" ");
    let when = TRAILING.iter().find_map(|when| key.strip_suffix(when));
    when.map_or(key.clone(), str::to_owned)
}

/// What says when, behind a value.
const TRAILING: [&str; 10] = [
    " from now on",
    " right now",
    " for now",
    " now",
    " these days",
    " nowadays",
    " at the moment",
    " anymore",
    " instead",
    " of mine",
];

/// The claim of a clause.
pub fn claim(clause: &Clause) -> Claim {
    let value = clause
        .complement
        .as_deref()
        .or(clause.object.as_deref())
        .unwrap_or_default();
    let of = |subject: &str, attribute: &str, value: &str| Claim {
        subject: key(subject),
        attribute: attribute.to_owned(),
        value: key(value),
    };
    if let Some(attribute) = PREDICATES.get(clause.predicate.as_str()) {
        let attribute = match (*attribute, is_person(&clause.subject)) {
            ("time", true) | ("age", false) => clause.predicate.as_str(),
            // A thing is moved to a day, and lies where somebody lives.
            ("residence", false) if clause.predicate.starts_with("move") => "time",
            ("residence", false) => "location",
            // Nobody lives in a team.
            ("residence", true) if is_group(value) => clause.predicate.as_str(),
            (attribute, _) => attribute,
        };
        return of(&clause.subject, attribute, value);
    }
    match clause.predicate.as_str() {
        "be" => of_being(clause, value).unwrap_or_else(|| of(&clause.subject, "be", value)),
        "have" => of_having(clause, value).unwrap_or_else(|| of(&clause.subject, "have", value)),
        "be in" if !is_person(&clause.subject) => of(&clause.subject, "location", value),
        predicate => {
            let both = [clause.object.as_deref(), clause.complement.as_deref()];
            let value: Vec<&str> = both.into_iter().flatten().collect();
            of(&clause.subject, predicate, &value.join(" "))
        }
    }
}

/// Whether people work in it, or on it.
fn is_group(value: &str) -> bool {
    let groups = [
        "team",
        "department",
        "group",
        "project",
        "division",
        "squad",
        "role",
        "position",
    ];
    let bare = key(value);
    groups
        .iter()
        .any(|group| bare.rsplit(' ').next() == Some(group))
}

/// "Ada's favourite colour is blue" tells of Ada.
fn of_being(clause: &Clause, value: &str) -> Option<Claim> {
    let folded = fold(value);
    let bare = key(value);
    let of = |subject: &str, attribute: String, value: String| {
        Some(Claim {
            subject: key(subject),
            attribute,
            value,
        })
    };
    if let Some((owner, thing)) = owned(&clause.subject) {
        let thing = key(&thing)
            .replace("favourite", "favorite")
            .replace("colour", "color");
        let attribute = noun(&thing).filter(|attribute| {
            !["several", "status", "diet", "work", "counts"].contains(attribute)
        });
        let describes = folded.starts_with("a ") || folded.starts_with("an ");
        let names = value
            .trim()
            .starts_with(|letter: char| letter.is_uppercase() || letter.is_numeric())
            || thing.starts_with("favorite")
            || value.contains('@');
        if attribute.is_some() || thing.starts_with("favorite") || (names && !describes) {
            return of(&owner, attribute.map_or(thing, str::to_owned), bare);
        }
        return None;
    }
    let attribute = match noun(&bare) {
        Some("status") => "status",
        Some("diet") => "diet",
        Some("work") => "occupation",
        _ if bare.ends_with(" years old")
            || (bare.parse::<u32>().is_ok() && is_person(&clause.subject)) =>
        {
            "age"
        }
        _ if (folded.starts_with("a ") || folded.starts_with("an ")) && is_worker(&bare) => {
            "occupation"
        }
        _ => return None,
    };
    let value = bare
        .strip_suffix(" years old")
        .map_or(bare.clone(), str::to_owned);
    let value = if attribute == "occupation" {
        occupation(&value)
    } else {
        value
    };
    of(&clause.subject, attribute.to_owned(), value)
}

/// "Ada has three cats" counts, "Ada has a dog named Rex" names.
fn of_having(clause: &Clause, value: &str) -> Option<Claim> {
    let bare = key(value);
    let (first, rest) = bare.split_once(' ')?;
    let is_count = first.parse::<u32>().is_ok() || COUNTS.contains(&first);
    (is_count && !rest.is_empty()).then(|| Claim {
        subject: key(&clause.subject),
        attribute: format!("number of {}", rest.split(' ').next_back().unwrap_or(rest)),
        value: number(first),
    })
}

const COUNTS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

fn number(word: &str) -> String {
    let place = COUNTS.iter().position(|count| *count == word);
    place.map_or(word.to_owned(), |place| (place + 1).to_string())
}

/// Owner and thing of "Ada's sister".
fn owned(subject: &str) -> Option<(String, String)> {
    let subject = subject.replace('’', "'");
    let (owner, thing) = subject.rsplit_once("'s ")?;
    Some((owner.to_owned(), thing.to_owned()))
}

/// What somebody works as, without where.
fn occupation(value: &str) -> String {
    let cut = [" at ", " in ", " for ", " with ", " by "]
        .iter()
        .filter_map(|word| value.find(word))
        .min();
    value[..cut.unwrap_or(value.len())].to_owned()
}

/// Whether it names what somebody works as.
fn is_worker(value: &str) -> bool {
    let value = occupation(value);
    let last = value.rsplit(' ').next().unwrap_or_default();
    noun(last) == Some("work")
        || (last.len() > 4
            && WORKERS.iter().any(|ending| last.ends_with(ending))
            && !NOT_WORKERS.contains(&last))
}

/// Words with such an ending that name no work.
const NOT_WORKERS: [&str; 30] = [
    "career", "teenager", "sister", "brother", "mother", "father", "daughter", "number", "winter",
    "summer", "dinner", "matter", "member", "letter", "computer", "disaster", "monster", "winner",
    "lover", "beginner", "player", "runner", "swimmer", "listener", "color", "flavor", "error",
    "elephant", "reader", "believer",
];

/// Whether a subject is somebody: a name, or a speaker.
fn is_person(subject: &str) -> bool {
    let first = subject.chars().next();
    first.is_some_and(char::is_uppercase) && !subject.starts_with("The ")
        || matches!(subject, "user" | "assistant")
}
