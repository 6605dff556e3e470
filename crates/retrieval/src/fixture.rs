//! Turns for tests: real terms, and vectors that are sums of fixed vectors of their words.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use memfleet_domain::derivation::Kind;
use memfleet_domain::embedding::{PassageVectors, TokenVectors};
use memfleet_domain::fact::Claim;
use memfleet_domain::ids::{
    DerivationId, ExternalId, SessionId, SpaceId, Speaker, TenantId, TurnId,
};
use memfleet_domain::scope::Scope;
use memfleet_domain::turn::Role;
use memfleet_language::{Analyzer, Language};
use memfleet_ports::feed::{Change, IndexedDerivation, IndexedPassage, IndexedTurn, words};
use memfleet_ports::filter::TurnFilter;

use crate::document::documents;
use crate::{Plan, Ranked, Searched, SpaceIndex, Weights, candidates, lexical, rank};

const DIMENSIONS: usize = 16;

pub(crate) fn id(number: u32) -> TurnId {
    let scope = Scope {
        tenant: TenantId::new("t").unwrap(),
        space: SpaceId::new("s").unwrap(),
    };
    TurnId::of_external(
        &scope,
        &SessionId::new("s").unwrap(),
        &ExternalId::new(number.to_string()).unwrap(),
    )
}

pub(crate) fn day(number: u32) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap() + TimeDelta::days(i64::from(number))
}

pub(crate) fn analyzer() -> Analyzer {
    Analyzer::new(Language::English)
}

/// A turn said on day `number`, at place `number` of its session; its passages are numbered from 100 × `number`.
pub(crate) fn turn(number: u32, session: &str, speaker: &str, text: &str) -> IndexedTurn {
    let passage = |document: crate::document::Document| {
        let vectors = vectors(&document.text);
        let mut pieces = vectors.tokens.pieces;
        pieces.sort_unstable();
        pieces.dedup();
        IndexedPassage {
            length: document.passage.end - document.passage.start,
            words: words(&document.passage.terms),
            terms: document.passage.terms,
            features: document.passage.features,
            sentence: Some(vectors.sentence),
            pieces,
        }
    };
    IndexedTurn {
        id: id(number),
        session: SessionId::new(session).unwrap(),
        order: (u64::from(number), 0),
        speaker: Speaker::new(speaker).unwrap(),
        role: if speaker == "assistant" {
            Role::Assistant
        } else {
            Role::User
        },
        event_time: Some(day(number)),
        recorded_at: day(number),
        replaced_at: None,
        first_passage: 100 * number,
        passages: documents(speaker, text, &analyzer())
            .into_iter()
            .map(passage)
            .collect(),
    }
}

/// A fact or an episode of turns by their numbers; its number is 100 × `name` + 50.
pub(crate) fn derivation(kind: Kind, name: u32, turns: &[u32], text: &str) -> IndexedDerivation {
    let mut found = turn(name, "s", "Ada", text);
    let claim = Claim {
        subject: name.to_string(),
        attribute: String::new(),
        value: String::new(),
    };
    IndexedDerivation {
        id: DerivationId::of_fact(id(name), &claim, false),
        kind,
        turns: turns.iter().map(|&number| id(number)).collect(),
        number: 100 * name + 50,
        passage: found.passages.remove(0),
        entities: Vec::new(),
    }
}

/// A fact of a turn that relates entities by their keys.
pub(crate) fn relating(name: u32, number: u32, entities: &[&str]) -> IndexedDerivation {
    IndexedDerivation {
        entities: entities.iter().map(|&key| key.to_owned()).collect(),
        ..derivation(Kind::Fact, name, &[number], &entities.join(" "))
    }
}

/// The same turn as it is before its vectors are there.
pub(crate) fn bare(mut turn: IndexedTurn) -> IndexedTurn {
    for passage in &mut turn.passages {
        passage.sentence = None;
        passage.pieces.clear();
    }
    turn
}

pub(crate) fn index(turns: impl IntoIterator<Item = IndexedTurn>) -> SpaceIndex {
    let mut index = SpaceIndex::new();
    turns
        .into_iter()
        .for_each(|turn| index.apply(Change::Stored(Box::new(turn))));
    index
}

/// One vector a word, fixed by its letters.
pub(crate) fn vectors(text: &str) -> PassageVectors {
    let mut tokens = TokenVectors {
        dimensions: DIMENSIONS,
        ..TokenVectors::default()
    };
    let mut sum = [0_i32; DIMENSIONS];
    for word in text.split_whitespace() {
        let hash = word.bytes().fold(7_u32, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u32::from(byte))
        });
        tokens.pieces.push(hash % 1_000);
        for (at, sum) in sum.iter_mut().enumerate() {
            let value = (hash.rotate_left(at as u32 * 5) % 101) as i32 - 50;
            tokens.values.push(value as i8);
            *sum += value;
        }
    }
    let words = tokens.pieces.len().max(1) as i32;
    PassageVectors {
        sentence: sum.iter().map(|sum| (sum / words) as i8).collect(),
        tokens,
    }
}

/// Searches one space without conditions. `texts` are what passages say, by number, for their token vectors.
pub(crate) fn search(
    index: &SpaceIndex,
    query: &str,
    texts: &HashMap<u32, String>,
    weights: &Weights,
) -> Vec<Ranked> {
    search_spaces(&[everything(index)], query, texts, weights)
}

/// A space of which everything may be found.
pub(crate) fn everything(index: &SpaceIndex) -> Searched<'_> {
    let eligible = index.eligible(&TurnFilter::default(), None);
    Searched {
        index,
        eligible,
        excerpt: None,
    }
}

pub(crate) fn search_spaces(
    spaces: &[Searched<'_>],
    query: &str,
    texts: &HashMap<u32, String>,
    weights: &Weights,
) -> Vec<Ranked> {
    let plan = Plan::new(query, spaces, &analyzer(), None, Tz::UTC);
    let plan = plan.with_vectors(Some(vectors(query)));
    search_planned(spaces, &plan, texts, weights)
}

/// Searches by a plan.
pub(crate) fn search_planned(
    spaces: &[Searched<'_>],
    plan: &Plan,
    texts: &HashMap<u32, String>,
    weights: &Weights,
) -> Vec<Ranked> {
    let lexical = lexical(spaces, plan, weights);
    let candidates = candidates(spaces, plan, lexical, weights);
    let read = |number: &u32| texts.get(number).map(|text| Arc::new(vectors(text).tokens));
    let tokens: Vec<Vec<_>> = candidates
        .needed()
        .iter()
        .map(|numbers| numbers.iter().map(read).collect())
        .collect();
    rank(spaces, plan, &candidates, &tokens, weights, 100)
}

/// What each passage of the turns says.
pub(crate) fn texts(turns: &[(u32, &str, &str, &str)]) -> HashMap<u32, String> {
    turns
        .iter()
        .flat_map(|&(number, _, speaker, text)| {
            let documents = documents(speaker, text, &analyzer());
            (100 * number..)
                .zip(documents)
                .map(|(passage, document)| (passage, document.text))
        })
        .collect()
}
