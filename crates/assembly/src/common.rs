//! How much texts have in common: of many texts, how many of its parts (words, or runs of words) each shares with another.
//!
//! Texts are found by their parts, so what shares nothing costs nothing. Parts that many texts have would make that quadratic: their
//! holders are kept as bits, and counted 64 at a time. No input, however made, costs much more than reading it.

mod tally;

use std::collections::HashMap;
use tally::Tally;

/// A part that more texts have keeps its holders as bits.
const FEW: u32 = 64;

/// Texts by their parts; they are numbered in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    texts: u32,
    holders: HashMap<u64, Holders>,
    /// The holders of parts that few have: a prompt has a million such parts, and a list for each would be most of its size.
    links: Vec<Link>,
    /// The holders of parts that many have.
    sets: Vec<Vec<u64>>,
}

#[derive(Clone, Copy, Debug)]
struct Holders {
    count: u32,
    /// The last of their links; if they are many, their set.
    at: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    holder: u32,
    /// The one before, if this is not the first.
    before: u32,
}

impl Common {
    /// Adds the next text. Its parts are distinct.
    pub(crate) fn insert(&mut self, parts: impl IntoIterator<Item = u64>) {
        let holder = self.texts;
        self.texts += 1;
        for part in parts {
            self.hold(part, holder);
        }
    }

    /// Of each text, how many of these distinct parts it has.
    pub(crate) fn counts(&self, parts: impl IntoIterator<Item = u64>) -> Vec<u32> {
        let mut counts = vec![0; self.texts as usize];
        let mut tally = Tally::default();
        for part in parts {
            match self.holders.get(&part) {
                None => {}
                Some(many) if many.count > FEW => tally.add(&self.sets[many.at as usize]),
                Some(few) => {
                    linked(&self.links, *few).for_each(|holder| counts[holder as usize] += 1)
                }
            }
        }
        tally.add_to(&mut counts);
        counts
    }

    fn hold(&mut self, part: u64, holder: u32) {
        let (links, sets) = (&mut self.links, &mut self.sets);
        let none = Holders { count: 0, at: 0 };
        let holders = self.holders.entry(part).or_insert(none);
        if holders.count < FEW {
            let before = holders.at;
            holders.at = links.len() as u32;
            links.push(Link { holder, before });
        } else {
            if holders.count == FEW {
                let few = linked(links, *holders);
                holders.at = sets.len() as u32;
                sets.push(few.fold(Vec::new(), with));
            }
            let set = &mut sets[holders.at as usize];
            *set = with(std::mem::take(set), holder);
        }
        holders.count += 1;
    }
}

fn linked(links: &[Link], few: Holders) -> impl Iterator<Item = u32> {
    let mut at = few.at;
    (0..few.count).map(move |_| {
        let link = links[at as usize];
        at = link.before;
        link.holder
    })
}

/// The set with one more.
fn with(mut set: Vec<u64>, holder: u32) -> Vec<u64> {
    let lane = holder as usize / 64;
    if set.len() <= lane {
        set.resize(lane + 1, 0);
    }
    set[lane] |= 1 << (holder % 64);
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn of(texts: &[HashSet<u64>]) -> Common {
        let mut common = Common::default();
        texts.iter().for_each(|text| common.insert(text.clone()));
        common
    }

    #[test]
    fn what_shares_nothing_has_nothing_in_common() {
        let common = of(&[HashSet::from([1, 2]), HashSet::new(), HashSet::from([3])]);
        assert_eq!(common.counts([]), [0, 0, 0]);
        assert_eq!(common.counts([4, 5]), [0, 0, 0]);
        assert_eq!(common.counts([1, 3, 2]), [2, 0, 1]);
        assert!(Common::default().counts([1]).is_empty());
    }

    proptest! {
        #[test]
        fn counts_are_those_of_comparing_each_with_each(
            texts in prop::collection::vec(prop::collection::hash_set(0_u64..40, 0..30), 0..300),
            asked in prop::collection::hash_set(0_u64..45, 0..45),
        ) {
            let expected: Vec<u32> = texts.iter().map(|text| text.intersection(&asked).count() as u32).collect();
            prop_assert_eq!(of(&texts).counts(asked), expected);
        }
    }
}
