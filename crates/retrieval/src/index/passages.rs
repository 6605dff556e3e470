//! The columns of a space's passages, by row.

use hashbrown::HashMap;
use memfleet_ports::feed::IndexedPassage;

use super::NONE;
use super::bits::Bits;
use super::ragged::Ragged;
use super::sentences::Sentences;
use super::terms::Terms;
use crate::document::FEATURES;

/// Everything that is known of each passage.
#[derive(Debug, Default)]
pub(crate) struct Passages {
    pub(crate) terms: Terms,
    pub(crate) sentences: Sentences,
    alive: Bits,
    alive_count: usize,
    turns: Vec<u32>,
    sessions: Vec<u32>,
    previous: Vec<u32>,
    next: Vec<u32>,
    /// Terms, with repeats.
    lengths: Vec<u32>,
    /// Bytes of text.
    bytes: Vec<u32>,
    features: Vec<[f32; FEATURES]>,
    pieces: Ragged<u32>,
    /// In how many rows a word piece occurs.
    piece_frequencies: HashMap<u32, u32>,
    /// Sum of lengths over every row and its linked neighbours: the total length of all windows.
    window_length: u64,
    /// Sum of lengths.
    total_length: u64,
}

impl Passages {
    /// Adds the passages of a turn of a session as new rows, linked in their order; gives the first row.
    pub(crate) fn push(&mut self, turn: u32, session: u32, passages: &[IndexedPassage]) -> u32 {
        let first = self.turns.len() as u32;
        for (row, passage) in (first..).zip(passages) {
            let length = passage.words;
            self.turns.push(turn);
            self.sessions.push(session);
            self.previous.push(NONE);
            self.next.push(NONE);
            self.lengths.push(length);
            self.bytes.push(passage.length);
            self.features.push(features(passage));
            self.terms.push(row, &passage.terms);
            self.pieces.push([]);
            self.set_pieces(row, &passage.pieces);
            self.sentences.set(row, passage.sentence.as_deref());
            self.alive.set(row, true);
            self.alive_count += 1;
            self.window_length += u64::from(length);
            self.total_length += u64::from(length);
            if row > first {
                self.link(row - 1, row);
            }
        }
        first
    }

    /// Takes over what may change in a passage: its vectors and features.
    pub(crate) fn update(&mut self, row: u32, passage: &IndexedPassage) {
        self.features[row as usize] = features(passage);
        self.set_pieces(row, &passage.pieces);
        self.sentences.set(row, passage.sentence.as_deref());
    }

    /// Empties a row; its links are cut.
    pub(crate) fn remove(&mut self, row: u32) {
        self.link(row, NONE);
        self.link(NONE, row);
        self.window_length -= u64::from(self.lengths[row as usize]);
        self.total_length -= u64::from(self.lengths[row as usize]);
        self.terms.remove(row);
        self.set_pieces(row, &[]);
        self.sentences.set(row, None);
        self.alive.set(row, false);
        self.alive_count -= 1;
    }

    /// Makes `after` the successor of `before`; either may be [`NONE`], which cuts the other's link.
    pub(crate) fn link(&mut self, before: u32, after: u32) {
        let (old_next, old_previous) = (self.next(before), self.previous(after));
        self.unlink(before, old_next);
        self.unlink(old_previous, after);
        if before != NONE && after != NONE {
            self.next[before as usize] = after;
            self.previous[after as usize] = before;
            self.window_length += self.pair_length(before, after);
        }
    }

    fn unlink(&mut self, before: u32, after: u32) {
        if before != NONE && after != NONE && self.next(before) == after {
            self.next[before as usize] = NONE;
            self.previous[after as usize] = NONE;
            self.window_length -= self.pair_length(before, after);
        }
    }

    /// What a link adds to the windows of its two rows.
    fn pair_length(&self, before: u32, after: u32) -> u64 {
        u64::from(self.length(before)) + u64::from(self.length(after))
    }

    /// Rows ever given out; some may be dead.
    pub(crate) fn rows(&self) -> usize {
        self.turns.len()
    }

    /// Rows that are alive.
    pub(crate) fn alive(&self) -> usize {
        self.alive_count
    }

    /// The rows that are alive, ascending.
    pub(crate) fn alive_rows(&self) -> impl Iterator<Item = u32> {
        self.alive.iter()
    }

    pub(crate) fn turn(&self, row: u32) -> u32 {
        self.turns[row as usize]
    }

    /// The session of a row: a column of its own, because whole postings are looked up in it.
    pub(crate) fn session(&self, row: u32) -> u32 {
        self.sessions[row as usize]
    }

    /// The row before in the session, or [`NONE`].
    pub(crate) fn previous(&self, row: u32) -> u32 {
        self.previous.get(row as usize).copied().unwrap_or(NONE)
    }

    /// The row after in the session, or [`NONE`].
    pub(crate) fn next(&self, row: u32) -> u32 {
        self.next.get(row as usize).copied().unwrap_or(NONE)
    }

    /// The rows before in the session, nearest first.
    pub(crate) fn before(&self, row: u32) -> impl Iterator<Item = u32> {
        let step = |&row: &u32| Some(self.previous(row)).filter(|&row| row != NONE);
        std::iter::successors(Some(row), step).skip(1)
    }

    /// The rows after in the session, nearest first.
    pub(crate) fn after(&self, row: u32) -> impl Iterator<Item = u32> {
        let step = |&row: &u32| Some(self.next(row)).filter(|&row| row != NONE);
        std::iter::successors(Some(row), step).skip(1)
    }

    /// Terms with repeats; 0 for [`NONE`].
    pub(crate) fn length(&self, row: u32) -> u32 {
        self.lengths.get(row as usize).copied().unwrap_or(0)
    }

    /// Bytes of text.
    pub(crate) fn text_bytes(&self, row: u32) -> u32 {
        self.bytes[row as usize]
    }

    pub(crate) fn features(&self, row: u32) -> &[f32; FEATURES] {
        &self.features[row as usize]
    }

    /// Total length of all passages.
    pub(crate) fn total_length(&self) -> u64 {
        self.total_length
    }

    /// Total length of all windows.
    pub(crate) fn window_length(&self) -> u64 {
        self.window_length
    }

    /// In how many rows a word piece occurs.
    pub(crate) fn piece_frequency(&self, piece: u32) -> u32 {
        self.piece_frequencies.get(&piece).copied().unwrap_or(0)
    }

    /// Numbers the living rows anew, by the key that they have; gives the new row by the old one, [`NONE`] where that was dead.
    pub(crate) fn compact_by<K: Ord>(&mut self, key: impl Fn(u32) -> K) -> Vec<u32> {
        let mut keep: Vec<u32> = self.alive.iter().collect();
        keep.sort_by_key(|&row| key(row));
        let mut renumbered = vec![NONE; self.rows()];
        for (new, &old) in (0..).zip(&keep) {
            renumbered[old as usize] = new;
        }
        let linked = |row: u32| renumbered.get(row as usize).copied().unwrap_or(NONE);
        self.previous = keep.iter().map(|&row| linked(self.previous(row))).collect();
        self.next = keep.iter().map(|&row| linked(self.next(row))).collect();
        pick(&mut self.turns, &keep);
        pick(&mut self.sessions, &keep);
        pick(&mut self.lengths, &keep);
        pick(&mut self.bytes, &keep);
        pick(&mut self.features, &keep);
        self.pieces.retain(&keep);
        self.terms.retain(&keep, &renumbered);
        self.sentences.retain(&keep);
        self.alive = (0..keep.len() as u32).collect();
        renumbered
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        let columns = [
            &self.turns,
            &self.sessions,
            &self.previous,
            &self.next,
            &self.lengths,
            &self.bytes,
        ];
        columns
            .iter()
            .map(|column| column.capacity() * 4)
            .sum::<usize>()
            + self.features.capacity() * size_of::<[f32; FEATURES]>()
            + self.terms.bytes()
            + self.sentences.bytes()
            + self.pieces.bytes()
            + self.piece_frequencies.allocation_size()
            + self.alive.bytes()
    }

    fn set_pieces(&mut self, row: u32, pieces: &[u32]) {
        let old = self.pieces.row(row as usize);
        if old == pieces {
            return;
        }
        for piece in old {
            if let Some(rows) = self.piece_frequencies.get_mut(piece) {
                *rows -= 1;
                if *rows == 0 {
                    self.piece_frequencies.remove(piece);
                }
            }
        }
        for &piece in pieces {
            *self.piece_frequencies.entry(piece).or_insert(0) += 1;
        }
        self.pieces.set(row as usize, pieces.iter().copied());
    }
}

/// The stored features; what an older recipe did not store is 0.
pub(crate) fn features(passage: &IndexedPassage) -> [f32; FEATURES] {
    let mut features = [0.0; FEATURES];
    features
        .iter_mut()
        .zip(&passage.features)
        .for_each(|(slot, &value)| *slot = value);
    features
}

fn pick<T: Copy>(column: &mut Vec<T>, keep: &[u32]) {
    *column = keep.iter().map(|&row| column[row as usize]).collect();
}
