//! Sentences that cover what is asked, as they were said. How far they do is their share of the question's terms, weighted by
//! rarity: the scores of a search only compare within it.

use std::collections::HashSet;
use std::ops::Range;

use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::time::Timestamp;
use memfleet_language::mentions::mentions;
use memfleet_language::{fold, passages, sentences};

use super::wanted::Wanted;
use super::{Evidence, Question, Source, Statement, day};
use crate::asking::Asking;
use crate::relevance::{Asked, Candidate, Options, assess, share};

/// Quotations of an answer.
const MOST: usize = 3;
/// Sentences of a quotation.
const SENTENCES: usize = 3;
/// Characters of a piece: longer sentences are cut.
const PIECE: usize = 300;

/// The part of a turn that covers most.
struct Quote<'e> {
    place: usize,
    found: &'e Evidence<'e>,
    words: Range<usize>,
    terms: HashSet<&'e str>,
}

/// The answer in quotations; none where no turn covers the question.
pub fn quotes(
    question: &Question<'_>,
    asking: &Asking,
    wanted: &Wanted,
    evidence: &[Evidence<'_>],
) -> Vec<Statement> {
    let quotable = |(_, found): &(usize, &Evidence<'_>)| {
        found.turn.replaced.is_none() && !found.is_overtaken && is_by_or_of(wanted, question, found)
    };
    let turns = evidence.iter().enumerate().filter(quotable);
    let best: Vec<Quote<'_>> = turns
        .filter_map(|(place, found)| best(asking, wanted, place, found))
        .collect();
    let candidates: Vec<Candidate<'_>> = best
        .iter()
        .map(|quote| Candidate {
            score: 0.0,
            terms: quote.terms.clone(),
        })
        .collect();
    let asked = Asked {
        terms: &wanted.terms,
        searched: &[],
        rounds: 0,
    };
    let relevant = assess(asked, &candidates, &Options::default()).relevant;
    let mut said = HashSet::new();
    let quotes = relevant.into_iter().map(|place| &best[place]);
    quotes
        .filter(|quote| said.insert(&quote.found.text[quote.words.clone()]))
        .take(MOST)
        .map(|quote| statement(question, quote))
        .collect()
}

/// Whether a turn is by, or mentions, somebody whom the question names; and has every other name of the question.
fn is_by_or_of(wanted: &Wanted, question: &Question<'_>, found: &Evidence<'_>) -> bool {
    let speaker = found.turn.accepted.speaker.as_str();
    let is_meant = wanted.speakers.is_empty()
        || wanted.speakers.iter().any(|name| name == speaker)
        || !mentions(found.text, &wanted.speakers, question.language)
            .mentions
            .is_empty();
    let said = || wanted.analyzer.terms(found.text);
    let mut names = wanted
        .words
        .iter()
        .filter(|word| word.is_name && !word.is_time);
    is_meant && names.all(|name| name.terms.iter().all(|term| said().contains(term)))
}

/// The fewest sentences in a row that cover most of what a turn covers.
fn best<'e>(
    asking: &Asking,
    wanted: &'e Wanted,
    place: usize,
    found: &'e Evidence<'e>,
) -> Option<Quote<'e>> {
    let pieces = pieces(found.text);
    let covered: Vec<HashSet<&str>> = pieces
        .iter()
        .map(|piece| covered(wanted, &found.text[piece.clone()]))
        .collect();
    let is_open: Vec<bool> = pieces
        .iter()
        .map(|piece| {
            !is_question(&found.text[piece.clone()]) && is_of_subject(asking, wanted, found, piece)
        })
        .collect();
    let then: HashSet<&str> = match wanted.is_then(found.turn.accepted.effective_time()) {
        true => wanted.of_times().collect(),
        false => HashSet::new(),
    };
    let mut best: Option<(f32, Quote<'e>)> = None;
    for length in 1..=SENTENCES.min(pieces.len()) {
        for from in 0..=pieces.len() - length {
            let window = from..from + length;
            if !is_open[window.end - 1] {
                continue;
            }
            let mut terms = then.clone();
            terms.extend(covered[window.clone()].iter().flatten());
            let coverage = share(&wanted.terms, |term| terms.contains(term));
            if best.as_ref().is_none_or(|(most, _)| coverage > *most) {
                let words = pieces[window.start].start..pieces[window.end - 1].end;
                let words = trimmed(found.text, words);
                let quote = Quote {
                    place,
                    found,
                    words,
                    terms,
                };
                best = Some((coverage, quote));
            }
        }
    }
    let (_, quote) = best?;
    let is_outdated =
        |fact: &Derivation| Some(fact.id) == found.outdated && rests_on(fact, &quote.words);
    let is_old_answer = found.facts.iter().any(is_outdated);
    (!is_old_answer).then_some(quote)
}

fn pieces(text: &str) -> Vec<Range<usize>> {
    let sentences = sentences(text).into_iter();
    let pieces = sentences.flat_map(|sentence| {
        let parts = passages(&text[sentence.clone()], PIECE).into_iter();
        parts.map(move |part| sentence.start + part.start..sentence.start + part.end)
    });
    pieces.collect()
}

/// The terms of the question that a sentence has.
fn covered<'w>(wanted: &'w Wanted, sentence: &str) -> HashSet<&'w str> {
    let said: HashSet<String> = wanted.analyzer.terms(sentence).into_iter().collect();
    let terms = wanted.terms.iter().map(|term| term.text.as_str());
    terms.filter(|term| said.contains(*term)).collect()
}

/// A question has the words of its answer, and is none.
fn is_question(sentence: &str) -> bool {
    let end = sentence.trim_end_matches(|letter: char| {
        letter.is_whitespace() || ['"', '”', '»', ')', '!'].contains(&letter)
    });
    end.ends_with(['?', '？', '؟'])
}

/// Whether a sentence may be about whom the question names: one of which every fact is about somebody else is not.
fn is_of_subject(
    asking: &Asking,
    wanted: &Wanted,
    found: &Evidence<'_>,
    piece: &Range<usize>,
) -> bool {
    if wanted.speakers.is_empty() && !asking.is_first_person() {
        return true;
    }
    let speaker = fold(found.turn.accepted.speaker.as_str());
    let is_meant = |fact: &Derivation| {
        fact.fact().is_some_and(|draft| {
            let subject = &draft.claim.subject;
            let terms = wanted.analyzer.query_terms(subject);
            *subject == speaker || terms.iter().all(|term| wanted.all.contains(term))
        })
    };
    let mut here = found
        .facts
        .iter()
        .filter(|fact| rests_on(fact, piece))
        .peekable();
    here.peek().is_none() || here.any(is_meant)
}

fn rests_on(fact: &Derivation, words: &Range<usize>) -> bool {
    fact.fact().is_some_and(|draft| {
        (draft.evidence.start as usize) < words.end && words.start < draft.evidence.end as usize
    })
}

fn trimmed(text: &str, words: Range<usize>) -> Range<usize> {
    let said = &text[words.clone()];
    let start = words.start + (said.len() - said.trim_start().len());
    start..start + said.trim().len()
}

impl Quote<'_> {
    /// The facts that it states and in whose place something else holds, or that a caller corrected.
    fn ended(&self, at: Timestamp) -> impl Iterator<Item = &Derivation> {
        let facts = self.found.facts.iter();
        facts.filter(move |fact| {
            let is_over = fact.succeeded_by.is_some() && !fact.valid.contains(at);
            (is_over || fact.origin == Origin::Corrected) && rests_on(fact, &self.words)
        })
    }
}

fn statement(question: &Question<'_>, quote: &Quote<'_>) -> Statement {
    let turn = &quote.found.turn.accepted;
    let said = &quote.found.text[quote.words.clone()];
    let said_on = day(question, turn.effective_time());
    let mut text = format!("{}, {said_on}: \"{said}\"", turn.speaker);
    if let Some(fact) = quote.ended(question.holds_at).next() {
        text.push_str(&mark(question, fact));
    }
    Statement {
        text,
        sources: vec![Source {
            place: quote.place,
            words: quote.words.start as u32..quote.words.end as u32,
        }],
    }
}

/// What became of what a turn says.
fn mark(question: &Question<'_>, fact: &Derivation) -> String {
    match (fact.fact(), fact.valid.end) {
        _ if fact.is_withdrawn() => " (this was wrong)".to_owned(),
        (Some(draft), _) if fact.origin == Origin::Corrected => {
            format!(" (corrected: {})", draft.text)
        }
        (_, Some(end)) => format!(" (no longer so since {})", day(question, end)),
        (_, None) => String::new(),
    }
}
