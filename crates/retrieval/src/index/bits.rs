//! A set of rows, one bit each.

/// Bits beyond the end are 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Whether the bit is set.
    pub(crate) fn contains(&self, at: u32) -> bool {
        self.words
            .get(at as usize / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Sets or clears the bit.
    pub(crate) fn set(&mut self, at: u32, value: bool) {
        let word = at as usize / 64;
        if word >= self.words.len() {
            if !value {
                return;
            }
            self.words.resize(word + 1, 0);
        }
        let mask = 1 << (at % 64);
        if value {
            self.words[word] |= mask;
        } else {
            self.words[word] &= !mask;
        }
    }

    /// 64 bits; `at` is a multiple of 64.
    pub(crate) fn word(&self, at: u32) -> u64 {
        self.words.get(at as usize / 64).copied().unwrap_or(0)
    }

    /// How many bits are set.
    pub(crate) fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// The bits that are set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.from(0)
    }

    /// The bits from `at` on that are set, ascending.
    pub(crate) fn from(&self, at: u32) -> impl Iterator<Item = u32> {
        let first = at as usize / 64;
        (first..self.words.len()).flat_map(move |place| {
            let mut rest = self.words[place];
            if place == first {
                rest &= u64::MAX << (at % 64);
            }
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(place as u32 * 64 + bit)
            })
        })
    }

    /// The bits before `at` that are set, descending.
    pub(crate) fn before(&self, at: u32) -> impl Iterator<Item = u32> {
        let last = at as usize / 64;
        (0..self.words.len().min(last + 1))
            .rev()
            .flat_map(move |place| {
                let mut rest = self.words[place];
                if place == last {
                    rest &= (1 << (at % 64)) - 1;
                }
                std::iter::from_fn(move || {
                    let bit = (rest != 0).then(|| rest.ilog2())?;
                    rest ^= 1 << bit;
                    Some(place as u32 * 64 + bit)
                })
            })
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

impl FromIterator<u32> for Bits {
    fn from_iter<I: IntoIterator<Item = u32>>(iter: I) -> Self {
        let mut bits = Self::default();
        iter.into_iter().for_each(|at| bits.set(at, true));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn bits_behave_as_a_set(steps in prop::collection::vec((0_u32..300, any::<bool>()), 0..100)) {
            let mut bits = Bits::default();
            let mut set = BTreeSet::new();
            for (at, value) in steps {
                bits.set(at, value);
                if value { set.insert(at); } else { set.remove(&at); }
            }
            prop_assert_eq!(bits.count(), set.len());
            prop_assert!(bits.iter().eq(set.iter().copied()));
            for at in [0, 63, 64, 100, 300, 400] {
                prop_assert!(bits.from(at).eq(set.range(at..).copied()));
                prop_assert!(bits.before(at).eq(set.range(..at).rev().copied()));
            }
            prop_assert!((0..320).all(|at| bits.contains(at) == set.contains(&at)));
        }
    }
}
