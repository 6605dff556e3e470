//! Admission: what keeps a candidate out before it is asked whether it fits.

use crate::block::{Reason, Trace};
use crate::candidate::Candidate;
use crate::options::{Options, Untrusted};
use std::collections::HashSet;

/// Who may enter.
pub(super) struct Admission {
    /// Why each candidate may not, where it may not.
    pub(super) refused: Vec<Option<Reason>>,
    pub(super) trace: Trace,
}

pub(super) fn of(candidates: &[Candidate<'_>], options: &Options<'_>) -> Admission {
    let superseded: HashSet<&str> = candidates
        .iter()
        .flat_map(|candidate| candidate.supersedes)
        .copied()
        .collect();
    let refused: Vec<Option<Reason>> = candidates
        .iter()
        .map(|candidate| refusal(candidate, &superseded, options))
        .collect();
    let relevances = candidates
        .iter()
        .filter_map(|candidate| candidate.relevance);
    let invalid = |reason: &&Option<Reason>| **reason == Some(Reason::InvalidScore);
    let trace = Trace {
        empty: None,
        unscored: candidates
            .iter()
            .filter(|candidate| candidate.relevance.is_none())
            .count(),
        invalid_scores: refused.iter().filter(invalid).count(),
        best_relevance: relevances
            .filter(|relevance| relevance.is_finite())
            .max_by(f32::total_cmp),
    };
    Admission { refused, trace }
}

fn refusal(
    candidate: &Candidate<'_>,
    superseded: &HashSet<&str>,
    options: &Options<'_>,
) -> Option<Reason> {
    let numbers = candidate.score.is_finite() && candidate.relevance.is_none_or(f32::is_finite);
    let replaced = candidate.superseded_by.is_some()
        || (!candidate.id.is_empty() && superseded.contains(candidate.id));
    let below = |least: f32| {
        candidate
            .relevance
            .is_some_and(|relevance| relevance < least)
    };
    if !numbers {
        Some(Reason::InvalidScore)
    } else if candidate.excluded.is_some() {
        candidate.excluded
    } else if replaced && !options.include_superseded {
        Some(Reason::Superseded)
    } else if options.untrusted == Untrusted::Exclude && candidate.trust.is_untrusted() {
        Some(Reason::Untrusted)
    } else if options.threshold.is_some_and(below) {
        Some(Reason::BelowThreshold)
    } else if options
        .prompt
        .is_some_and(|prompt| prompt.contains(candidate.text))
    {
        Some(Reason::InPrompt)
    } else {
        None
    }
}
