//! u′ of AMA section 3.2: pronouns of a query are replaced by what they stand for, where the nearest turn that speaks of any
//! such thing speaks of one. A query that names a candidate itself keeps its pronouns.

use std::ops::Range;

use chrono_tz::Tz;
use memfleet_language::{Analyzer, Language};

use super::cues::is;
use super::referents::{Referents, Sex};
use super::words::{Gap, Text};
use crate::facts::Utterance;

/// How many turns back a pronoun reaches.
const REACH: usize = 6;

/// What a pronoun asks for.
#[derive(Clone, Copy)]
enum Pronoun {
    Person { sex: Sex, owns: bool },
    Place,
    Thing,
}

/// The query with its pronouns resolved; of other languages than English, the query.
pub(super) fn rewritten(
    query: &Text<'_>,
    recent: &[Utterance<'_>],
    zone: Tz,
    language: Language,
) -> String {
    let analyzer = Analyzer::new(language);
    let pronouns: Vec<(Range<usize>, Pronoun)> = match language {
        Language::English => pronouns(query, &analyzer),
        _ => Vec::new(),
    };
    let mut rewritten = query.text.to_owned();
    if pronouns.is_empty() || recent.is_empty() {
        return rewritten;
    }
    let speakers: Vec<&str> = recent.iter().map(|turn| turn.speaker).collect();
    let own = Referents::of(query, &speakers, &analyzer);
    let turns: Vec<Referents> = recent
        .iter()
        .rev()
        .take(REACH)
        .map(|turn| Text::new(turn.text, turn.said_at, zone, language))
        .map(|text| Referents::of(&text, &speakers, &analyzer))
        .collect();
    for (span, pronoun) in pronouns.into_iter().rev() {
        if candidates(&own, pronoun).is_empty()
            && let Some(referent) = only(&turns, pronoun)
        {
            rewritten.replace_range(span, &referent);
        }
    }
    rewritten
}

/// The one candidate of the nearest turn that has any.
fn only(turns: &[Referents], pronoun: Pronoun) -> Option<String> {
    let mut found = turns.iter().map(|turn| candidates(turn, pronoun));
    let nearest = found.find(|candidates| !candidates.is_empty())?;
    let [only] = nearest.as_slice() else {
        return None;
    };
    Some(match pronoun {
        Pronoun::Person { owns: true, .. } => format!("{only}'s"),
        _ => (*only).clone(),
    })
}

fn candidates(referents: &Referents, pronoun: Pronoun) -> Vec<&String> {
    match pronoun {
        Pronoun::Person { sex, .. } => {
            let fits = |known: Sex| known == Sex::Unknown || known == sex;
            let people = referents.people.iter().filter(|(_, known)| fits(*known));
            people.map(|(name, _)| name).collect()
        }
        Pronoun::Place => referents.places.iter().collect(),
        Pronoun::Thing => referents.things.iter().collect(),
    }
}

/// The pronouns of a query that point out of it.
fn pronouns(query: &Text<'_>, analyzer: &Analyzer) -> Vec<(Range<usize>, Pronoun)> {
    let all = (0..query.words.len()).filter_map(|at| {
        let pronoun = pronoun(query, at, analyzer)?;
        Some((query.words[at].span.clone(), pronoun))
    });
    all.collect()
}

fn pronoun(query: &Text<'_>, at: usize, analyzer: &Analyzer) -> Option<Pronoun> {
    let (word, after, before) = (query.at(at)?, query.at(at + 1), query.before(at));
    let of = |sex| {
        let next = query.words.get(at + 1);
        let is_content = next.is_some_and(|next| {
            next.gap == Gap::Blank && !next.is_time && !analyzer.is_stop_word(&next.folded)
        });
        let owns = is(Some(word), "possessive") && (is_content || word == "hers");
        Some(Pronoun::Person { sex, owns })
    };
    match word {
        word if is(Some(word), "she") => of(Sex::She),
        word if is(Some(word), "he") => of(Sex::He),
        "there" if !is(before, "be") && !is(after, "be") => Some(Pronoun::Place),
        "it" if !is(after, "no thing") && !asks_the_time(query, at) => Some(Pronoun::Thing),
        "that" if is(after, "after that") => Some(Pronoun::Thing),
        "that" if after.is_none() && is(before, "before that") => Some(Pronoun::Thing),
        _ => None,
    }
}

/// "What time is it?"
fn asks_the_time(query: &Text<'_>, at: usize) -> bool {
    at > 1 && query.at(at - 2) == Some("time")
}
