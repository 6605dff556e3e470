//! Values that show what they are: a phone number, a time of day, the name of a dog. Beside a word that says whose value it is ("rent",
//! "alarm", "report to") such a value is the attribute's, however the sentence is built; what was so, may be so, or is so of somebody
//! else is left out, and so is a sentence that leaves open which of several values holds.
//!
//! `shapes` is what values look like, `values` which of a sentence's hold, `assertion` whether a clause tells how things are, `stated` what of
//! a sentence states something at all, `lists` the words of all these.
//!
//! The lists are `data/slots.txt` (attributes, shapes, cues) and `data/shapes.txt` (words of values and around them).

mod assertion;
mod lists;
mod shapes;
mod stated;
mod values;

use std::ops::Range;
use std::sync::LazyLock;

use memfleet_language::sentences;

use super::words::{Form, Part, Word};
use lists::joined;
use shapes::Shape;
pub use stated::stated;
use values::{clauses, place, prefer, shaped, values};

/// An attribute with a shape.
struct Slot {
    attribute: &'static str,
    shape: Shape,
    cues: Vec<Vec<Cue>>,
}

impl Slot {
    fn is_cued(&self, words: &[Word]) -> bool {
        self.cued(words).next().is_some()
    }

    /// The cues all of whose words are there.
    fn cued<'s>(&'s self, words: &'s [Word]) -> impl Iterator<Item = &'s Vec<Cue>> {
        let all = |cue: &&Vec<Cue>| cue.iter().all(|word| word.places(words).next().is_some());
        self.cues.iter().filter(all)
    }

    /// The value that holds by what a sentence says, if it is only one.
    fn value(&self, words: &[Word]) -> Option<Range<usize>> {
        let mut found = said(self.shape, words);
        let clauses = clauses(words);
        prefer(&mut found, |value| {
            let mut around = clauses
                .iter()
                .filter(|clause| clause.contains(&value.start));
            around.any(|clause| self.is_cued(&words[clause.clone()]))
        });
        let text = |value: &Range<usize>| joined(&words[value.clone()]);
        let is_one = found
            .windows(2)
            .all(|pair| text(&pair[0]) == text(&pair[1]));
        found.into_iter().next().filter(|_| is_one)
    }

    /// How far the nearest word that says whose it is stands from a value.
    fn distance(&self, words: &[Word], value: &Range<usize>) -> Option<usize> {
        let cues = self.cued(words).flatten();
        let places = cues.flat_map(|cue| cue.places(words));
        let far = |place: Range<usize>| {
            let after = value.start.saturating_sub(place.end);
            after.max(place.start.saturating_sub(value.end))
        };
        places.map(far).min()
    }
}

/// A word, the beginning of words, or words one after the other.
enum Cue {
    Is(&'static str),
    Begins(&'static str),
    Phrase(Vec<&'static str>),
}

impl Cue {
    /// Where it stands.
    fn places<'s>(&'s self, words: &'s [Word]) -> impl Iterator<Item = Range<usize>> {
        let length = match self {
            Self::Phrase(cue) => cue.len(),
            Self::Is(_) | Self::Begins(_) => 1,
        };
        let runs = words.windows(length).enumerate();
        let is_it = |(_, run): &(usize, &[Word])| self.is(run);
        runs.filter(is_it).map(move |(at, _)| at..at + length)
    }

    fn is(&self, run: &[Word]) -> bool {
        let low = run[0].low.trim_end_matches("'s");
        match self {
            Self::Phrase(cue) => run.iter().zip(cue).all(|(word, cue)| word.low == *cue),
            _ if run[0].is_mark => false,
            Self::Begins(cue) => low.starts_with(cue),
            // "jobs", not "works".
            Self::Is(cue) => {
                low == *cue
                    || low.strip_suffix('s') == Some(cue)
                        && !matches!(run[0].verb(), Some((_, Form::Present)))
            }
        }
    }
}

static SLOTS: LazyLock<Vec<Slot>> = LazyLock::new(|| {
    let data = include_str!("../../data/slots.txt");
    let lines = data.lines().filter(|line| !line.starts_with('#'));
    let slots = lines.map(|line| {
        let mut fields = line.split(" | ");
        let mut field = || fields.next().expect("a slot has three fields");
        let (attribute, shape, cues) = (field(), field(), field());
        let cue = |word: &'static str| match word.strip_suffix('~') {
            Some(beginning) => Cue::Begins(beginning),
            None if word.contains('_') => Cue::Phrase(word.split('_').collect()),
            None => Cue::Is(word),
        };
        Slot {
            attribute,
            shape: Shape::named(shape).expect("a slot names a shape that there is"),
            cues: cues
                .split(", ")
                .map(|together| together.split('+').map(cue).collect())
                .collect(),
        }
    });
    slots.collect()
});

/// An attribute's value in a sentence.
#[derive(Debug, PartialEq, Eq)]
pub struct Filled {
    /// Which attribute.
    pub attribute: &'static str,
    /// The value, as it stands.
    pub value: String,
    /// The words that say so.
    pub evidence: Range<usize>,
}

/// The attributes whose values a sentence tells of its speaker. `before` is the sentence before it: "New alarm! It's 6:15."
pub fn filled(words: &[Word], before: &[Word]) -> Vec<Filled> {
    let named = if goes_on(words) || is_heading(before) {
        before
    } else {
        &[]
    };
    let Some(words) = stated(words) else {
        return Vec::new();
    };
    let found: Vec<Found<'_>> = SLOTS
        .iter()
        .filter_map(|slot| Found::of(slot, words, named))
        .collect();
    let of_another = |it: &Found<'_>| found.iter().any(|other| other.takes_from(it));
    let filled = found.iter().filter(|it| !of_another(it));
    filled.map(|it| it.filled(words)).collect()
}

/// Whether a sentence goes on from the one before: "It's 6:15."
fn goes_on(words: &[Word]) -> bool {
    let starts = ["it", "that", "now", "mine", "use", "the", "from", "should"];
    words
        .first()
        .is_some_and(|word| starts.contains(&word.low.as_str()))
}

/// Whether a sentence only names what the next one tells of: "New job!", "My favorite meal?"
fn is_heading(words: &[Word]) -> bool {
    let Some((mark, said)) = words.split_last() else {
        return false;
    };
    let is_open = matches!(mark.low.as_str(), "!" | "?" | ":");
    let asks = said.iter().any(|word| word.low.starts_with("you"));
    let has_verb = said
        .iter()
        .any(|word| word.is_any(&[Part::Be, Part::Have, Part::Do, Part::Modal, Part::Pronoun]));
    is_open && said.len() <= HEADING && !asks && !has_verb
}

/// Most words of a heading.
const HEADING: usize = 6;

/// A value of an attribute.
struct Found<'w> {
    attribute: &'static str,
    value: Range<usize>,
    first: &'w Word,
    /// How far its cue is; that of the sentence before is farthest.
    distance: usize,
}

impl<'w> Found<'w> {
    fn of(slot: &Slot, words: &'w [Word], named: &'w [Word]) -> Option<Self> {
        let first = if slot.is_cued(words) {
            &words[0]
        } else {
            named
                .first()
                .filter(|_| slot.is_cued(&[named, words].concat()))?
        };
        let value = slot.value(words)?;
        Some(Self {
            attribute: slot.attribute,
            distance: slot.distance(words, &value).unwrap_or(usize::MAX),
            value,
            first,
        })
    }

    /// Whether the other's value is this attribute's, whose cue is nearer: "New company, new laptop: I'm working at Ostrava now".
    fn takes_from(&self, other: &Self) -> bool {
        let overlaps = self.value.start < other.value.end && other.value.start < self.value.end;
        overlaps && self.distance < other.distance
    }

    fn filled(&self, words: &[Word]) -> Filled {
        let last = &words[words.len() - 1];
        let texts = words[self.value.clone()].iter();
        Filled {
            attribute: self.attribute,
            value: texts
                .map(|word| word.text.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            evidence: self.first.span.start..last.span.end,
        }
    }
}

/// Whether a text has a cue of the attribute.
pub fn is_cued(attribute: &str, words: &[Word]) -> bool {
    let mut slots = SLOTS.iter().filter(|slot| slot.attribute == attribute);
    slots.any(|slot| slot.is_cued(words))
}

/// Whether a word is, or begins like, a cue of any attribute.
fn is_cue(word: &Word) -> bool {
    let low = word.low.trim_end_matches("'s");
    let mut cues = SLOTS.iter().flat_map(|slot| slot.cues.iter().flatten());
    cues.any(|cue| match cue {
        Cue::Is(cue) => low == *cue,
        Cue::Begins(cue) => low.starts_with(cue),
        Cue::Phrase(cue) => cue.contains(&low),
    })
}

/// What a text has to say of an attribute of its speaker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// The values that it names, as keys, whatever it says of them.
    pub names: Vec<String>,
    /// Those of them that it says to be so now.
    pub states: Vec<String>,
}

/// What a text has to say of an attribute of its speaker; nothing where it tells of something else. A value that can only be this
/// attribute's needs no cue.
pub fn told(attribute: &str, text: &str) -> Option<Told> {
    let slot = SLOTS.iter().find(|slot| slot.attribute == attribute)?;
    let all: Vec<Vec<Word>> = sentences(text)
        .into_iter()
        .map(|range| super::words::words(&text[range.clone()], range.start))
        .collect();
    let whole = all.concat();
    let is_anothers = || {
        let others = SLOTS.iter().filter(|other| other.attribute != attribute);
        let mut cued = others.filter(|other| other.is_cued(&whole));
        cued.any(|other| !shaped(other.shape, &whole).is_empty())
    };
    if !slot.is_cued(&whole) && (!slot.shape.is_distinct() || is_anothers()) {
        return None;
    }
    let rivals: Vec<&Slot> = SLOTS
        .iter()
        .filter(|other| {
            other.attribute != attribute && other.shape == slot.shape && !slot.shape.is_distinct()
        })
        .collect();
    let mut told = Told::default();
    let mut was_named = false;
    for words in &all {
        if !slot.is_cued(words) && rivals.iter().any(|rival| rival.is_cued(words)) {
            continue;
        }
        told.names.extend(keys(words, shaped(slot.shape, words)));
        let stated = stated(words).unwrap_or_default();
        let said: Vec<String> = keys(stated, said(slot.shape, stated)).collect();
        if !said.is_empty() {
            // Of several sentences the last one counts that names what it tells of.
            let is_named = slot.is_cued(words);
            if is_named || !was_named {
                told.states = said;
                was_named = is_named;
            }
        }
    }
    (!told.names.is_empty()).then_some(told)
}

/// The values that a sentence states: of one that corrects itself what was meant.
fn said(shape: Shape, words: &[Word]) -> Vec<Range<usize>> {
    let Some((_, meant)) = super::clauses::corrected(words) else {
        return values(shape, words);
    };
    let first = place(words, meant);
    let mut all = shaped(shape, words);
    all.retain(|value| first.is_some_and(|first| value.start >= first));
    all
}

fn keys(words: &[Word], values: Vec<Range<usize>>) -> impl Iterator<Item = String> {
    values.into_iter().map(|value| joined(&words[value]))
}

/// The attributes that a query names.
pub fn named(query: &str) -> Vec<&'static str> {
    let words = super::words::words(query, 0);
    let named = SLOTS.iter().filter(|slot| slot.is_cued(&words));
    named.map(|slot| slot.attribute).collect()
}
