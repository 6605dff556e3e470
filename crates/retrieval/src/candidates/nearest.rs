//! The rows that come nearest to a query by sentence vector, and by the sum of that and window BM25, in a search that is too
//! large to compute every signal of every turn.
//!
//! Vectors are compared twice, as is usual with binary quantisation: the signs of all, then every byte of those that came
//! nearest. Spaces of some thousand rows are compared by every byte at once.

use std::ops::Range;

use rayon::prelude::*;

use super::Place;
use crate::dot::Query;
use crate::lexical::Lexical;
use crate::searched::Searched;
use crate::standard::{Moments, Standard};
use crate::top::Top;

/// The difference of a row that may not be found or has no vector.
const UNKNOWN: u16 = u16::MAX;

/// How many rows are compared by every byte. Rows lie far apart in memory: each costs as much as the signs of fifty.
pub(super) struct Effort {
    /// The nearest by signs: as many, or one in `one_in` where that is more.
    nearest: usize,
    one_in: usize,
    /// As many tell mean and deviation of all cosines.
    sample: usize,
    /// As many times more as are wanted, best by words and signs.
    spare: usize,
    /// Rows that a thread looks at at a time, a multiple of 64.
    part: usize,
}

/// Of the rows that every byte ranks among the first 1 in 500, one in 24 by signs holds 99 % (docs/adr/0007).
pub(super) const EFFORT: Effort = Effort {
    nearest: 4_096,
    one_in: 24,
    sample: 1_024,
    spare: 4,
    part: 32_768,
};

impl Effort {
    /// How many of these rows a store names that has the vectors itself.
    pub(super) fn of_store(&self, rows: usize, share: usize) -> usize {
        if rows <= self.nearest {
            rows
        } else {
            self.spare * share
        }
    }
}

/// The rows of two sources of the first stage, with the scores that they were chosen by, in no
/// order.
pub(super) struct NearestRows {
    pub(super) by_cosine: Vec<(f32, Place)>,
    pub(super) by_both: Vec<(f32, Place)>,
}

impl NearestRows {
    /// The rows of both; some may be in both.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let entries = self.by_cosine.iter().chain(&self.by_both);
        entries.map(|&(_, place)| place)
    }
}

/// The `share` best rows each by cosine and by the sum of cosine and words.
pub(super) fn nearest(
    spaces: &[Searched<'_>],
    vector: Option<&[i8]>,
    lexical: &Lexical,
    share: usize,
    effort: &Effort,
) -> NearestRows {
    let search = Search::new(spaces, vector, lexical, share, effort);
    let parts = search.parts(effort.part);
    let surveys: Vec<Survey> = parts.par_iter().map(|part| search.survey(part)).collect();
    let scale = Scale::of(&surveys, lexical.windows, effort);
    let chosen = parts.par_iter().zip(&surveys);
    let chosen: Vec<Chosen> = chosen
        .map(|(part, survey)| search.choose(part, survey, &scale))
        .collect();
    let mut all = search.nothing();
    chosen.into_iter().for_each(|part| all.absorb(part));
    let unsure: Vec<Place> = all.unsure.into_keys().collect();
    let cosines: Vec<f32> = unsure.par_iter().map(|&row| search.cosine(row)).collect();
    for (place, cosine) in unsure.into_iter().zip(cosines) {
        let sum = scale.sum(search.words(place), cosine);
        all.by_both.push(sum, place);
    }
    NearestRows {
        by_cosine: all.by_cosine.into_entries().collect(),
        by_both: all.by_both.into_entries().collect(),
    }
}

struct Search<'a> {
    spaces: &'a [Searched<'a>],
    lexical: &'a Lexical,
    query: Option<Query>,
    share: usize,
    /// Rows that may be `unsure`.
    spare: usize,
    /// One row in as many is part of the sample.
    one_in: usize,
}

/// Rows of a space, for one thread.
struct Part {
    space: usize,
    rows: Range<u32>,
}

/// What a look at the signs of a part tells.
struct Survey {
    /// By row: in how many signs it differs from the query.
    differences: Vec<u16>,
    /// By difference: how many rows.
    counts: Vec<usize>,
    /// Of the sample.
    cosines: Moments,
}

/// What the surveys say of all rows: which are near, and what a score is worth.
struct Scale {
    words: Standard,
    cosines: Standard,
    /// By difference: what it says of the cosine, in the same measure.
    guesses: Vec<f32>,
    /// Rows that differ in no more signs are compared by every byte.
    nearest: u16,
}

/// The best rows of some.
struct Chosen {
    by_cosine: Top<Place>,
    by_both: Top<Place>,
    /// Rows with a term that were not compared by every byte, best by words and signs.
    unsure: Top<Place>,
}

impl<'a> Search<'a> {
    fn new(
        spaces: &'a [Searched<'a>],
        vector: Option<&[i8]>,
        lexical: &'a Lexical,
        share: usize,
        effort: &Effort,
    ) -> Self {
        let rows: usize = spaces.iter().map(|space| space.eligible.rows()).sum();
        let all_are_near = rows <= effort.nearest;
        let one_in = if all_are_near {
            1
        } else {
            rows / effort.sample
        };
        Self {
            spaces,
            lexical,
            query: vector.map(Query::new),
            share,
            spare: effort.spare * share,
            one_in: one_in.max(1),
        }
    }

    fn nothing(&self) -> Chosen {
        Chosen {
            by_cosine: Top::new(self.share),
            by_both: Top::new(self.share),
            unsure: Top::new(self.spare),
        }
    }

    fn parts(&self, size: usize) -> Vec<Part> {
        let parts = |(space, searched): (usize, &Searched<'_>)| {
            let rows = searched.index.passages().rows() as u32;
            // What was found in a store is there as a whole.
            let size = searched.excerpt.map_or(size, |_| rows.max(1) as usize);
            let starts = (0..rows).step_by(size);
            starts.map(move |start| Part {
                space,
                rows: start..rows.min(start.saturating_add(size as u32)),
            })
        };
        self.spaces.iter().enumerate().flat_map(parts).collect()
    }

    fn survey(&self, part: &Part) -> Survey {
        let differences = self.differences(part);
        let mut counts = vec![0; self.query.as_ref().map_or(0, Query::len) + 1];
        for &difference in differences.iter().filter(|&&it| it != UNKNOWN) {
            counts[usize::from(difference)] += 1;
        }
        let mut cosines = self.sampled(part.space);
        let starts = part.rows.clone().step_by(self.one_in);
        for (start, differences) in starts.zip(differences.chunks(self.one_in)) {
            if let Some(at) = differences.iter().position(|&it| it != UNKNOWN) {
                cosines.add(self.cosine((part.space, start + at as u32)));
            }
        }
        Survey {
            differences,
            counts,
            cosines,
        }
    }

    /// The cosines of the sample of a space whose vectors are in a store.
    fn sampled(&self, space: usize) -> Moments {
        let Searched {
            index,
            eligible,
            excerpt,
        } = &self.spaces[space];
        let mut cosines = Moments::default();
        if let (Some(excerpt), Some(query)) = (excerpt, &self.query) {
            let comparable = |(_, vector): &(u32, &[i8])| vector.len() == query.len();
            let sample = excerpt.sample(index).filter(comparable);
            sample
                .filter(|&(row, _)| eligible.contains(row))
                .for_each(|(_, vector)| cosines.add(query.dot(vector) as f32));
        }
        cosines
    }

    /// By row of a part: in how many signs its vector differs from the query's, where it may be found.
    fn differences(&self, part: &Part) -> Vec<u16> {
        let Searched {
            index, eligible, ..
        } = &self.spaces[part.space];
        let sentences = &index.passages().sentences;
        let mut differences = vec![UNKNOWN; part.rows.len()];
        let comparable = |query: &&Query| query.len() == sentences.dimensions();
        if let Some(query) = self.query.as_ref().filter(comparable) {
            query.differences(sentences.signs(part.rows.clone()), &mut differences);
            let starts = part.rows.clone().step_by(64);
            for (start, differences) in starts.zip(differences.chunks_mut(64)) {
                let known = eligible.bits().word(start) & sentences.present().word(start);
                if known != u64::MAX {
                    let hidden = |&(at, _): &(usize, &mut u16)| known >> at & 1 == 0;
                    let differences = differences.iter_mut().enumerate();
                    differences.filter(hidden).for_each(|(_, it)| *it = UNKNOWN);
                }
            }
        }
        differences
    }

    fn choose(&self, part: &Part, survey: &Survey, scale: &Scale) -> Chosen {
        let mut chosen = self.nothing();
        let eligible = &self.spaces[part.space].eligible;
        let windows = &self.lexical.scores[part.space].window[part.rows.start as usize..];
        let rows = part.rows.clone().zip(&survey.differences).zip(windows);
        let mut near = self.found(part.space);
        let is_found = |row| !self.cosine((part.space, row)).is_nan();
        let in_store = self.spaces[part.space].excerpt.is_some();
        for ((row, &difference), &words) in rows {
            let place = (part.space, row);
            if in_store && is_found(row) {
                continue;
            }
            if difference <= scale.nearest {
                near.push(place);
            } else if words > 0.0 && eligible.contains(row) {
                chosen.unsure.push(scale.guess(words, difference), place);
            }
        }
        // A loop of its own: the processor waits for many rows at a time.
        let cosines: Vec<f32> = near.iter().map(|&row| self.cosine(row)).collect();
        for (place, cosine) in near.into_iter().zip(cosines) {
            chosen.by_cosine.push(cosine, place);
            let sum = scale.sum(self.words(place), cosine);
            chosen.by_both.push(sum, place);
        }
        chosen
    }

    /// What a store found near, and may be found.
    fn found(&self, space: usize) -> Vec<Place> {
        let Searched {
            eligible, excerpt, ..
        } = &self.spaces[space];
        let near = excerpt.iter().flat_map(|excerpt| excerpt.near());
        near.map(|(row, _)| row)
            .filter(|&row| eligible.contains(row))
            .map(|row| (space, row))
            .collect()
    }

    /// Window BM25.
    fn words(&self, (space, row): Place) -> f32 {
        self.lexical.scores[space].window[row as usize]
    }

    /// Cosine by every byte; NaN without a vector.
    fn cosine(&self, (space, row): Place) -> f32 {
        if let Some(excerpt) = self.spaces[space].excerpt {
            return excerpt.product(row);
        }
        let sentences = &self.spaces[space].index.passages().sentences;
        match (&self.query, sentences.get(row)) {
            (Some(query), Some(row)) if query.len() == row.len() => query.dot(row) as f32,
            _ => f32::NAN,
        }
    }
}

impl Scale {
    fn of(surveys: &[Survey], words: Standard, effort: &Effort) -> Self {
        let (mut counts, mut cosines) = (Vec::new(), Moments::default());
        for survey in surveys {
            counts.resize(survey.counts.len(), 0);
            let pairs = counts.iter_mut().zip(&survey.counts);
            pairs.for_each(|(all, count)| *all += count);
            cosines.absorb(survey.cosines);
        }
        let wanted = (counts.iter().sum::<usize>() / effort.one_in).max(effort.nearest);
        Self {
            words,
            cosines: cosines.standard(cosines.count()),
            guesses: guesses(&counts),
            nearest: up_to(&counts, wanted),
        }
    }

    /// A row without a vector stands where the average cosine does.
    fn sum(&self, words: f32, cosine: f32) -> f32 {
        self.words.score(words) + self.cosines.score(cosine)
    }

    /// The sum, as far as signs tell the cosine.
    fn guess(&self, words: f32, difference: u16) -> f32 {
        let guess = self.guesses.get(usize::from(difference));
        self.words.score(words) + guess.copied().unwrap_or(0.0)
    }
}

/// By difference, its distance from the mean of all in deviations: the fewer signs differ, the higher is the cosine.
fn guesses(counts: &[usize]) -> Vec<f32> {
    let differences = || (0..counts.len()).map(|difference| difference as f32);
    let mut moments = Moments::default();
    for (difference, &count) in differences().zip(counts) {
        moments.add_times(difference, count);
    }
    let standard = moments.standard(moments.count());
    differences().map(|it| -standard.score(it)).collect()
}

/// The difference up to which at least `wanted` rows are counted, or the highest.
fn up_to(counts: &[usize], wanted: usize) -> u16 {
    let mut sum = 0;
    let enough = counts.iter().position(|count| {
        sum += count;
        sum >= wanted
    });
    enough.map_or(UNKNOWN - 1, |at| at as u16)
}

impl Chosen {
    fn absorb(&mut self, other: Self) {
        self.by_cosine.absorb(other.by_cosine);
        self.by_both.absorb(other.by_both);
        self.unsure.absorb(other.unsure);
    }
}

#[cfg(test)]
mod tests;
