//! Values that show what they are: a phone number, a time of day, the name of a dog. Beside a word that says whose value it is ("rent",
//! "alarm", "report to") such a value is the attribute's, however the sentence is built; what was so, may be so, or is so of somebody
//! else is left out, and so is a sentence that leaves open which of several values holds.
//!
//! The lists are `data/slots.txt` (attributes, shapes, cues) and `data/shapes.txt` (words of values and around them).

mod shapes;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use super::words::{Form, Part, Word, lines};
use shapes::Shape;

/// An attribute with a shape.
struct Slot {
    attribute: &'static str,
    shape: Shape,
    cues: Vec<Vec<Cue>>,
}

impl Slot {
    fn is_cued(&self, words: &[Word]) -> bool {
        let all = |cue: &Vec<Cue>| cue.iter().all(|word| word.is_in(words));
        self.cues.iter().any(all)
    }
}

/// A word, or the beginning of words.
enum Cue {
    Is(&'static str),
    Begins(&'static str),
}

impl Cue {
    fn is_in(&self, words: &[Word]) -> bool {
        words.iter().filter(|word| !word.is_mark).any(|word| {
            let low = word.low.trim_end_matches("'s");
            match self {
                Self::Is(cue) => low == *cue,
                Self::Begins(cue) => low.starts_with(cue),
            }
        })
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

/// Words around values, by the name of their list; those of several words are joined by "_".
static AROUND: LazyLock<HashMap<&str, HashSet<&str>>> = LazyLock::new(|| {
    let lists = lines(include_str!("../../data/shapes.txt"));
    lists
        .map(|(name, words)| (name, words.split_whitespace().collect()))
        .collect()
});

fn is_among(list: &str, word: &str) -> bool {
    AROUND.get(list).is_some_and(|words| words.contains(word))
}

/// Whether words of this list are in a sentence.
fn has_any(list: &str, words: &[Word]) -> bool {
    (0..words.len()).any(|at| {
        (1..=3).any(|length| {
            words
                .get(at..at + length)
                .is_some_and(|run| is_among(list, &joined(run)))
        })
    })
}

fn joined(words: &[Word]) -> String {
    let lows: Vec<&str> = words.iter().map(|word| word.low.as_str()).collect();
    lows.join("_")
}

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
    let goes_on = words.first().is_some_and(|word| {
        let starts = ["it", "that", "now", "mine", "use", "the", "from", "should"];
        starts.contains(&word.low.as_str())
    });
    let named = if goes_on { before } else { &[] };
    let words = stated(words);
    let Some(words) = words.filter(|words| states(words)) else {
        return Vec::new();
    };
    let filled = SLOTS.iter().filter_map(|slot| {
        let first = if slot.is_cued(words) {
            &words[0]
        } else {
            named
                .first()
                .filter(|_| slot.is_cued(&[named, words].concat()))?
        };
        let value = value(slot.shape, words)?;
        let last = &words[words.len() - 1];
        let texts = words[value].iter().map(|word| word.text.as_str());
        Some(Filled {
            attribute: slot.attribute,
            value: texts.collect::<Vec<_>>().join(" "),
            evidence: first.span.start..last.span.end,
        })
    });
    filled.collect()
}

/// Whether a text has a cue of the attribute.
pub fn is_cued(attribute: &str, words: &[Word]) -> bool {
    let mut slots = SLOTS.iter().filter(|slot| slot.attribute == attribute);
    slots.any(|slot| slot.is_cued(words))
}

/// A sentence without the condition that it is said under ("if you need me, call …") and the question that it ends with ("…, any
/// tips?"); nothing where it only asks or supposes.
pub fn stated(words: &[Word]) -> Option<&[Word]> {
    supposed(before_question(words)?)
}

/// Words that begin a question.
const ASKING: [&str; 24] = [
    "any", "could", "can", "would", "how", "what", "where", "who", "which", "why", "when", "do",
    "does", "did", "is", "are", "am", "was", "should", "shall", "will", "whose", "have", "has",
];

fn before_question(words: &[Word]) -> Option<&[Word]> {
    if words
        .last()
        .is_none_or(|word| word.low != "?" && word.low != "？")
    {
        return Some(words);
    }
    let asks = |word: &Word| !word.is_mark && ASKING.contains(&word.low.as_str());
    let marks = words
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, word)| word.low == ",");
    let tail = marks.map(|(at, _)| at).find(|at| {
        let joins = |word: &Word| matches!(word.low.as_str(), "so" | "and" | "but");
        words[at + 1..]
            .iter()
            .find(|word| !joins(word))
            .is_some_and(asks)
    })?;
    let head = &words[..tail];
    (!head.first().is_some_and(asks)).then_some(head)
}

fn supposed(words: &[Word]) -> Option<&[Word]> {
    let is_if = |word: &Word| word.low == "if";
    let Some(at) = words.iter().position(is_if) else {
        return Some(words);
    };
    let comma = |words: &[Word]| words.iter().position(|word| word.low == ",");
    let main = match at {
        0 => &words[comma(words)? + 1..],
        _ if words[at - 1].is_mark => &words[..at - 1],
        _ => return None,
    };
    let is_open = main.iter().any(|word| is_if(word) || word.is(Part::Modal));
    (!is_open && !main.is_empty()).then_some(main)
}

/// Whether a sentence tells how things are now, of who says it.
fn states(words: &[Word]) -> bool {
    let is_others = words.iter().any(|word| {
        let low = word.low.trim_end_matches("'s");
        is_among("other", low) && !word.is_mark
    });
    !is_others && !has_any("plan", words) && !has_any("past", words) && !was(words)
}

/// "was" of a state; what was changed is so now.
fn was(words: &[Word]) -> bool {
    let has = |among: &[&str]| words.iter().any(|word| among.contains(&word.low.as_str()));
    if has(&["meant"]) {
        return false;
    }
    if has(&["had", "owned", "studied", "lived", "drove", "ate"]) && !has(&["now", "today", "new"])
    {
        return true;
    }
    let Some(at) = words
        .iter()
        .position(|word| matches!(word.low.as_str(), "was" | "were"))
    else {
        return false;
    };
    let next = words[at + 1..].iter().find(|word| !word.is(Part::Adverb));
    let is_done =
        next.is_some_and(|word| matches!(word.verb(), Some((_, Form::Past | Form::Participle))));
    !is_done
}

/// The value that holds by what the sentence says: the only one that is not said to be over.
fn value(shape: Shape, words: &[Word]) -> Option<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        match shape.length(words, at) {
            Some(length) => {
                found.push(at..at + length);
                at += length;
            }
            None => at += 1,
        }
    }
    found.retain(|value| !is_over(words, value));
    if found.len() > 1 {
        let new: Vec<_> = found
            .iter()
            .filter(|value| is_new(words, value))
            .cloned()
            .collect();
        if !new.is_empty() {
            found = new;
        }
    }
    let text = |value: &Range<usize>| joined(&words[value.clone()]);
    let is_one = found
        .windows(2)
        .all(|pair| text(&pair[0]) == text(&pair[1]));
    found.into_iter().next().filter(|_| is_one)
}

/// Whether the words around a value say that it was.
fn is_over(words: &[Word], value: &Range<usize>) -> bool {
    let before = &words[value.start.saturating_sub(3)..value.start];
    // Only up to a mark.
    let mark = before.iter().rposition(|word| word.is_mark);
    let before = &before[mark.map_or(0, |mark| mark + 1)..];
    let after = &words[value.end..words.len().min(value.end + 2)];
    let mark = after.iter().position(|word| word.is_mark);
    let after = &after[..mark.unwrap_or(after.len())];
    // "no longer X but Y", "moved from X to Y": what is nearest counts.
    let nearest = before
        .iter()
        .rev()
        .find(|word| is_among("before_old", &word.low) || is_among("before_new", &word.low));
    let is_old = nearest.is_some_and(|word| is_among("before_old", &word.low))
        || before
            .windows(2)
            .any(|pair| is_among("before_old", &joined(pair)))
        || before
            .iter()
            .any(|word| matches!(word.low.as_str(), "not" | "never"));
    is_old || is_denied(words, value) || has_any("after_old", after)
}

/// Whether the clause denies before it comes to the value.
fn is_denied(words: &[Word], value: &Range<usize>) -> bool {
    let before = words[..value.start].iter().rev().take(8);
    let mut clause = before
        .take_while(|word| !word.is_mark && !matches!(word.low.as_str(), "but" | "so" | "and"));
    clause.any(|word| matches!(word.low.as_str(), "not" | "never"))
}

fn is_new(words: &[Word], value: &Range<usize>) -> bool {
    let before = &words[value.start.saturating_sub(2)..value.start];
    let after = words.get(value.end..).unwrap_or_default();
    before.iter().any(|word| is_among("before_new", &word.low))
        || after
            .first()
            .is_some_and(|word| matches!(word.low.as_str(), "is" | "now" | "it"))
}
