//! The parts of a clause: subject, verb with what goes with it, object and complement.

use super::words::{Form, Part, Word};

/// When the verb says it is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tense {
    Present,
    Past,
    /// "used to": it was so and is not.
    Formerly,
    Future,
}

/// A clause in its parts.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing that a verb group says or does not say"
)]
pub struct Parsed<'w> {
    /// Who or what; empty where the clause goes on from the one before.
    pub subject: &'w [Word],
    /// Base form of the verb.
    pub verb: &'static str,
    /// Passive, and "be" with an adjective made of a verb ("is based in").
    pub is_passive: bool,
    pub is_progressive: bool,
    pub particle: Option<&'w str>,
    /// What the verb acts on.
    pub object: &'w [Word],
    /// What stands between verb or object and the complement.
    pub preposition: Option<&'w str>,
    /// What is said of it.
    pub complement: &'w [Word],
    /// What comes after that.
    pub rest: &'w [Word],
    pub is_negated: bool,
    /// "anymore", "no longer".
    pub is_over: bool,
    pub tense: Tense,
    /// The main verb and all after it.
    pub predicate: &'w [Word],
}

/// Words of the longest subject.
const SUBJECT: usize = 7;

/// Words before a pronoun that may say when or how.
const PREFIX: usize = 6;

/// The clause in its parts; nothing where it states nothing by itself: what may, should, or would be.
pub fn parse(words: &[Word], goes_on: bool) -> Option<Parsed<'_>> {
    let (subject, after) = subject(words, goes_on)?;
    let group = group(after)?;
    let mut parsed = Parsed {
        subject,
        verb: group.verb,
        is_passive: group.is_passive,
        is_progressive: group.is_progressive,
        particle: None,
        object: &[],
        preposition: None,
        complement: &[],
        rest: &[],
        is_negated: group.is_negated,
        is_over: group.is_over,
        tense: group.tense,
        predicate: after,
    };
    parsed.read_rest(group.rest);
    Some(parsed)
}

/// The subject and what comes after it.
fn subject(words: &[Word], goes_on: bool) -> Option<(&[Word], &[Word])> {
    let is_verbal = |word: &Word| {
        word.is_any(&[Part::Be, Part::Have, Part::Do, Part::Modal, Part::Future])
            || word.verb().is_some()
    };
    let pronoun = words
        .iter()
        .take(PREFIX + 1)
        .position(|word| word.is(Part::Pronoun));
    if let Some(at) = pronoun
        && !words[..at]
            .iter()
            .any(|word| word.is_any(&[Part::Be, Part::Modal, Part::Report, Part::Doubt, Part::Cut]))
        && !words[..at].iter().any(|word| {
            word.verb()
                .is_some_and(|(_, form)| matches!(form, Form::Past | Form::Present))
        })
    {
        return Some((&words[at..=at], &words[at + 1..]));
    }
    let first = words
        .iter()
        .position(|word| !word.is_any(&[Part::Opening, Part::Adverb]))?;
    let words = &words[first..];
    if is_verbal(&words[0]) && !words[0].is_name() {
        return goes_on.then_some((&words[..0], words));
    }
    if goes_on && words[0].is(Part::Negation) {
        return Some((&words[..0], words));
    }
    // A noun may look like the base of a verb ("my work is"): the article or owner before it says that it is none.
    let ends = |at: &usize| {
        let word = &words[*at];
        let finite = word.is_any(&[
            Part::Be,
            Part::Have,
            Part::Do,
            Part::Modal,
            Part::Future,
            Part::Negation,
        ]) || word
            .verb()
            .is_some_and(|(_, form)| matches!(form, Form::Past | Form::Present | Form::Participle));
        finite && *at > 0 && !(words[at - 1].is(Part::Determiner) || words[at - 1].is_possessive())
    };
    let end = (1..words.len().min(SUBJECT + 1)).find(ends)?;
    let mut subject = &words[..end];
    while subject.last().is_some_and(|word| word.is(Part::Adverb)) {
        subject = &subject[..subject.len() - 1];
    }
    (!subject.is_empty() && !subject[0].is_any(&[Part::Cut, Part::Preposition]))
        .then_some((subject, &words[end..]))
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing that a verb group says or does not say"
)]
struct Group<'w> {
    verb: &'static str,
    is_passive: bool,
    is_progressive: bool,
    is_negated: bool,
    is_over: bool,
    tense: Tense,
    rest: &'w [Word],
}

/// Auxiliaries, negation and adverbs up to the main verb.
fn group(words: &[Word]) -> Option<Group<'_>> {
    let mut group = Group {
        verb: "be",
        is_passive: false,
        is_progressive: false,
        is_negated: false,
        is_over: false,
        tense: Tense::Present,
        rest: words,
    };
    let (mut be, mut have) = (false, false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1).map_or("", |word| word.low.as_str());
        match () {
            () if word.is(Part::Modal) => return None,
            () if word.low == "no" && next == "longer" => {
                (group.is_negated, group.is_over) = (true, true);
                at += 1;
            }
            () if word.is(Part::Negation) => group.is_negated = true,
            () if word.low == "used" && next == "to" && !be => {
                group.tense = Tense::Formerly;
                at += 1;
            }
            () if word.low == "going"
                && next == "to"
                && be
                && words
                    .get(at + 2)
                    .is_some_and(|word| matches!(word.verb(), Some((_, Form::Base)))) =>
            {
                group.tense = Tense::Future;
                be = false;
                at += 1;
            }
            () if word.is(Part::Future) => group.tense = Tense::Future,
            () if matches!(
                word.low.as_str(),
                "get" | "gets" | "got" | "getting" | "gotten"
            ) && words.get(at + 1).is_some_and(|word| {
                matches!(word.verb(), Some((_, Form::Past | Form::Participle)))
            }) =>
            {
                be = true;
                if word.low == "got" && !have {
                    group.tense = Tense::Past;
                }
            }
            () if word.is(Part::Be) => {
                be = true;
                if matches!(word.low.as_str(), "was" | "were") {
                    group.tense = Tense::Past;
                }
            }
            () if word.is(Part::Do) && is_auxiliary(&words[at + 1..]) => {
                if word.low == "did" {
                    group.tense = Tense::Past;
                }
            }
            () if word.is(Part::Have) && is_perfect(&words[at + 1..]) => {
                have = true;
            }
            () if word.is(Part::Have) && next == "to" => return None,
            () if word.is(Part::Adverb) => {}
            () => break,
        }
        at += 1;
    }
    let Some(word) = words.get(at) else {
        // "It is.", "I was": nothing is said.
        return None;
    };
    group.rest = &words[at..];
    match word.verb() {
        Some((verb, Form::Progressive)) if be => {
            (group.verb, group.is_progressive) = (verb, true);
            group.rest = &words[at + 1..];
        }
        Some((verb, Form::Past | Form::Participle)) if be => {
            (group.verb, group.is_passive) = (verb, true);
            group.rest = &words[at + 1..];
        }
        _ if be => {}
        Some((verb, form)) => {
            group.verb = verb;
            if form == Form::Past && !have && group.tense == Tense::Present {
                group.tense = Tense::Past;
            }
            if form == Form::Progressive {
                return None;
            }
            group.rest = &words[at + 1..];
        }
        None => return None,
    }
    Some(group)
}

/// Whether a form of "do" helps another verb: "do not", "did you", "did move".
fn is_auxiliary(rest: &[Word]) -> bool {
    let mut rest = rest.iter().skip_while(|word| word.is(Part::Adverb));
    rest.next()
        .is_some_and(|word| word.is(Part::Negation) || matches!(word.verb(), Some((_, Form::Base))))
}

fn is_perfect(rest: &[Word]) -> bool {
    let mut rest = rest
        .iter()
        .skip_while(|word| word.is_any(&[Part::Adverb, Part::Negation]));
    rest.next().is_some_and(|word| {
        word.low == "been" || matches!(word.verb(), Some((_, Form::Past | Form::Participle)))
    })
}

impl<'w> Parsed<'w> {
    /// The same with another value, and as it is now.
    pub fn with_value(self, value: &'w [Word]) -> Self {
        let is_of_object = self.complement.is_empty();
        Self {
            object: if is_of_object { value } else { self.object },
            complement: if is_of_object { self.complement } else { value },
            rest: &[],
            tense: Tense::Present,
            ..self
        }
    }

    /// "Ramen is my favorite food" as "my favorite food is ramen".
    pub fn upright(self) -> Self {
        let owned =
            |words: &[Word]| words.len() > 1 && matches!(words[0].low.as_str(), "my" | "our");
        let is_copula = self.verb == "be" && !self.is_passive && self.preposition.is_none();
        let is_named = self
            .subject
            .first()
            .is_some_and(|word| !word.is(Part::Pronoun));
        if !(is_copula && is_named && owned(self.complement)) || owned(self.subject) {
            return self;
        }
        Self {
            subject: self.complement,
            complement: self.subject,
            ..self
        }
    }

    /// Particle, object, preposition and complement.
    fn read_rest(&mut self, mut words: &'w [Word]) {
        if let [before @ .., last] = words
            && matches!(last.low.as_str(), "anymore")
        {
            self.is_over = true;
            words = before;
        }
        if let [before @ .., any, more] = words
            && any.low == "any"
            && more.low == "more"
        {
            self.is_over = true;
            words = before;
        }
        words = trim_start(words);
        let is_copula = self.verb == "be" && !self.is_passive;
        if let Some(word) = words.first()
            && word.is(Part::Particle)
            && !is_copula
        {
            self.particle = Some(&word.low);
            words = trim_start(&words[1..]);
        }
        if is_copula && !words.first().is_some_and(|word| word.is(Part::Preposition)) {
            (self.complement, self.rest) = words.split_at(complement_end(words));
            return;
        }
        let end = phrase_end(words);
        (self.object, words) = words.split_at(end);
        if let Some(word) = words.first()
            && word.is(Part::Preposition)
        {
            self.preposition = Some(&word.low);
            let after = &words[1..];
            (self.complement, self.rest) = after.split_at(phrase_end(after));
        } else {
            self.rest = words;
        }
    }
}

fn trim_start(words: &[Word]) -> &[Word] {
    let first = words
        .iter()
        .position(|word| !word.is(Part::Adverb) || word.low == "together");
    &words[first.unwrap_or(words.len())..]
}

/// Where a noun phrase ends: at a preposition other than "of", a word that begins a clause, or a mark.
fn phrase_end(words: &[Word]) -> usize {
    let ends = |(at, word): (usize, &Word)| {
        let cuts = word.is_any(&[Part::Cut, Part::Pronoun]) && !(word.is(Part::Pronoun) && at == 0);
        let preposition = word.is(Part::Preposition) && word.low != "of";
        word.is_mark
            || (cuts && word.low != "and")
            || preposition
            || (word.is(Part::Adverb) && at > 0)
    };
    words
        .iter()
        .enumerate()
        .position(ends)
        .unwrap_or(words.len())
}

/// Where what is said of the subject ends: it may have phrases of its own ("a nurse at the clinic").
fn complement_end(words: &[Word]) -> usize {
    let ends = |word: &Word| {
        let cuts = word.is(Part::Cut) && !matches!(word.low.as_str(), "and" | "as");
        let when = word.is_time && !words[0].is_time;
        word.is_mark || cuts || when || word.is(Part::Adverb)
    };
    words.iter().position(ends).unwrap_or(words.len())
}
