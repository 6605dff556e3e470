//! The highest of many, without sorting them all.

use std::cmp::Ordering;

/// Collects the `limit` highest entries; of equal scores the higher key wins, so the outcome does not depend on the order.
pub(crate) struct Top<K> {
    limit: usize,
    entries: Vec<(f32, K)>,
    floor: Option<(f32, K)>,
}

impl<K: Copy + Ord> Top<K> {
    /// Collects up to `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            entries: Vec::with_capacity(2 * limit),
            floor: None,
        }
    }

    /// Offers an entry; a score that is no number is not taken.
    #[inline]
    pub(crate) fn push(&mut self, score: f32, key: K) {
        let entry = (score, key);
        let is_below = |floor| descending(&floor, &entry).is_le();
        if !score.is_nan() && !self.floor.is_some_and(is_below) {
            self.keep(entry);
        }
    }

    fn keep(&mut self, entry: (f32, K)) {
        self.entries.push(entry);
        if self.entries.len() >= 2 * self.limit.max(1) {
            self.cut();
        }
    }

    /// Offers everything that another one kept.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (score, key) in other.entries {
            self.push(score, key);
        }
    }

    /// The keys, in no order.
    pub(crate) fn into_keys(self) -> impl Iterator<Item = K> {
        self.into_entries().map(|(_, key)| key)
    }

    /// The scores and keys, in no order.
    pub(crate) fn into_entries(mut self) -> impl Iterator<Item = (f32, K)> {
        self.cut();
        self.entries.into_iter()
    }

    fn cut(&mut self) {
        if self.limit == 0 {
            self.entries.clear();
        } else if self.entries.len() > self.limit {
            let (_, last, _) = self
                .entries
                .select_nth_unstable_by(self.limit - 1, descending);
            self.floor = Some(*last);
            self.entries.truncate(self.limit);
        }
    }
}

fn descending<K: Ord>(a: &(f32, K), b: &(f32, K)) -> Ordering {
    b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_highest_are_kept(scores in prop::collection::vec(-5_i8..5, 0..200), limit in 0_usize..20) {
            let mut top = Top::new(limit);
            let mut all = Vec::new();
            for (key, &score) in scores.iter().enumerate() {
                top.push(f32::from(score), key);
                all.push((f32::from(score), key));
            }
            all.sort_by(descending);
            let mut expected: Vec<usize> = all.into_iter().take(limit).map(|(_, key)| key).collect();
            let mut kept: Vec<usize> = top.into_keys().collect();
            expected.sort_unstable();
            kept.sort_unstable();
            prop_assert_eq!(kept, expected);
        }
    }
}
