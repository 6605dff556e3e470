//! How alike two embedding spaces are, told by a space's own texts: for some of them as queries,
//! which passages are the nearest in the one and in the other, and how the nearness of sampled
//! passages ranks.

use std::collections::{BTreeMap, HashSet};

use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::Change;
use memfleet_ports::model_switch::{NextStep, SpaceComparison};

use super::ModelSwitcher;

/// Texts that serve as queries …
const QUERIES: u64 = 20;
/// … each the first turn of so many changes.
const LOOKED_AT: u32 = 8;
/// The nearest passages that are held against each other.
const NEAREST: usize = 10;
/// Passages whose ranks are correlated.
const SAMPLE: usize = 500;
/// Changes read at a time.
const PAGE: u32 = 1_000;
/// Longest query, in bytes.
const QUERY_BYTES: usize = 512;

/// The nearness of passages to queries in one embedding space.
struct Nearness {
    /// By query, the nearest passages first.
    nearest: Vec<Vec<(f32, u32)>>,
    /// The nearness of sampled passages to each query, by their hash and number.
    sample: BTreeMap<(u32, u32), Vec<f32>>,
}

impl ModelSwitcher {
    /// Compares the vectors of the target with those that the space serves. Nothing where another
    /// process did by now, or the operator wants something else.
    pub(super) async fn compare(&self, next: &NextStep) -> Result<Option<SpaceComparison>, Fault> {
        let NextStep { scope, order, .. } = next;
        let held = self.spaces.embeddings(scope).await?;
        let other = held.other.filter(|it| it.space == order.target);
        let (Some(served), false) = (held.served, other.is_none_or(|it| it.is_whole)) else {
            return Ok(None);
        };
        let texts = self.queries(scope).await?;
        let nearness = |space| self.nearness(next, space, &texts);
        let Some(before) = nearness(&served).await? else {
            return Ok(None);
        };
        let after = nearness(&order.target).await?;
        Ok(after.map(|after| comparison(&before, &after)))
    }

    /// Texts of turns that are spread over the space's history.
    async fn queries(&self, scope: &Scope) -> Result<Vec<String>, Fault> {
        let head = self.feed.head(scope).await?;
        let mut ids = Vec::with_capacity(QUERIES as usize);
        for place in 0..QUERIES {
            let after = head * place / QUERIES;
            let page = self.feed.changes_after(scope, after, LOOKED_AT).await?;
            let first = page.changes.iter().find_map(|change| match change {
                Change::Stored(turn) => Some(turn.id),
                _ => None,
            });
            ids.extend(first.filter(|id| !ids.contains(id)));
        }
        let turns = self.ledger.turns(scope, &ids).await?;
        let texts = turns.iter().map(|turn| {
            let mut text = turn.accepted.content.searchable_text();
            text.truncate(text.floor_char_boundary(QUERY_BYTES));
            text
        });
        Ok(texts.filter(|text| !text.trim().is_empty()).collect())
    }

    /// Nothing where the operator wants something else meanwhile.
    async fn nearness(
        &self,
        next: &NextStep,
        space: &EmbeddingSpace,
        texts: &[String],
    ) -> Result<Option<Nearness>, Fault> {
        let mut queries = Vec::with_capacity(texts.len());
        for text in texts {
            let vectors = self.embedder.embed_query_in(space, text.clone()).await?;
            queries.push(vectors.sentence);
        }
        let mut nearness = Nearness {
            nearest: vec![Vec::new(); queries.len()],
            sample: BTreeMap::new(),
        };
        let mut reached = 0;
        while self.is_wanted(next).await? {
            let changes = self
                .feed
                .changes_in(&next.scope, Some(space), reached, PAGE);
            let page = changes.await?;
            reached = page.reached;
            let more = page.more;
            let asked = queries.clone();
            let noted = memfleet_background::compute(move || {
                nearness.note(&page.changes, &asked);
                nearness
            });
            nearness = noted
                .await
                .ok_or_else(|| Fault::internal("comparing vectors stopped"))?;
            if !more {
                return Ok(Some(nearness));
            }
        }
        Ok(None)
    }
}

impl Nearness {
    fn note(&mut self, changes: &[Change], queries: &[Vec<i8>]) {
        for change in changes {
            let Change::Stored(turn) = change else {
                continue;
            };
            for (number, passage) in (turn.first_passage..).zip(&turn.passages) {
                if let Some(sentence) = &passage.sentence {
                    let near = queries.iter().map(|query| product(query, sentence));
                    self.add(number, near.collect());
                }
            }
        }
    }

    fn add(&mut self, number: u32, near: Vec<f32>) {
        for (nearest, &near) in self.nearest.iter_mut().zip(&near) {
            if nearest.len() < NEAREST || nearest.last().is_some_and(|(last, _)| near > *last) {
                let place = nearest.partition_point(|(other, _)| *other >= near);
                nearest.insert(place, (near, number));
                nearest.truncate(NEAREST);
            }
        }
        // The same passages on both sides, whatever the order they come in.
        self.sample
            .insert((number.wrapping_mul(0x9e37_79b1), number), near);
        if self.sample.len() > SAMPLE {
            self.sample.pop_last();
        }
    }
}

fn product(a: &[i8], b: &[i8]) -> f32 {
    let pairs = a.iter().zip(b);
    let sum: i32 = pairs.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
    sum as f32
}

fn comparison(before: &Nearness, after: &Nearness) -> SpaceComparison {
    let queries = before.nearest.len();
    let (mut overlap, mut correlation) = (0.0, 0.0);
    let both: Vec<_> = before
        .sample
        .iter()
        .filter_map(|(key, near)| Some((near, after.sample.get(key)?)))
        .collect();
    for query in 0..queries {
        let named: HashSet<u32> = before.nearest[query].iter().map(|(_, n)| *n).collect();
        let shared = after.nearest[query]
            .iter()
            .filter(|(_, n)| named.contains(n));
        overlap += shared.count() as f64 / named.len().max(1) as f64;
        let before: Vec<f32> = both.iter().map(|(near, _)| near[query]).collect();
        let after: Vec<f32> = both.iter().map(|(_, near)| near[query]).collect();
        correlation += spearman(&before, &after);
    }
    let mean = |sum: f64| sum / queries.max(1) as f64;
    SpaceComparison {
        queries: queries as u32,
        overlap: mean(overlap),
        correlation: mean(correlation),
    }
}

/// Spearman's rank correlation; 1 where there are too few to rank.
fn spearman(a: &[f32], b: &[f32]) -> f64 {
    if a.len() < 2 {
        return 1.0;
    }
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() - 1) as f64 / 2.0;
    let sum = |x: &[f64], y: &[f64]| -> f64 {
        let pairs = x.iter().zip(y);
        pairs.map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let spread = (sum(&a, &a) * sum(&b, &b)).sqrt();
    if spread > 0.0 {
        sum(&a, &b) / spread
    } else {
        1.0
    }
}

/// The rank of each, from 0; equal ones share the mean of theirs.
fn ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    while begin < order.len() {
        let value = values[order[begin]];
        let tied = order[begin..]
            .iter()
            .take_while(|&&it| values[it].total_cmp(&value).is_eq());
        let end = begin + tied.count();
        for &place in &order[begin..end] {
            ranks[place] = (begin + end - 1) as f64 / 2.0;
        }
        begin = end;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_equal_order_correlate_and_of_reversed_order_do_not() {
        assert!((spearman(&[1.0, 2.0, 3.0], &[10.0, 11.0, 90.0]) - 1.0).abs() < 1e-9);
        assert!((spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-9);
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [1.5, 0.0, 1.5]);
    }

    #[test]
    fn what_both_name_counts_as_overlap() {
        let side = |numbers: &[u32]| {
            let mut side = Nearness {
                nearest: vec![Vec::new()],
                sample: BTreeMap::new(),
            };
            for (near, &number) in (1_u8..).zip(numbers.iter().rev()) {
                side.add(number, vec![f32::from(near)]);
            }
            side
        };
        let (before, after) = (side(&[1, 2, 3, 4]), side(&[4, 3, 9, 8]));
        assert!((comparison(&before, &before).overlap - 1.0).abs() < 1e-9);
        assert!((comparison(&before, &after).overlap - 0.5).abs() < 1e-9);
    }
}
