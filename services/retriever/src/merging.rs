//! One answer of several searches. Scores of two models cannot be compared, probabilities can: hits
//! are ordered by relevance.

use std::cmp::Reverse;

use memfleet_ports::retriever::{CandidateTrace, Found, Hit, SearchExplanation};

/// The answer of a search in one group of spaces.
pub(crate) struct GroupAnswer {
    pub(crate) found: Found,
    /// False where the model of the spaces does not read the query.
    pub(crate) is_read: bool,
}

/// The best `k` hits of searches of spaces with vectors of different models. Each hit's score is
/// its relevance. Where a model does not read the query, what its spaces have stands behind all
/// that others found. Where a search could not tell relevance for another reason, answers take
/// turns by rank instead.
pub(crate) fn merge(mut answers: Vec<GroupAnswer>, k: usize) -> Found {
    if answers.len() == 1 {
        return answers.remove(0).found;
    }
    let some_read = answers.iter().any(|answer| answer.is_read);
    let is_behind = |answer: &GroupAnswer| some_read && !answer.is_read;
    let compared = answers.iter().filter(|answer| !is_behind(answer));
    let mut compared = compared.flat_map(|answer| &answer.found.hits);
    let has_relevance = compared.all(|hit| hit.relevance.is_some());
    let mut merged = Found::default();
    let mut scorers: Vec<String> = Vec::new();
    let mut ranked: Vec<(bool, usize, Hit)> = Vec::new();
    for answer in answers {
        let is_behind = is_behind(&answer);
        let found = answer.found;
        let hits = found.hits.into_iter().enumerate();
        ranked.extend(hits.map(|(rank, hit)| (is_behind, rank, hit)));
        merged.degraded.extend(found.degraded);
        merged.searched += found.searched;
        scorers.extend((!found.scorer.is_empty()).then_some(found.scorer));
        merged.explanation = match (merged.explanation, found.explanation) {
            (Some(one), Some(other)) => Some(joined(one, other)),
            (one, other) => one.or(other),
        };
    }
    ranked.sort_by_key(|(is_behind, rank, hit)| match has_relevance && !is_behind {
        true => (*is_behind, 0, Reverse(order(hit.relevance))),
        false => (*is_behind, *rank, Reverse(0)),
    });
    ranked.truncate(k);
    merged.hits = ranked
        .into_iter()
        .map(|(is_behind, rank, hit)| Hit {
            score: match (is_behind, has_relevance) {
                (true, _) => 0.0,
                (false, true) => hit.relevance.unwrap_or_default(),
                (false, false) => 1.0 / (rank as f32 + 1.0),
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
