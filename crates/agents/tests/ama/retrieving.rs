//! Sections 3.2 and 3.3: retriever and judge.

use std::collections::HashSet;

use memfleet_agents::reading::{Granularity, effective_k, route};
use memfleet_agents::relevance::{Action, Asked, Assessment, Candidate, Options, Term, assess};
use memfleet_domain::intent::Intent;

const OPTIONS: Options = Options {
    score: 0.5,
    coverage: 0.9,
    density: 0.5,
    covered: 0.5,
    rounds: 2,
};

fn intent([fine, abstracted, event, atomic]: [bool; 4]) -> Intent {
    Intent {
        fine,
        abstracted,
        event,
        atomic,
    }
}

fn every_intent() -> impl Iterator<Item = [bool; 4]> {
    (0..16_u8).map(|bits| [0, 1, 2, 3].map(|bit| bits >> bit & 1 == 1))
}

fn terms() -> Vec<Term> {
    let term = |(text, idf): (&str, f32)| Term {
        text: text.to_owned(),
        idf,
    };
    [("guitar", 3.0), ("lesson", 2.0), ("teacher", 1.0)]
        .map(term)
        .into()
}

fn candidate<'c>(score: f32, terms: &[&'c str]) -> Candidate<'c> {
    Candidate {
        score,
        terms: terms.iter().copied().collect::<HashSet<_>>(),
    }
}

fn judged(rounds: u32, candidates: &[Candidate<'_>]) -> Assessment {
    let terms = terms();
    let asked = Asked {
        terms: &terms,
        searched: &[Granularity::Raw],
        rounds,
    };
    assess(asked, candidates, &OPTIONS)
}

#[test]
fn section_3_2_fine_goes_to_raw_text_whatever_else_is_asked() {
    for bits in every_intent().filter(|[fine, ..]| *fine) {
        assert_eq!(route(intent(bits)), Granularity::Raw);
    }
}

#[test]
fn section_3_2_abstractedor_event_goes_to_episodes_unless_fine() {
    for bits in
        every_intent().filter(|[fine, abstracted, event, _]| !fine && (*abstracted || *event))
    {
        assert_eq!(route(intent(bits)), Granularity::Episode);
    }
}

#[test]
fn section_3_2_all_else_goes_to_facts() {
    for bits in
        every_intent().filter(|[fine, abstracted, event, _]| !(*fine || *abstracted || *event))
    {
        assert_eq!(route(intent(bits)), Granularity::Fact);
    }
}

#[test]
fn section_3_2_k_is_the_larger_of_k_dyn_and_k_m() {
    assert_eq!(effective_k(1, 10), 10);
    assert_eq!(effective_k(30, 10), 30);
}

#[test]
fn section_3_3_density_is_the_share_of_relevant_candidates() {
    let found = [
        candidate(0.9, &["guitar"]),
        candidate(0.1, &[]),
        candidate(0.6, &["lesson"]),
        candidate(f32::NAN, &["teacher"]),
    ];
    let judged = judged(0, &found);
    assert_eq!(judged.relevant, [0, 2]);
    assert!((judged.density - 0.5).abs() < 1e-6);
    assert_eq!(judged.retry, None);
}

#[test]
fn section_3_3_density_below_the_threshold_asks_for_a_retry() {
    let found = [
        candidate(0.9, &["guitar", "lesson"]),
        candidate(0.1, &[]),
        candidate(0.1, &[]),
    ];
    let Action::Retry(retry) = judged(0, &found).action(0) else {
        panic!("one of three is below one half");
    };
    assert_eq!(
        retry.granularities,
        [Granularity::Episode, Granularity::Fact]
    );
    assert_eq!(retry.uncovered, ["teacher"]);
    assert!(retry.expand_related);
}

#[test]
fn section_3_3_what_no_candidate_mentions_asks_for_a_retry() {
    let Action::Retry(retry) = judged(0, &[candidate(0.9, &["teacher"])]).action(0) else {
        panic!("most of the query is missing");
    };
    assert_eq!(retry.uncovered, ["guitar", "lesson"]);
}

#[test]
fn section_3_3_a_candidate_with_the_querys_words_is_relevant_whatever_its_score() {
    let judged = judged(0, &[candidate(0.0, &["guitar", "lesson", "teacher"])]);
    assert_eq!(judged.relevant, [0]);
}

#[test]
fn section_3_3_retries_are_bounded_by_k_r() {
    let retries = (0..5).filter(|&rounds| judged(rounds, &[]).retry.is_some());
    assert_eq!(retries.count(), OPTIONS.rounds as usize);
    assert_eq!(Options::default().rounds, 2);
    assert_eq!(judged(2, &[]).action(0), Action::Pass);
}

#[test]
fn section_3_3_nothing_left_to_try_is_no_retry() {
    let terms = terms();
    let asked = Asked {
        terms: &terms,
        searched: &Granularity::ALL,
        rounds: 0,
    };
    assert_eq!(assess(asked, &[], &OPTIONS).action(0), Action::Pass);
}

#[test]
fn section_3_3_conflicts_among_the_relevant_ask_for_a_refresh_and_else_they_pass() {
    let found = [candidate(0.9, &["guitar", "lesson"])];
    assert_eq!(judged(0, &found).action(1), Action::Refresh);
    assert_eq!(judged(0, &found).action(0), Action::Pass);
}

#[test]
fn section_3_3_conflicts_wait_until_the_relevance_check_is_passed() {
    assert!(matches!(judged(0, &[]).action(1), Action::Retry(_)));
    assert_eq!(judged(2, &[]).action(1), Action::Refresh);
}
