//! A space as one search sees it: an index in memory, or an outline and what was read from the store for this search.

use crate::document::FEATURES;
use crate::excerpt::Excerpt;
use crate::index::{Eligible, Postings, SpaceIndex};

/// A space in a search. Several spaces are searched as one: document frequencies and z-scores are those of all together.
#[derive(Debug)]
pub struct Searched<'a> {
    /// The space.
    pub index: &'a SpaceIndex,
    /// Which of its turns may be found.
    pub eligible: Eligible,
    /// Words and vectors, where `index` is an outline.
    pub excerpt: Option<&'a Excerpt>,
}

impl<'a> Searched<'a> {
    /// The rows that hold a term.
    pub(crate) fn postings(&self, term: &str) -> Option<&'a Postings> {
        match self.excerpt {
            Some(excerpt) => excerpt.postings(term),
            None => self.index.passages().terms.postings(term),
        }
    }

    /// The row's vector, as far as it was read.
    pub(crate) fn sentence(&self, row: u32) -> Option<&'a [i8]> {
        match self.excerpt {
            Some(excerpt) => excerpt.passage(row)?.sentence.as_deref(),
            None => self.index.passages().sentences.get(row),
        }
    }

    /// What the row looks like; nothing of a row that was not read.
    pub(crate) fn features(&self, row: u32) -> [f32; FEATURES] {
        match self.excerpt {
            Some(excerpt) => excerpt
                .passage(row)
                .map_or([0.0; FEATURES], |it| it.features),
            None => *self.index.passages().features(row),
        }
    }

    /// 1 − highest cosine to one of the rows shortly before; NaN without a vector.
    pub(crate) fn novelty(&self, row: u32) -> f32 {
        match self.excerpt {
            Some(excerpt) => excerpt.passage(row).map_or(f32::NAN, |it| it.novelty),
            None => self.index.passages().sentences.novelty(row),
        }
    }

    /// In how many rows each distinct term of a row occurs.
    pub(crate) fn term_frequencies(&self, row: u32) -> Vec<f32> {
        match self.excerpt {
            Some(excerpt) => excerpt
                .passage(row)
                .map_or_else(Vec::new, |it| it.term_frequencies.clone()),
            None => {
                let frequencies = self.index.passages().terms.frequencies(row);
                frequencies.map(|rows| rows as f32).collect()
            }
        }
    }

    /// In how many rows a word piece occurs.
    pub(crate) fn piece_frequency(&self, piece: u32) -> f32 {
        match self.excerpt {
            Some(excerpt) => excerpt.piece_frequency(piece),
            None => self.index.passages().piece_frequency(piece) as f32,
        }
    }

    /// The sum of sentence vectors, and how many times that it stands for.
    pub(crate) fn sentence_sum(&self) -> (&'a [i64], f64) {
        match self.excerpt {
            Some(excerpt) => excerpt.sentence_sum(),
            None => (self.index.passages().sentences.sum(), 1.0),
        }
    }
}
