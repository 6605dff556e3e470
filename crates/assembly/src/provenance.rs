//! Provenance: where each item of a block comes from, as the caller reports it (AMP items 82, 91, 93 and 97).
//!
//! All of it comes from the candidates' own fields: nothing is read out of what a memory says.

use crate::block::Block;
use crate::candidate::{Candidate, Granularity, Trust, Validity};
use chrono::{DateTime, SubsecRound, Utc};
use std::collections::HashSet;

/// Where an item of a block comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance<'a> {
    /// The number of its key in the block, from 1.
    pub key: u32,
    /// Its id.
    pub id: &'a str,
    /// The memory systems that have it: its own first, then those of the duplicates that were merged into it, each once.
    pub sources: Vec<&'a str>,
    /// The ids of what was merged into it, each once.
    pub merged_ids: Vec<&'a str>,
    /// The session that it belongs to, as the candidates number them.
    pub session: u64,
    /// What kind of memory it is.
    pub granularity: Granularity,
    /// Where its words come from.
    pub trust: Trust,
    /// When it was said, to the millisecond.
    pub event_time: Option<DateTime<Utc>>,
    /// When it was recorded, to the millisecond.
    pub recorded_at: DateTime<Utc>,
    /// When it holds.
    pub valid: Validity,
    /// What replaces it.
    pub superseded_by: Option<&'a str>,
    /// What it was derived from.
    pub lineage: &'a [&'a str],
    /// What the search ranked it by.
    pub score: f32,
    /// Its calibrated relevance.
    pub relevance: Option<f32>,
    /// Its place in rank order, from 0.
    pub rank: usize,
    /// Tokens that are shown of it.
    pub tokens: usize,
    /// Tokens that it has.
    pub original_tokens: usize,
    /// Whether part of it is not shown.
    pub truncated: bool,
    /// BLAKE3 of its text.
    pub content_hash: [u8; 32],
}

impl Block {
    /// Where each item comes from, in the order of the block. `candidates` are those that it was assembled from.
    pub fn provenance<'a>(&self, candidates: &[Candidate<'a>]) -> Vec<Provenance<'a>> {
        let of = |item: &crate::Item| {
            let candidate = &candidates[item.candidate];
            let merged = || item.merged.iter().map(|&index| &candidates[index]);
            Provenance {
                key: item.key,
                id: candidate.id,
                sources: once_each(
                    std::iter::once(candidate.source).chain(merged().map(|other| other.source)),
                ),
                merged_ids: once_each(merged().map(|other| other.id))
                    .into_iter()
                    .filter(|id| *id != candidate.id)
                    .collect(),
                session: candidate.session,
                granularity: candidate.granularity,
                trust: candidate.trust,
                event_time: candidate.event_time.map(|time| time.trunc_subsecs(3)),
                recorded_at: candidate.recorded_at.trunc_subsecs(3),
                valid: candidate.valid,
                superseded_by: candidate.superseded_by,
                lineage: candidate.lineage,
                score: candidate.score,
                relevance: candidate.relevance,
                rank: item.rank,
                tokens: item.tokens,
                original_tokens: item.original_tokens,
                truncated: item.truncated(),
                content_hash: blake3::hash(candidate.text.as_bytes()).into(),
            }
        };
        self.items.iter().map(of).collect()
    }
}

fn once_each<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}
