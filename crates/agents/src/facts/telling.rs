//! Dates and corrections in the words of a turn. A language model that finds a fact has both from
//! these words or from nowhere: a date that was made up ends what is true, and a correction that
//! was made up denies that it ever was.

use std::ops::Range;

use chrono::Days;
use memfleet_domain::fact::{Draft, Stance};
use memfleet_domain::space::Locale;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_language::time::{Reference, references};
use memfleet_language::{Language, sentences};

use super::is_state;
use super::words::{Part, Word, words};

/// The times that a text tells of.
#[derive(Debug, Clone)]
pub struct Times(Vec<Told>);

#[derive(Debug, Clone)]
struct Told {
    /// From its first instant up to the first one behind it.
    during: Range<Timestamp>,
    /// The same as clocks of the space show it: a date without a zone means that.
    shown: Range<Timestamp>,
}

impl Times {
    /// Times of a text that is from this instant. One that names no year may mean the last or the
    /// next of them.
    pub fn of(text: &str, said_at: Timestamp, locale: &Locale) -> Self {
        let language = Language::tagged(locale.language.as_deref());
        let zone = locale.time_zone.0;
        let from = |now| references(text, now, zone, language);
        // At the end of time nothing is to come.
        let in_days = |days| said_at.checked_add_days(Days::new(days)).unwrap_or(said_at);
        let past = from(said_at);
        let (in_a_week, in_a_year) = (from(in_days(7)), from(in_days(365)));
        let coming = past.iter().filter(|found| found.recurring);
        let coming: Vec<_> = coming
            .filter_map(|found| {
                let mut later = [&in_a_week, &in_a_year].into_iter().flatten();
                later.find(|later| later.span == found.span && later.start > found.start)
            })
            .collect();
        let shown = |instant: Timestamp| instant.with_timezone(&zone).naive_local().and_utc();
        let told = past.iter().chain(coming).map(|found: &Reference| Told {
            during: found.start..found.end,
            shown: shown(found.start)..shown(found.end),
        });
        Self(told.collect())
    }

    /// The beginning of the time that a date is in, which is all that the words say; nothing where
    /// the text tells of none.
    pub fn begun(&self, date: Timestamp) -> Option<Timestamp> {
        let is_told = |told: &&Told| told.during.contains(&date) || told.shown.contains(&date);
        self.0.iter().find(is_told).map(|told| told.during.start)
    }

    /// Whether a date is in one of these times, or ends it.
    fn has_end(&self, date: Timestamp) -> bool {
        let ends = |during: &Range<Timestamp>| during.contains(&date) || during.end == date;
        let is_told = |told: &Told| ends(&told.during) || ends(&told.shown);
        self.0.iter().any(is_told)
    }
}

/// Whether a sentence of a text takes back what was said.
pub fn takes_back(text: &str) -> bool {
    let mut said = sentences(text).into_iter();
    said.any(|range| {
        let sentence = unquoted(&text[range]);
        CORRECTIONS.iter().any(|wording| sentence.contains(wording))
    })
}

/// A fact with those of its dates that its sentence tells of, and as a plain statement where its
/// turn takes nothing back; and how much of it was left out. A date that is left out leaves the
/// fact holding from its turn on, or up to it where it is told as over.
pub fn as_told(mut draft: Draft, text: &str, said_at: Timestamp, locale: &Locale) -> (Draft, u32) {
    let sentence = around(text, &draft.evidence);
    let times = Times::of(&text[sentence.clone()], said_at, locale);
    let given = draft.valid;
    let mut start = given.start.and_then(|date| times.begun(date));
    let over = over(text, sentence, &draft.evidence, locale);
    let is_end = |date: &Timestamp| {
        let is_to_come = *date > said_at;
        times.has_end(*date) && (is_to_come || over != Over::No)
    };
    let taken = given.end.filter(is_end);
    let end = taken.or(given.end.filter(|_| over == Over::State).map(|_| said_at));
    // What is told last holds: that it is over.
    if start.zip(end).is_some_and(|(start, end)| end <= start) {
        start = None;
    }
    draft.valid = TimeRange { start, end };
    let untold_stance = draft.stance == Stance::Corrects && !takes_back(text);
    if untold_stance {
        draft.stance = Stance::States;
    }
    let untold = [
        given.start.is_some() && start.is_none(),
        given.end != taken,
        untold_stance,
    ];
    let untold = untold.into_iter().filter(|untold| *untold).count();
    (draft, untold as u32)
}

/// The sentences that a passage is in.
fn around(text: &str, passage: &Range<u32>) -> Range<usize> {
    let passage = passage.start as usize..passage.end as usize;
    let touches = |range: &Range<usize>| range.start < passage.end && passage.start < range.end;
    let touched: Vec<_> = sentences(text).into_iter().filter(touches).collect();
    match (touched.first(), touched.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    }
}

/// Whether words tell of something that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    No,
    /// It ended at the time that is told.
    Then,
    /// A state of the past: over, whenever it ended.
    State,
}

/// End that English words tell by the past of a verb; in other languages only the date tells.
fn over(text: &str, sentence: Range<usize>, evidence: &Range<u32>, locale: &Locale) -> Over {
    if Language::tagged(locale.language.as_deref()) != Language::English {
        return Over::Then;
    }
    let names_end = words(&text[sentence])
        .iter()
        .any(|word| matches!(word.low.as_str(), "until" | "till"));
    let told = text.get(evidence.start as usize..evidence.end as usize);
    let told = words(told.unwrap_or_default());
    let used_to = |pair: &[Word]| pair[0].low == "used" && pair[1].low == "to";
    if told.windows(2).any(used_to) {
        return Over::State;
    }
    // "Have lived" lasts.
    let is_past = |(at, word): (usize, &Word)| {
        let (verb, is_past) = word.verb()?;
        let is_perfect = at > 0 && told[at - 1].is(Part::Have);
        (is_past && !is_perfect).then_some(verb)
    };
    let pasts: Vec<&str> = told.iter().enumerate().filter_map(is_past).collect();
    match pasts.iter().any(|verb| is_state(verb)) {
        true => Over::State,
        // An event lasts in what came of it, unless its end is told.
        false if names_end && !pasts.is_empty() => Over::Then,
        false => Over::No,
    }
}

/// Wordings by which a speaker takes back what was said before.
const CORRECTIONS: [&str; 14] = [
    "i meant",
    "correction",
    "scratch that",
    "my mistake",
    "i misspoke",
    "sorry, it's",
    "sorry, i",
    "no, it's",
    "that was wrong",
    "i was wrong",
    "got that wrong",
    "i mixed",
    "not what i said",
    "typo",
];

/// A sentence in lower case without its quotations.
fn unquoted(sentence: &str) -> String {
    let mut is_quoted = false;
    let own = sentence.chars().filter(|letter| {
        let is_mark = matches!(letter, '"' | '“' | '”');
        is_quoted ^= is_mark;
        !is_quoted && !is_mark
    });
    own.collect::<String>().to_lowercase()
}
