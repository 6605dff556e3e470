//! The order in which the items of a block stand (AMP item 89).

use super::{Line, is_segregated};
use crate::options::{Options, Order};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Sorts by the order that was asked for. What has a section of its own comes last.
pub(super) fn sort<'c, L: AsRef<Line<'c>>>(lines: &mut [L], options: &Options<'_>) {
    match options.order {
        Order::Rank => lines.sort_by_key(|line| line.as_ref().rank),
        Order::Chronological => by_session(lines, |line| line.candidate.effective_time(), Ord::min),
        Order::BestLast => by_session(lines, |line| Reverse(line.rank), Ord::max),
        Order::Sandwich => sandwich(lines),
    }
    lines.sort_by_key(|line| is_segregated(line.as_ref().candidate, options));
}

/// Sessions by what their items come to, ascending; items by their place in the session.
fn by_session<'c, L: AsRef<Line<'c>>, K: Ord + Copy>(
    lines: &mut [L],
    key: impl Fn(&Line<'c>) -> K,
    pick: impl Fn(K, K) -> K,
) {
    let mut keys: HashMap<u64, K> = HashMap::new();
    for line in lines.iter().map(AsRef::as_ref) {
        let own = key(line);
        let known = keys.entry(line.candidate.session).or_insert(own);
        *known = pick(*known, own);
    }
    lines.sort_by(|left, right| {
        let (left, right) = (left.as_ref().candidate, right.as_ref().candidate);
        let sessions = keys[&left.session].cmp(&keys[&right.session]);
        sessions.then_with(|| left.by_place(right))
    });
}

/// The best at both ends, the worst in the middle.
fn sandwich<'c, L: AsRef<Line<'c>>>(lines: &mut [L]) {
    lines.sort_by_key(|line| line.as_ref().rank);
    let place: HashMap<usize, isize> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| {
            let at_front = at % 2 == 0;
            let place = if at_front {
                at as isize - isize::MAX
            } else {
                -(at as isize)
            };
            (line.as_ref().rank, place)
        })
        .collect();
    lines.sort_by_key(|line| place[&line.as_ref().rank]);
}
