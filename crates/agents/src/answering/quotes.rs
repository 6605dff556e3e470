//! Sentences that cover what is asked, as they were said. How far they do is their share of the question's terms, weighted by
//! rarity: the scores of a search only compare within it.

use std::collections::HashSet;
use std::ops::Range;

use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{Role, Trust};
use memfleet_language::mentions::mentions;
use memfleet_language::{passages, sentences};

use super::statement_form::{StatementForm, states_nothing};
use super::wanted::Wanted;
use super::{Evidence, Question, Source, Statement, day};
use crate::asking::Asking;
use crate::facts::own_words::own_words;
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
    directness: Directness,
}

/// How a quotation answers the question, from mentioning its words to stating the answer. Where some
/// quotation states it, those that only share its words are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Directness {
    SharesWords,
    /// A statement that often answers the question, in other words.
    Paraphrase,
    /// The statement form of the question, without the kind of value that it asks for.
    Statement,
    /// The statement form, with a value of that kind.
    SpecificStatement,
}

/// The answer in quotations; none where no turn covers the question.
pub fn quotes(
    question: &Question<'_>,
    asking: &Asking,
    wanted: &Wanted,
    evidence: &[Evidence<'_>],
) -> Vec<Statement> {
    let quotable = |(_, found): &(usize, &Evidence<'_>)| {
        found.turn.replaced.is_none() && is_by_or_of(wanted, question, found)
    };
    let turns = evidence.iter().enumerate().filter(quotable);
    let best: Vec<Quote<'_>> = turns
        .filter_map(|(place, found)| best(question, asking, wanted, place, found))
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
    let relevant: Vec<&Quote<'_>> = relevant.into_iter().map(|place| &best[place]).collect();
    let most_direct = relevant.iter().map(|quote| quote.directness).max();
    let mut said = HashSet::new();
    relevant
        .into_iter()
        .filter(|quote| Some(quote.directness) == most_direct)
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
    question: &Question<'_>,
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
    let form = statement_form(question, wanted, found);
    let own = asking.is_first_person().then(|| own_words_of_user(found));
    let is_own = |piece: &Range<usize>| match &own {
        None => true,
        Some(None) => false,
        Some(Some(own)) => own[piece.clone()] == found.text[piece.clone()],
    };
    let is_open: Vec<bool> = pieces
        .iter()
        .map(|piece| {
            let said = &found.text[piece.clone()];
            !states_nothing(said) && is_own(piece)
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
            let words = pieces[window.start].start..pieces[window.end - 1].end;
            let mut words = trimmed(found.text, words);
            let is_of_another =
                |form: &StatementForm| !form.may_be_about(&found.text[words.clone()]);
            if form.as_ref().is_some_and(is_of_another) {
                continue;
            }
            let stated = form
                .as_ref()
                .and_then(|form| form.find(&found.text[words.clone()]));
            let mut directness = Directness::SharesWords;
            if let (Some(form), Some(stated)) = (&form, stated) {
                if stated.is_paraphrase && (place > 0 || !stated.is_specific) {
                    continue;
                }
                // The statement itself says which sort of thing its value is.
                terms.extend(wanted.of_sorts());
                directness = match (stated.is_paraphrase, stated.is_specific) {
                    (true, _) => Directness::Paraphrase,
                    (false, true) => Directness::SpecificStatement,
                    (false, false) => Directness::Statement,
                };
                if stated.is_paraphrase {
                    terms.extend(wanted.terms_of_words(form.answered_words()));
                }
                if length == 1 {
                    words.start += stated.start;
                }
            }
            let coverage = share(&wanted.terms, |term| terms.contains(term));
            if best.as_ref().is_none_or(|(most, _)| coverage > *most) {
                let quote = Quote {
                    place,
                    found,
                    words,
                    terms,
                    directness,
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

/// The statement form of the question as the speaker of a turn would say it.
fn statement_form(
    question: &Question<'_>,
    wanted: &Wanted,
    found: &Evidence<'_>,
) -> Option<StatementForm> {
    let speaker = found.turn.accepted.speaker.as_str();
    let asked = wanted.speakers.iter().find(|name| *name == speaker);
    StatementForm::of(question.text, asked.map(String::as_str), question.language)
}

/// The words of a turn that are a user's own; a question in the first person is answered by no others.
fn own_words_of_user(found: &Evidence<'_>) -> Option<String> {
    let turn = &found.turn.accepted;
    let is_by_user = turn.role == Role::User && turn.trust == Trust::User;
    is_by_user.then(|| own_words(found.text)).flatten()
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
