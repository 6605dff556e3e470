//! How texts are put together for one run of the model: sorted by length, so that little is padded, in groups
//! small enough that every thread gets some.

/// Tokens of a group, padding included, beyond which a larger one runs no faster.
const GROUP_TOKENS: usize = 512;

/// Indexes of the texts of each group, longest texts first; every index appears once.
pub(crate) fn groups(lengths: &[usize], threads: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(lengths[index]));
    let share = lengths.iter().sum::<usize>().div_ceil(threads.max(1));
    let budget = share.min(GROUP_TOKENS);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for index in order {
        match groups.last_mut() {
            Some(group) if room >= lengths[group[0]] => {
                room -= lengths[group[0]];
                group.push(index);
            }
            _ => {
                room = budget.saturating_sub(lengths[index]);
                groups.push(vec![index]);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_threads_share_a_batch() {
        assert_eq!(groups(&[10, 10, 10, 10], 2), [vec![0, 1], vec![2, 3]]);
    }

    #[test]
    fn a_text_above_the_budget_is_alone() {
        assert_eq!(groups(&[8, 900], 1), [vec![1], vec![0]]);
    }

    proptest! {
        #[test]
        fn every_text_is_in_one_group_and_no_group_is_over_budget(
            lengths in prop::collection::vec(1_usize..300, 0..80),
            threads in 1_usize..5,
        ) {
            let groups = groups(&lengths, threads);
            let mut seen: Vec<usize> = groups.iter().flatten().copied().collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..lengths.len()));
            for group in groups {
                let padded = group.len() * group.iter().map(|&i| lengths[i]).max().unwrap();
                prop_assert!(group.len() == 1 || padded <= GROUP_TOKENS);
            }
        }
    }
}
