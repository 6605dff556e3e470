//! Rows of different lengths in one allocation.

/// A list of lists. A row that is set again leaves its old place empty until [`Ragged::retain`].
#[derive(Debug)]
pub(crate) struct Ragged<T> {
    spans: Vec<(u32, u32)>,
    values: Vec<T>,
}

impl<T> Default for Ragged<T> {
    fn default() -> Self {
        Self {
            spans: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<T: Copy> Ragged<T> {
    /// Adds a row at the end.
    pub(crate) fn push(&mut self, values: impl IntoIterator<Item = T>) {
        let span = self.append(values);
        self.spans.push(span);
    }

    /// Gives a row other values.
    pub(crate) fn set(&mut self, row: usize, values: impl IntoIterator<Item = T>) {
        self.spans[row] = self.append(values);
    }

    /// The values of a row.
    pub(crate) fn row(&self, row: usize) -> &[T] {
        let (start, length) = self.spans[row];
        &self.values[start as usize..(start + length) as usize]
    }

    /// Keeps the rows that `keep` names, in its order.
    pub(crate) fn retain(&mut self, keep: &[u32]) {
        let mut kept = Self::default();
        for &row in keep {
            kept.push(self.row(row as usize).iter().copied());
        }
        *self = kept;
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.spans.capacity() * size_of::<(u32, u32)>() + self.values.capacity() * size_of::<T>()
    }

    fn append(&mut self, values: impl IntoIterator<Item = T>) -> (u32, u32) {
        let start = self.values.len() as u32;
        self.values.extend(values);
        (start, self.values.len() as u32 - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_values_when_others_change_or_go() {
        let mut ragged = Ragged::default();
        for row in [&[1, 2][..], &[], &[3]] {
            ragged.push(row.iter().copied());
        }
        ragged.set(1, [4, 5]);
        ragged.retain(&[1, 2]);
        assert_eq!(ragged.row(0), [4, 5]);
        assert_eq!(ragged.row(1), [3]);
    }
}
