//! What one search reads of a space that is not in memory: where the query's words are, what comes near it, and the candidates'
//! passages. The space's outline (a [`SpaceIndex`] of turns without words and vectors) says the rest. What only the whole space
//! could tell (how frequent words are, where vectors point) is told by a [`Sample`]; up to [`SAMPLE`] passages that is the space.

use std::sync::Arc;

use hashbrown::HashMap;
use memfleet_ports::candidates::{Near, TermPassages};
use memfleet_ports::feed::IndexedPassage;

use crate::document::FEATURES;
use crate::index::{Passages, Postings, SpaceIndex, features};

/// Passages of a sample, about; of a space of no more, all.
const SAMPLE: usize = 4_096;
/// One change in so many passages makes a sample old.
const PATIENCE: u64 = 50;

/// Some passages of a space, evenly spread.
#[derive(Debug, Default)]
pub struct Sample {
    passages: Passages,
    numbers: Vec<u32>,
    /// By number.
    rows: HashMap<u32, u32>,
    reached: u64,
}

impl Sample {
    /// The numbers of the passages to read for it.
    pub fn numbers(outline: &SpaceIndex) -> Vec<u32> {
        let one_in = outline.passages().alive().div_ceil(SAMPLE).max(1) as u32;
        let numbers = outline.all_rows().map(|row| outline.passage_number(row));
        // Not every so-manieth: those who speak take turns.
        let is_chosen =
            |number: &u32| (number.wrapping_mul(0x9e37_79b9) >> 12).is_multiple_of(one_in);
        numbers.filter(is_chosen).collect()
    }

    /// The sample with what was read.
    pub fn new(outline: &SpaceIndex, numbers: &[u32], found: Vec<Option<IndexedPassage>>) -> Self {
        let mut sample = Self {
            reached: outline.reached(),
            ..Self::default()
        };
        for (&number, passage) in numbers.iter().zip(found) {
            if let Some(passage) = passage {
                let row = sample.passages.push(0, 0, &[passage]);
                sample.numbers.push(number);
                sample.rows.insert(number, row);
            }
        }
        sample
    }

    /// Whether so much of the space has changed that it should be read anew.
    pub fn is_old(&self, outline: &SpaceIndex) -> bool {
        let changes = outline.reached() - self.reached.min(outline.reached());
        changes * PATIENCE > outline.passages().alive() as u64
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        self.passages.bytes() + self.numbers.capacity() * 4 + self.rows.allocation_size()
    }

    /// Its row of a passage whose vector it has.
    fn row(&self, number: u32) -> Option<u32> {
        let row = self.rows.get(&number).copied();
        row.filter(|&row| self.passages.sentences.has(row))
    }

    /// In how many of its passages a term is.
    fn term_frequency(&self, term: &str) -> usize {
        let postings = self.passages.terms.postings(term);
        postings.map_or(0, |postings| postings.iter().count())
    }
}

/// A passage that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) features: [f32; FEATURES],
    pub(crate) sentence: Option<Vec<i8>>,
    pub(crate) novelty: f32,
    /// In how many passages each of its terms is.
    pub(crate) term_frequencies: Vec<f32>,
}

/// What a search read of a space.
#[derive(Debug)]
pub struct Excerpt {
    sample: Arc<Sample>,
    /// For how many passages one of the sample stands.
    scale: f32,
    postings: HashMap<String, Postings>,
    /// Inner products with the query's vector, by row.
    products: HashMap<u32, f32>,
    /// By row.
    passages: HashMap<u32, Read>,
}

impl Excerpt {
    /// Nothing but the sample.
    pub fn new(outline: &SpaceIndex, sample: Arc<Sample>) -> Self {
        let sampled = sample.numbers.len().max(1) as f32;
        Self {
            scale: (outline.passages().alive() as f32 / sampled).max(1.0),
            sample,
            postings: HashMap::new(),
            products: HashMap::new(),
            passages: HashMap::new(),
        }
    }

    /// Takes where the terms are. What the outline does not know was stored since, or is gone.
    pub fn set_postings(
        &mut self,
        outline: &SpaceIndex,
        terms: Vec<String>,
        found: Vec<TermPassages>,
    ) {
        let in_rows = |found: TermPassages| {
            let row = |(number, count)| Some((outline.row(number)?, count));
            Postings::of(found.into_iter().filter_map(row).collect())
        };
        self.postings = terms
            .into_iter()
            .zip(found.into_iter().map(in_rows))
            .collect();
    }

    /// Takes passages that come near the query.
    pub fn add_near(&mut self, outline: &SpaceIndex, near: Vec<Near>) {
        let row = |(number, product)| Some((outline.row(number)?, product));
        self.products.extend(near.into_iter().filter_map(row));
    }

    /// Which of the passages the sample does not have.
    pub fn missing(&self, numbers: &[u32]) -> Vec<u32> {
        let is_missing = |&number: &u32| self.sample.row(number).is_none();
        numbers.iter().copied().filter(is_missing).collect()
    }

    /// Takes the passages that the second stage looks at: `found` are those that were [`Self::missing`].
    pub fn set_passages(
        &mut self,
        outline: &SpaceIndex,
        numbers: &[u32],
        found: Vec<Option<IndexedPassage>>,
    ) {
        let mut found = found.into_iter();
        for &number in numbers {
            let read = match self.sample.row(number) {
                Some(row) => Some(self.sampled(row)),
                None => found
                    .next()
                    .flatten()
                    .map(|passage| self.read(number, passage)),
            };
            if let (Some(row), Some(read)) = (outline.row(number), read) {
                self.passages.insert(row, read);
            }
        }
    }

    fn sampled(&self, row: u32) -> Read {
        let passages = &self.sample.passages;
        let frequencies = passages.terms.frequencies(row);
        Read {
            features: *passages.features(row),
            sentence: passages.sentences.get(row).map(<[i8]>::to_vec),
            novelty: passages.sentences.novelty(row),
            term_frequencies: frequencies.map(|rows| self.scale * rows as f32).collect(),
        }
    }

    fn read(&self, number: u32, passage: IndexedPassage) -> Read {
        let sample = &self.sample;
        let earlier = sample.numbers.partition_point(|&other| other < number) as u32;
        let novelty = |vector: &Vec<i8>| sample.passages.sentences.novelty_at(earlier, vector);
        let frequency = |term: &str| (self.scale * sample.term_frequency(term) as f32).max(1.0);
        Read {
            features: features(&passage),
            novelty: passage.sentence.as_ref().map_or(f32::NAN, novelty),
            term_frequencies: passage
                .terms
                .iter()
                .map(|(term, _)| frequency(term))
                .collect(),
            sentence: passage.sentence,
        }
    }

    pub(crate) fn postings(&self, term: &str) -> Option<&Postings> {
        self.postings.get(term)
    }

    pub(crate) fn passage(&self, row: u32) -> Option<&Read> {
        self.passages.get(&row)
    }

    /// NaN for a row that was not found near.
    pub(crate) fn product(&self, row: u32) -> f32 {
        self.products.get(&row).copied().unwrap_or(f32::NAN)
    }

    /// The rows that were found near, in no order.
    pub(crate) fn near(&self) -> impl Iterator<Item = (u32, f32)> {
        self.products.iter().map(|(&row, &product)| (row, product))
    }

    /// Rows of the outline that are in the sample, and their vectors.
    pub(crate) fn sample<'s>(
        &'s self,
        outline: &'s SpaceIndex,
    ) -> impl Iterator<Item = (u32, &'s [i8])> {
        let rows = (0..).zip(&self.sample.numbers);
        let sentences = &self.sample.passages.sentences;
        rows.filter_map(move |(row, &number)| Some((outline.row(number)?, sentences.get(row)?)))
    }

    pub(crate) fn piece_frequency(&self, piece: u32) -> f32 {
        self.scale * self.sample.passages.piece_frequency(piece) as f32
    }

    pub(crate) fn sentence_sum(&self) -> (&[i64], f64) {
        (self.sample.passages.sentences.sum(), f64::from(self.scale))
    }
}

#[cfg(test)]
mod tests;
