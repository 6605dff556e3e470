//! Counts of 64 texts at a time: the bits of one weight stand side by side in a word, and sets are added to them as a carry ripples.

/// How often each text was in a set.
#[derive(Default)]
pub(super) struct Tally {
    /// Of each 64 texts, the bits of their counts, the least first.
    lanes: Vec<Vec<u64>>,
}

impl Tally {
    pub(super) fn add(&mut self, set: &[u64]) {
        if self.lanes.len() < set.len() {
            self.lanes.resize(set.len(), Vec::new());
        }
        for (lane, &bits) in self.lanes.iter_mut().zip(set) {
            let mut carry = bits;
            for weight in lane.iter_mut() {
                if carry == 0 {
                    break;
                }
                (*weight, carry) = (*weight ^ carry, *weight & carry);
            }
            if carry != 0 {
                lane.push(carry);
            }
        }
    }

    /// Adds what was counted to these counts.
    pub(super) fn add_to(&self, counts: &mut [u32]) {
        for (lane, counts) in self.lanes.iter().zip(counts.chunks_mut(64)) {
            for (weight, &bits) in lane.iter().enumerate() {
                for (at, count) in counts.iter_mut().enumerate() {
                    *count += ((bits >> at & 1) as u32) << weight;
                }
            }
        }
    }
}
