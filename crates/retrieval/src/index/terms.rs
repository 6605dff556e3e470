//! The lexical half: which passages hold a term, and how often.

use memfleet_ports::ledger::TermCount;

use super::names::Names;
use super::ragged::Ragged;

/// Postings by term, and the terms of each row.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    names: Names,
    /// By the number of the term.
    postings: Vec<Postings>,
    /// By row: numbers of its distinct terms.
    rows: Ragged<u32>,
}

/// The rows that hold a term, ascending, with the term's count in each (at most 255).
#[derive(Debug, Default)]
pub(crate) struct Postings {
    rows: Vec<u32>,
    counts: Vec<u8>,
}

impl Postings {
    /// From rows in any order, each once.
    pub(crate) fn of(mut found: Vec<(u32, u16)>) -> Self {
        found.sort_unstable();
        let count = |&(_, count): &(u32, u16)| u8::try_from(count).unwrap_or(u8::MAX);
        Self {
            counts: found.iter().map(count).collect(),
            rows: found.into_iter().map(|(row, _)| row).collect(),
        }
    }

    fn sort(&mut self) {
        if !self.rows.is_sorted() {
            let counts = self.counts.iter().map(|&count| u16::from(count));
            *self = Self::of(self.rows.iter().copied().zip(counts).collect());
        }
    }

    /// Rows and counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u8)> {
        self.rows.iter().copied().zip(self.counts.iter().copied())
    }
}

impl Terms {
    /// Adds the terms of the next row.
    pub(crate) fn push(&mut self, row: u32, terms: &[TermCount]) {
        let mut numbers = Vec::with_capacity(terms.len());
        for (term, count) in terms {
            let number = self.names.acquire(term);
            if self.postings.len() <= number as usize {
                self.postings.push(Postings::default());
            }
            let postings = &mut self.postings[number as usize];
            postings.rows.push(row);
            postings
                .counts
                .push(u8::try_from(*count).unwrap_or(u8::MAX));
            numbers.push(number);
        }
        self.rows.push(numbers);
    }

    /// Takes a row out of all postings.
    pub(crate) fn remove(&mut self, row: u32) {
        for &number in self.rows.row(row as usize) {
            let postings = &mut self.postings[number as usize];
            if let Ok(at) = postings.rows.binary_search(&row) {
                postings.rows.remove(at);
                postings.counts.remove(at);
            }
            if self.names.release(number) {
                *postings = Postings::default();
            }
        }
        self.rows.set(row as usize, []);
    }

    /// The postings of a term.
    pub(crate) fn postings(&self, term: &str) -> Option<&Postings> {
        self.names
            .get(term)
            .map(|number| &self.postings[number as usize])
    }

    /// In how many rows each distinct term of a row occurs.
    pub(crate) fn frequencies(&self, row: u32) -> impl Iterator<Item = u32> {
        self.rows
            .row(row as usize)
            .iter()
            .map(|&number| self.names.uses(number))
    }

    /// Keeps the rows that `keep` names, in its order; by old row, `renumbered` has the new one.
    pub(crate) fn retain(&mut self, keep: &[u32], renumbered: &[u32]) {
        self.rows.retain(keep);
        for postings in &mut self.postings {
            let rows = postings.rows.iter_mut();
            rows.for_each(|row| *row = renumbered[*row as usize]);
            postings.sort();
        }
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        let heap = |postings: &Postings| postings.rows.capacity() * 4 + postings.counts.capacity();
        self.names.bytes()
            + self.postings.capacity() * size_of::<Postings>()
            + self.postings.iter().map(heap).sum::<usize>()
            + self.rows.bytes()
    }
}
