//! Giving back the rows of forgotten passages, and putting rows in the store's order.

use super::{NONE, SpaceIndex};

/// Dead rows below which compaction is not worth it.
const SPARE_ROWS: usize = 256;

impl SpaceIndex {
    /// Renumbers the rows once a third of them are dead.
    pub(super) fn compact_if_sparse(&mut self) {
        let (rows, alive) = (self.passages.rows(), self.passages.alive());
        if rows - alive > SPARE_ROWS && (rows - alive) * 3 > rows {
            self.compact();
        }
    }

    /// Numbers the rows anew, in the order in which the store numbered the passages: whoever reads all changes at once learns of a
    /// turn that was replaced later than who followed them, and both are to find the same.
    pub(super) fn compact(&mut self) {
        let mut numbers = vec![NONE; self.passages.rows()];
        for entry in self.turns.iter().flatten() {
            let rows = &mut numbers[entry.first_row as usize..][..entry.rows as usize];
            rows.iter_mut()
                .zip(entry.first_passage..)
                .for_each(|(slot, number)| *slot = number);
        }
        let renumbered = self.passages.compact_by(|row| numbers[row as usize]);
        let new = |old: u32| renumbered[old as usize];
        for entry in self.turns.iter_mut().flatten() {
            entry.first_row = new(entry.first_row);
        }
        for row in self.rows.iter_mut().filter(|row| **row != NONE) {
            *row = new(*row);
        }
        self.current = self.current.iter().map(new).collect();
        self.is_unordered = false;
    }
}
