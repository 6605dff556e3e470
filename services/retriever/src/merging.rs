//! One answer of several searches. Scores of two models cannot be compared, probabilities can: hits
//! are ordered by relevance.

use std::cmp::Reverse;

use memfleet_ports::retriever::{CandidateTrace, Found, Hit, SearchExplanation};

/// The best `k` hits of searches of spaces with vectors of different models. Each hit's score is
/// its relevance. Where a search could not tell relevance, answers take turns by rank instead.
pub(crate) fn merge(mut answers: Vec<Found>, k: usize) -> Found {
    if answers.len() == 1 {
        return answers.remove(0);
    }
    let hits = answers.iter().flat_map(|answer| &answer.hits);
    let has_relevance = hits.clone().all(|hit| hit.relevance.is_some());
    let mut merged = Found::default();
    let mut scorers: Vec<String> = Vec::new();
    let mut ranked: Vec<(usize, Hit)> = Vec::new();
    for answer in answers {
        ranked.extend(answer.hits.into_iter().enumerate());
        merged.degraded.extend(answer.degraded);
        merged.searched += answer.searched;
        scorers.push(answer.scorer);
        merged.explanation = match (merged.explanation, answer.explanation) {
            (Some(one), Some(other)) => Some(joined(one, other)),
            (one, other) => one.or(other),
        };
    }
    ranked.sort_by_key(|(rank, hit)| match has_relevance {
        true => (0, Reverse(order(hit.relevance))),
        false => (*rank, Reverse(0)),
    });
    ranked.truncate(k);
    merged.hits = ranked
        .into_iter()
        .map(|(rank, hit)| Hit {
            score: match has_relevance {
                true => hit.relevance.unwrap_or_default(),
                false => 1.0 / (rank as f32 + 1.0),
            },
            ..hit
        })
        .collect();
    scorers.sort();
    scorers.dedup();
    merged.scorer = match has_relevance {
        true => scorers.join("+"),
        false => String::new(),
    };
    if let Some(explanation) = &mut merged.explanation {
        explanation.settle(&merged.hits);
    }
    merged
}

/// The order of a probability, which is not negative: that of its bits.
fn order(relevance: Option<f32>) -> u32 {
    relevance.map_or(0, f32::to_bits)
}

/// Candidates of two searches, by relevance.
fn joined(one: SearchExplanation, other: SearchExplanation) -> SearchExplanation {
    let mut shown: Vec<CandidateTrace> = one.shown.into_iter().chain(other.shown).collect();
    shown.sort_by_key(|trace| (Reverse(order(trace.relevance)), trace.rank));
    for (trace, rank) in shown.iter_mut().zip(1..) {
        trace.rank = rank;
    }
    SearchExplanation {
        candidates: one.candidates + other.candidates,
        is_exhaustive: one.is_exhaustive && other.is_exhaustive,
        shown,
    }
}
