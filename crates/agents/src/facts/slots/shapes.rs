//! What values look like.

use super::super::claims::is_worker;
use super::super::words::{Form, Part, Word};
use super::lists::{is_among, joined};

/// A kind of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Phone,
    Email,
    Money,
    Clock,
    Date,
    Weekday,
    Count,
    Person,
    Doctor,
    Name,
    Make,
    Place,
    Subject,
    Car,
    Title,
    Color,
    Language,
    Diet,
    Job,
    Handset,
    Dish,
}

const NAMES: [(&str, Shape); 21] = [
    ("phone", Shape::Phone),
    ("email", Shape::Email),
    ("money", Shape::Money),
    ("clock", Shape::Clock),
    ("date", Shape::Date),
    ("weekday", Shape::Weekday),
    ("count", Shape::Count),
    ("person", Shape::Person),
    ("doctor", Shape::Doctor),
    ("name", Shape::Name),
    ("make", Shape::Make),
    ("place", Shape::Place),
    ("subject", Shape::Subject),
    ("car", Shape::Car),
    ("title", Shape::Title),
    ("color", Shape::Color),
    ("language", Shape::Language),
    ("diet", Shape::Diet),
    ("job", Shape::Job),
    ("handset", Shape::Handset),
    ("dish", Shape::Dish),
];

/// Small words inside a title.
const SMALL: [&str; 13] = [
    "of", "the", "a", "an", "to", "in", "for", "and", "at", "on", "from", "with", "by",
];

/// What is counted in time or money is no count of heads.
const UNITS: [&str; 16] = [
    "am", "pm", "hour", "hours", "minute", "minutes", "day", "days", "week", "weeks", "month",
    "months", "year", "years", "dollars", "percent",
];

impl Shape {
    pub fn named(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, shape)| *shape)
    }

    /// Whether nothing else looks like it: a capitalised word may be anybody's name, a number the count of anything.
    pub fn is_distinct(self) -> bool {
        let vague = [
            Self::Clock,
            Self::Weekday,
            Self::Dish,
            Self::Count,
            Self::Person,
            Self::Name,
            Self::Make,
            Self::Place,
            Self::Title,
            Self::Subject,
            Self::Job,
        ];
        !vague.contains(&self)
    }

    /// How many words of a value of this shape begin at a word.
    pub fn length(self, words: &[Word], at: usize) -> Option<usize> {
        let word = words.get(at).filter(|word| !word.is_mark)?;
        let low = word.low.trim_end_matches("'s");
        let next = words.get(at + 1).map_or("", |word| word.low.as_str());
        let one = |is_it: bool| is_it.then_some(1);
        match self {
            Self::Phone => {
                let digits = low.chars().filter(char::is_ascii_digit).count();
                one(digits >= 7
                    && low
                        .chars()
                        .all(|it| it.is_ascii_digit() || "+-.".contains(it)))
            }
            Self::Email => one(low.contains('@') && low.contains('.')),
            Self::Money => {
                let is_number = low.starts_with(|letter: char| letter.is_ascii_digit());
                let named = is_number && ["dollars", "euros", "pounds", "bucks"].contains(&next);
                if named {
                    Some(2)
                } else {
                    one(low.starts_with(['$', '€', '£']))
                }
            }
            Self::Clock => clock(low, next),
            Self::Date => date(low, next),
            Self::Weekday => {
                let day = low.trim_end_matches('s');
                let is_day = is_among("weekday", day);
                let time = next.trim_end_matches('s');
                is_day.then_some(1 + usize::from(is_among("daytime", time)))
            }
            Self::Count => {
                let is_digits = low.len() < 5 && low.chars().all(|it| it.is_ascii_digit());
                let is_word = low.split('-').all(|part| is_among("number", part));
                one((is_digits || is_word) && low != "one" && !UNITS.contains(&next))
            }
            Self::Doctor => {
                let name = names(words, at + 1);
                (low == "dr" && name > 0).then_some(1 + name)
            }
            Self::Person | Self::Name => {
                let length = names(words, at);
                (length > 0 && stands(words, at, length)).then_some(length)
            }
            Self::Make => {
                let length = run(words, at, |word| is_part(word) || has_digit(word));
                (length > 0 && is_part(word) && stands(words, at, length)).then_some(length)
            }
            Self::Place => {
                let length = run(words, at, is_part);
                let before = at.checked_sub(1).map_or("", |at| words[at].low.as_str());
                let is_led = is_among("before_place", before);
                // "Oslo is home now".
                let next = words.get(at + length).map_or("", |word| word.low.as_str());
                let is_it = matches!(next, "is" | "home");
                (length > 0 && (is_led || is_it)).then_some(length)
            }
            Self::Subject => {
                let field = usize::from(is_among("field", low));
                let head = words.get(at + field)?;
                is_among("subject", &head.low).then_some(field + 1)
            }
            Self::Car => one(is_among("car", low) && word.is_name()),
            Self::Title => title(words, at).filter(|length| stands(words, at, *length)),
            Self::Color => color(words, at),
            Self::Language => one(is_among("language", &word.text)),
            Self::Diet => one(is_among("diet", low)),
            Self::Job => job(words, at),
            Self::Handset => is_among("handset", low)
                .then(|| 1 + run(words, at + 1, |word| is_part(word) || has_digit(word))),
            Self::Dish => dish(words, at),
        }
    }
}

fn run(words: &[Word], at: usize, is_part: impl Fn(&Word) -> bool) -> usize {
    let rest = words.get(at..).unwrap_or_default();
    rest.iter().take_while(|word| is_part(word)).count()
}

fn has_digit(word: &Word) -> bool {
    !word.is_mark && word.low.contains(|letter: char| letter.is_ascii_digit())
}

/// A capitalised word that is no word of grammar, no day and no month.
fn is_part(word: &Word) -> bool {
    let day = word.low.trim_end_matches('s');
    let is_time = is_among("weekday", day) || is_among("month", &word.low);
    let grammar = [
        Part::Be,
        Part::Have,
        Part::Do,
        Part::Modal,
        Part::Determiner,
        Part::Preposition,
        Part::Subordinate,
        Part::Adverb,
        Part::Negation,
    ];
    word.is_name() && !is_time && !word.is_any(&grammar) && word.low != "dr"
}

fn names(words: &[Word], at: usize) -> usize {
    run(words, at, |word| is_part(word) && !word.low.ends_with("'s"))
}

/// A sentence begins with a capital: what stands there is a name where it goes on like one.
fn stands(words: &[Word], at: usize, length: usize) -> bool {
    if at > 0 && !words[at - 1].is_mark {
        return true;
    }
    // "Best band? Vampire Weekend."
    if at == 0 && words[length..].iter().all(|word| word.is_mark) {
        return true;
    }
    let opens = words[at].verb().is_some_and(|(_, form)| form != Form::Base);
    let next = words.get(at + length);
    let acts = next.is_some_and(|next| {
        next.is_any(&[Part::Be, Part::Have])
            || next.verb().is_some_and(|(_, form)| form != Form::Base)
            || next.is_mark && at > 0
    });
    !opens && (acts || at > 0)
}

/// Capitalised words, with small ones between them.
fn title(words: &[Word], at: usize) -> Option<usize> {
    let begins = |at: usize| {
        words.get(at).is_some_and(|word| {
            !word.is_mark
                && !is_among("month", &word.low)
                && word
                    .text
                    .starts_with(|letter: char| letter.is_uppercase() || letter.is_ascii_digit())
                && !matches!(word.low.as_str(), "i" | "my" | "our" | "so" | "mine")
        })
    };
    if !begins(at) || (at > 0 && begins(at - 1)) {
        return None;
    }
    // "Swapped This for That" names two.
    let trades = words[..at].iter().any(|word| {
        matches!(
            word.low.as_str(),
            "swapped" | "traded" | "exchanged" | "swap" | "trade"
        )
    });
    let mut end = at + 1;
    loop {
        let small = run(words, end, |word| {
            SMALL.contains(&word.low.as_str()) && !word.is_mark && !(trades && word.low == "for")
        });
        if begins(end) {
            end += 1;
        } else if small > 0 && small < 4 && begins(end + small) {
            end += small + 1;
        } else {
            break;
        }
    }
    let length = end - at;
    (length > 1 || is_part(&words[at])).then_some(length)
}

/// "a data analyst", "from nurse to pilot".
fn job(words: &[Word], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map_or("", |at| words[at].low.as_str());
    let is_led = matches!(
        before,
        "a" | "an" | "as" | "meant" | "say" | "not" | "is" | "from" | "now" | "called"
    ) || (before == "to" && !matches!(words[at].verb(), Some((_, Form::Base))));
    let plain = run(words, at, |word| is_plain(word) && !word.is_name()).min(4);
    let is_job = |length: &usize| is_worker(&words[at + length - 1].low);
    (1..=plain).find(is_job).filter(|_| is_led)
}

/// "lasagna", "mac and cheese".
fn dish(words: &[Word], at: usize) -> Option<usize> {
    (1..=3).rev().find(|length| {
        let run = words.get(at..at + length);
        run.is_some_and(|run| is_among("dish", &joined(run)))
    })
}

/// A word that carries meaning.
fn is_plain(word: &Word) -> bool {
    let grammar = [
        Part::Be,
        Part::Have,
        Part::Do,
        Part::Modal,
        Part::Future,
        Part::Negation,
        Part::Adverb,
        Part::Opening,
        Part::Subordinate,
        Part::Preposition,
        Part::Particle,
        Part::Determiner,
        Part::Pronoun,
        Part::Cut,
    ];
    !word.is_mark && !word.is_any(&grammar)
}

fn color(words: &[Word], at: usize) -> Option<usize> {
    let shades = run(words, at, |word| is_among("shade", &word.low));
    // The last shade may be the color itself.
    (0..=shades).rev().find_map(|shades| {
        let head = words.get(at + shades)?;
        is_among("color", &head.low).then_some(shades + 1)
    })
}

fn clock(low: &str, next: &str) -> Option<usize> {
    let (hour, minute) = low.split_once(':').unwrap_or((low, ""));
    let is_number = |text: &str, most: u32| text.parse::<u32>().is_ok_and(|it| it <= most);
    let half = ["am", "pm"].contains(&next);
    if is_number(hour, 23)
        && (is_number(minute, 59) && minute.len() == 2 || minute.is_empty() && half)
    {
        return Some(1 + usize::from(half));
    }
    let joined = low.strip_suffix("am").or(low.strip_suffix("pm"));
    let is_joined = joined.is_some_and(|time| {
        let (hour, minute) = time.split_once(':').unwrap_or((time, "00"));
        is_number(hour, 12) && is_number(minute, 59)
    });
    (is_joined || ["noon", "midnight"].contains(&low)).then_some(1)
}

fn date(low: &str, next: &str) -> Option<usize> {
    let is_day = |word: &str| {
        let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        digits
            .parse::<u32>()
            .is_ok_and(|day| (1..=31).contains(&day))
    };
    let is_date =
        (is_among("month", low) && is_day(next)) || (is_day(low) && is_among("month", next));
    is_date.then_some(2)
}
