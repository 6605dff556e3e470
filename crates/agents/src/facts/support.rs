//! Words of a fact in its turn: whether they bear out a fact that a language model found.

use std::collections::HashSet;

use chrono_tz::Tz;
use memfleet_domain::fact::{Clause, Draft};
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::Timestamp;
use memfleet_language::{Language, time};

use super::Utterance;
use super::claims::wordings;
use super::words::{Part, Word, words};

/// Whether a text has a word that denies.
pub fn denies(text: &str) -> bool {
    words(text).iter().any(|word| word.is(Part::Negation))
}

/// Whether every word of a sentence that carries meaning is in these texts, and what it denies is denied there: names and numbers as they
/// are, other words by how they begin.
pub fn is_borne_out<'t>(sentence: &str, texts: impl IntoIterator<Item = &'t str> + Clone) -> bool {
    let have = Have::of(texts.clone().into_iter().flat_map(words));
    let is_said = words(sentence).iter().all(|word| have.says(word));
    is_said && (!denies(sentence) || texts.into_iter().any(denies))
}

/// The dates that somebody who tells of a text may name: of the instant that it is from, and those that its words stand for.
pub fn dates(text: &str, from: Timestamp, zone: Tz) -> String {
    let found = time::references(text, from, zone, Language::English);
    let instants = found.into_iter().map(|found| found.start).chain([from]);
    let dates = instants.map(|instant| {
        let date = instant.with_timezone(&zone);
        date.format("%A %-d %B %Y, %b %-dth %Y-%m-%d").to_string()
    });
    dates.collect::<Vec<_>>().join(" ")
}

/// Whether every word of a fact's sentence and of its parts that carries meaning is in its evidence, or names somebody.
pub fn is_supported(draft: &Draft, text: &str, names: &[&str]) -> bool {
    let Some(evidence) = evidence(draft, text) else {
        return false;
    };
    // The name of an attribute need not be said where one of its wordings is.
    let named = words(&draft.claim.attribute);
    let is_worded = wordings(&draft.claim.attribute).any(|wording| has_wording(&evidence, wording));
    let is_named = |word: &Word| is_worded && named.iter().any(|part| part.low == word.low);
    let names = names.iter().flat_map(|name| words(name));
    let have = Have::of(evidence.into_iter().chain(names));
    parts(draft).all(|word| is_named(&word) || have.says(&word))
}

/// The turns besides its own that a fact draws on: those that it names, and of `context`, the turns
/// before its own, oldest first, the latest that says a word which none of them says. Speakers' names are
/// words of their turns. Absent where a word that carries meaning is said by none.
pub fn sources(
    draft: &Draft,
    turn: &Utterance<'_>,
    context: &[Utterance<'_>],
) -> Option<Vec<TurnId>> {
    let mut sources = draft.related.clone();
    let is_drawn_on = |said: &&Utterance<'_>| said.id == turn.id || sources.contains(&said.id);
    let drawn_on = context.iter().chain([turn]).filter(is_drawn_on);
    let mut have = Have::of(drawn_on.flat_map(all_words));
    let named = attribute_words(draft);
    for word in parts(draft) {
        // A verb may be another one's wording.
        let may_be_unsaid = word.verb().is_some() || named.contains(&word.low);
        if is_function_word(&word) || have.has(&word) {
            continue;
        }
        let says = |said: &&Utterance<'_>| Have::of(all_words(said)).has(&word);
        match context.iter().rev().find(says) {
            Some(said) => {
                sources.push(said.id);
                have.add(all_words(said));
            }
            None if may_be_unsaid => {}
            None => return None,
        }
    }
    Some(sources)
}

/// The words of a turn and of its speaker's name.
fn all_words(said: &Utterance<'_>) -> impl Iterator<Item = Word> + use<> {
    words(said.text).into_iter().chain(words(said.speaker))
}

/// The words of a known attribute: they name it and need not be said.
fn attribute_words(draft: &Draft) -> HashSet<String> {
    let attribute = &draft.claim.attribute;
    let is_known = wordings(attribute).next().is_some();
    let named = words(attribute).into_iter().filter(|_| is_known);
    named.map(|word| word.low).collect()
}

/// The words of a fact's sentence and of its parts.
fn parts(draft: &Draft) -> impl Iterator<Item = Word> {
    let parts_of = |clause: &Clause| {
        let parts = [
            Some(&clause.subject),
            clause.object.as_ref(),
            clause.complement.as_ref(),
        ];
        parts.into_iter().flatten().cloned().collect::<Vec<_>>()
    };
    let parts = draft.clause.as_ref().map(parts_of).unwrap_or_default();
    let said = parts.into_iter().chain([draft.text.clone()]);
    said.flat_map(|said| words(&said))
}

/// Whether the evidence of a fact has its verb, or another word that tells the same attribute. "To be" and "to have" need not be said.
pub fn is_verb_said(draft: &Draft, text: &str) -> bool {
    let evidence = evidence(draft, text).unwrap_or_default();
    let is_said = |predicate: &str| {
        let predicate = words(predicate);
        let verb = predicate.first().filter(|verb| !is_light(verb));
        verb.is_some_and(|verb| evidence.iter().any(|word| base(word) == base(verb)))
    };
    words(draft.predicate()).first().is_some_and(is_light)
        || is_said(draft.predicate())
        || wordings(&draft.claim.attribute).any(is_said)
}

/// Whether words have every word of a wording that carries meaning.
fn has_wording(evidence: &[Word], wording: &str) -> bool {
    let mut wording = words(wording).into_iter().filter(means).peekable();
    wording.peek().is_some()
        && wording.all(|word| evidence.iter().any(|said| base(said) == base(&word)))
}

fn evidence(draft: &Draft, text: &str) -> Option<Vec<Word>> {
    let evidence = text.get(draft.evidence.start as usize..draft.evidence.end as usize)?;
    Some(words(evidence))
}

/// Words that were said, and how they begin.
struct Have(HashSet<String>);

impl Have {
    fn of(said: impl Iterator<Item = Word>) -> Self {
        let mut have = Self(HashSet::new());
        have.add(said);
        have
    }

    fn add(&mut self, said: impl Iterator<Item = Word>) {
        let forms = said.flat_map(|word| {
            let low = bare(&word);
            [low.to_owned(), stem(low), base(&word)]
        });
        self.0.extend(forms);
    }

    /// Whether this was said, or means nothing by itself.
    fn says(&self, word: &Word) -> bool {
        !means(word) || self.has(word)
    }

    /// True if this was said: a name or a number as it is, another word by how it begins.
    fn has(&self, word: &Word) -> bool {
        let low = bare(word);
        let is_exact = word.is_name() || low.contains(|letter: char| letter.is_numeric());
        match is_exact {
            true => self.0.contains(low),
            false => self.0.contains(&stem(low)) || self.0.contains(&base(word)),
        }
    }
}

/// A word without the mark of a possessive.
fn bare(word: &Word) -> &str {
    word.low.trim_end_matches("'s")
}

/// Whether a word carries meaning of its own.
fn means(word: &Word) -> bool {
    !is_function_word(word) && word.verb().is_none()
}

/// True of a word that only joins others and carries no meaning of its own.
fn is_function_word(word: &Word) -> bool {
    word.is_mark
        || word.low == "and"
        || word.is_any(&[
            Part::Be,
            Part::Have,
            Part::Do,
            Part::Determiner,
            Part::Preposition,
            Part::Pronoun,
            Part::Negation,
        ])
}

fn is_light(verb: &Word) -> bool {
    verb.is_any(&[Part::Be, Part::Have])
}

/// The base of a verb; of a word that is none in the list, how it begins.
fn base(word: &Word) -> String {
    let known = word.verb().map(|(base, _)| base.to_owned());
    known.unwrap_or_else(|| stem(bare(word)))
}

fn stem(word: &str) -> String {
    word.chars().take(4).collect()
}
