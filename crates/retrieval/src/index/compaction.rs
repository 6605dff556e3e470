//! Giving back the rows of forgotten passages.

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

    pub(super) fn compact(&mut self) {
        let old = self.passages.compact();
        for entry in self.turns.iter_mut().flatten() {
            let first = old
                .binary_search(&entry.first_row)
                .expect("rows of a turn that is there are alive");
            entry.first_row = first as u32;
        }
        for row in self.rows.iter_mut().filter(|row| **row != NONE) {
            let at = old.binary_search(row);
            *row = at.expect("rows of passages that are there are alive") as u32;
        }
        self.current = (0..)
            .zip(&old)
            .filter_map(|(new, &old)| self.current.contains(old).then_some(new))
            .collect();
    }
}
