//! Where the passages of a space are in the tables that are keyed by space and number.

/// The key of passage 0 of a space.
pub fn first_key(space: i64) -> i64 {
    space << 32
}

/// Half-open ranges of neighbouring numbers.
pub fn runs(ranges: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = ranges
        .map(|(first, count)| (first, first + count))
        .collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, run| {
        let follows = next.0 <= run.1;
        if follows {
            run.1 = run.1.max(next.1);
        }
        follows
    });
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_ranges_become_one_run() {
        assert_eq!(
            runs([(7, 1), (0, 2), (2, 3), (10, 2), (8, 0)].into_iter()),
            vec![(0, 5), (7, 8), (10, 12)]
        );
    }
}
