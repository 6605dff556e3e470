//! How texts are put together for one run of the model: groups of about the same number of word pieces, as many for
//! every thread, small enough that what lies between two products stays in the thread's cache.

use std::cmp::Reverse;

/// Pieces of a group beyond which a larger one runs no faster.
const GROUP_TOKENS: usize = 128;

/// Indexes of the texts of each group; every index appears once, no group is empty.
pub(crate) fn groups(lengths: &[usize], threads: usize) -> Vec<Vec<usize>> {
    let total: usize = lengths.iter().sum();
    let threads = threads.max(1);
    let count = threads * total.div_ceil(threads * GROUP_TOKENS).max(1);
    let mut groups = vec![(0, Vec::new()); count.min(lengths.len())];
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| Reverse(lengths[index]));
    // The longest text first, each to the group that has least: the classic rule for even loads.
    for index in order {
        let least = groups
            .iter_mut()
            .min_by_key(|(load, members)| (*load, members.len()));
        if let Some((load, members)) = least {
            *load += lengths[index];
            members.push(index);
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_threads_share_a_batch() {
        assert_eq!(groups(&[10, 10, 10, 10], 2), [vec![0, 2], vec![1, 3]]);
    }

    #[test]
    fn a_long_text_is_alone_where_others_make_up_for_it() {
        assert_eq!(groups(&[8, 20, 9], 2), [vec![1], vec![2, 0]]);
    }

    proptest! {
        #[test]
        fn every_text_is_in_one_group_and_loads_differ_by_one_text_at_most(
            lengths in prop::collection::vec(0_usize..300, 0..80),
            threads in 1_usize..5,
        ) {
            let groups = groups(&lengths, threads);
            let mut seen: Vec<usize> = groups.iter().flatten().copied().collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..lengths.len()));
            prop_assert!(groups.iter().all(|group| !group.is_empty()));
            let loads = groups.iter().map(|group| group.iter().map(|&i| lengths[i]).sum::<usize>());
            let (least, most) = loads.fold((usize::MAX, 0), |(least, most), load| (least.min(load), most.max(load)));
            prop_assert!(groups.is_empty() || most - least <= lengths.iter().copied().max().unwrap_or(0));
        }
    }
}
