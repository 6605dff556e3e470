//! The judge on read by rules (AMA section 3.3): whether what was found is enough, and what to look for if it is not.
//!
//! Scores are calibrated beforehand (the share of such candidates that serve their query); terms are those of the index.

use std::collections::HashSet;

use crate::reading::Granularity;

/// A content term of the query and how rare it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// As the index has it.
    pub text: String,
    /// Inverse document frequency, above 0.
    pub idf: f32,
}

/// What the query asks for and what has been tried.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'q> {
    /// Distinct terms.
    pub terms: &'q [Term],
    /// The memories that were searched.
    pub searched: &'q [Granularity],
    /// How often it was retried.
    pub rounds: u32,
}

/// A memory that was found.
#[derive(Debug, Clone)]
pub struct Candidate<'c> {
    /// Calibrated, 0 to 1.
    pub score: f32,
    /// Its terms.
    pub terms: HashSet<&'c str>,
}

/// Where the lines are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Lowest score of a relevant candidate.
    pub score: f32,
    /// Share of the query's terms, weighted by rarity, that makes a candidate relevant whatever its score.
    pub coverage: f32,
    /// Lowest share of relevant candidates that is enough.
    pub density: f32,
    /// Lowest share of the query's terms, weighted by rarity, that all relevant candidates together must have.
    pub covered: f32,
    /// `K_r`: most retries.
    pub rounds: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            score: 0.2,
            coverage: 0.75,
            density: 0.1,
            covered: 0.5,
            rounds: 2,
        }
    }
}

/// What is found wanting, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retry {
    /// Memories not searched yet, in the order of the routing.
    pub granularities: Vec<Granularity>,
    /// Terms that no relevant candidate has, rarest first.
    pub uncovered: Vec<String>,
    /// Follow `R_t`, the related turns of the relevant candidates.
    pub expand_related: bool,
}

/// How it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The memories are used as they are.
    Pass,
    /// They are too few that serve.
    Retry(Retry),
    /// Some contradict each other.
    Refresh,
}

/// What the judge makes of the candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// `H_r`: places of the candidates that serve the query, in their order.
    pub relevant: Vec<usize>,
    /// Their share, 0 to 1.
    pub density: f32,
    /// What to look for, if they are not enough and something is left to try.
    pub retry: Option<Retry>,
}

impl Assessment {
    /// The action, given how many conflicts (`C_err`) were found among the relevant candidates.
    pub fn action(self, conflicts: usize) -> Action {
        match self.retry {
            Some(retry) => Action::Retry(retry),
            None if conflicts > 0 => Action::Refresh,
            None => Action::Pass,
        }
    }
}

/// Assesses what was found.
pub fn assess(asked: Asked<'_>, candidates: &[Candidate<'_>], options: &Options) -> Assessment {
    let is_relevant = |candidate: &&Candidate<'_>| {
        candidate.score >= options.score
            || share(asked.terms, |term| candidate.terms.contains(term)) >= options.coverage
    };
    let places = candidates.iter().enumerate();
    let (relevant, served): (Vec<usize>, Vec<&Candidate<'_>>) = places
        .filter(|(_, candidate)| is_relevant(candidate))
        .unzip();
    let density = relevant.len() as f32 / candidates.len().max(1) as f32;
    let has = |term: &str| {
        served
            .iter()
            .any(|candidate| candidate.terms.contains(term))
    };
    let covered = share(asked.terms, has);
    let is_thin = relevant.is_empty() || density < options.density;
    let is_lacking = !asked.terms.is_empty() && covered < options.covered;
    let retry = Retry {
        granularities: untried(asked.searched),
        uncovered: uncovered(asked.terms, has),
        expand_related: !relevant.is_empty(),
    };
    let is_possible =
        asked.rounds < options.rounds && (retry.expand_related || !retry.granularities.is_empty());
    Assessment {
        relevant,
        density,
        retry: (is_possible && (is_thin || is_lacking)).then_some(retry),
    }
}

/// The share of the terms that are had, weighted by rarity; 0 without terms.
pub fn share(terms: &[Term], has: impl Fn(&str) -> bool) -> f32 {
    let all: f32 = terms.iter().map(|term| term.idf).sum();
    let had = terms.iter().filter(|term| has(&term.text));
    let had: f32 = had.map(|term| term.idf).sum();
    if all > 0.0 { had / all } else { 0.0 }
}

fn untried(searched: &[Granularity]) -> Vec<Granularity> {
    let all = Granularity::ALL.into_iter();
    all.filter(|granularity| !searched.contains(granularity))
        .collect()
}

fn uncovered(terms: &[Term], has: impl Fn(&str) -> bool) -> Vec<String> {
    let mut missing: Vec<&Term> = terms.iter().filter(|term| !has(&term.text)).collect();
    missing.sort_by(|a, b| b.idf.total_cmp(&a.idf));
    missing.into_iter().map(|term| term.text.clone()).collect()
}
