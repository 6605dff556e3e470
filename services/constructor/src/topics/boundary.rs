//! Linear boundary between the sentences of a topic and everyday sentences, by regularised least
//! squares on sentence vectors (ADR 44).

use std::collections::BTreeMap;

/// Regularisation, chosen on the training sets.
const RIDGE: f32 = 0.03;

/// Shortest part of a direction, beside its length, that earlier directions do not explain.
const LEAST_PART: f32 = 1e-3;

/// Everyday sentences as rows of length 1, and the frame that every sentence is seen in: around
/// their mean, without the directions in which languages differ.
pub(super) struct EverydayVectors {
    frame: Frame,
    rows: Vec<Vec<f32>>,
    /// Products of all pairs of rows, row by row.
    products: Vec<f32>,
}

/// Weight of each component of a vector in the frame of everyday sentences.
pub(super) struct TopicBoundary(Vec<f32>);

struct Frame {
    mean: Vec<f32>,
    /// Orthogonal directions of length 1.
    of_languages: Vec<Vec<f32>>,
}

impl EverydayVectors {
    /// Frame and rows of sentences, each with its language.
    pub(super) fn new(sentences: &[(&str, Vec<i8>)]) -> Self {
        let frame = Frame::of(sentences);
        let rows = sentences.iter().map(|(_, sentence)| frame.seen(sentence));
        let rows: Vec<Vec<f32>> = rows.collect();
        let pairs = rows
            .iter()
            .flat_map(|one| rows.iter().map(move |other| (one, other)));
        let products = pairs.map(|(one, other)| product(one, other)).collect();
        Self {
            frame,
            rows,
            products,
        }
    }

    /// Boundary that has these sentences on one side, at 1, and everyday sentences on the other, at
    /// -1. Each side weighs as much as the other.
    pub(super) fn boundary(&self, topic: &[Vec<i8>]) -> TopicBoundary {
        let own: Vec<Vec<f32>> = topic.iter().map(|it| self.frame.seen(it)).collect();
        let rows: Vec<&Vec<f32>> = self.rows.iter().chain(&own).collect();
        let (everyday, size) = (self.rows.len(), rows.len());
        let weight = |row: usize| match row < everyday {
            true => (1.0 / everyday as f32).sqrt(),
            false => (1.0 / own.len() as f32).sqrt(),
        };
        let target = |row: usize| if row < everyday { -1.0 } else { 1.0 };
        let known = |row: usize, column: usize| match row.max(column) < everyday {
            true => self.products[row * everyday + column],
            false => product(rows[row], rows[column]),
        };
        let mut matrix = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let entry = weight(row) * weight(column) * known(row, column);
                matrix[row * size + column] = entry;
            }
            matrix[row * size + row] += RIDGE;
        }
        let right = (0..size).map(|row| weight(row) * target(row)).collect();
        let shares = solved(matrix, right);
        let mut weights = vec![0.0; self.frame.mean.len()];
        for (row, share) in shares.into_iter().enumerate() {
            let share = share * weight(row);
            let components = weights.iter_mut().zip(rows[row]);
            components.for_each(|(sum, component)| *sum += share * component);
        }
        TopicBoundary(weights)
    }

    /// Place of a sentence between everyday sentences, about 0, and those of the topic, about 1.
    pub(super) fn score(&self, boundary: &TopicBoundary, sentence: &[i8]) -> f32 {
        product(&boundary.0, &self.frame.seen(sentence))
    }
}

impl Frame {
    fn of(sentences: &[(&str, Vec<i8>)]) -> Self {
        let mut languages: BTreeMap<&str, Vec<Vec<f32>>> = BTreeMap::new();
        for (language, sentence) in sentences {
            let vector = unit(sentence.iter().map(|x| f32::from(*x)));
            languages.entry(language).or_default().push(vector);
        }
        let all: Vec<&Vec<f32>> = languages.values().flatten().collect();
        let mut frame = Self {
            mean: mean(&all),
            of_languages: Vec::new(),
        };
        for vectors in languages.values() {
            let of_language = mean(&vectors.iter().collect::<Vec<_>>());
            let whole = difference(&of_language, &frame.mean);
            let part = frame.without_languages(whole.clone());
            if length(&part) > LEAST_PART * length(&whole) {
                frame.of_languages.push(unit(part.into_iter()));
            }
        }
        frame
    }

    /// Sentence in the frame, with length 1.
    fn seen(&self, sentence: &[i8]) -> Vec<f32> {
        let vector = unit(sentence.iter().map(|x| f32::from(*x)));
        let part = self.without_languages(difference(&vector, &self.mean));
        unit(part.into_iter())
    }

    fn without_languages(&self, mut vector: Vec<f32>) -> Vec<f32> {
        for direction in &self.of_languages {
            let along = product(&vector, direction);
            let components = vector.iter_mut().zip(direction);
            components.for_each(|(x, of_direction)| *x -= along * of_direction);
        }
        vector
    }
}

fn mean(vectors: &[&Vec<f32>]) -> Vec<f32> {
    let dimensions = vectors.first().map_or(0, |vector| vector.len());
    let count = vectors.len().max(1) as f32;
    let mut mean = vec![0.0; dimensions];
    for vector in vectors {
        let components = mean.iter_mut().zip(*vector);
        components.for_each(|(sum, x)| *sum += x / count);
    }
    mean
}

fn difference(one: &[f32], other: &[f32]) -> Vec<f32> {
    one.iter()
        .zip(other)
        .map(|(one, other)| one - other)
        .collect()
}

fn length(vector: &[f32]) -> f32 {
    product(vector, vector).sqrt()
}

fn unit(vector: impl Iterator<Item = f32>) -> Vec<f32> {
    let vector: Vec<f32> = vector.collect();
    let length = length(&vector).max(f32::EPSILON);
    vector.iter().map(|x| x / length).collect()
}

fn product(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Solution of a system with a symmetric positive definite matrix, of which the lower triangle is
/// read, by the decomposition of Cholesky.
fn solved(mut matrix: Vec<f32>, mut right: Vec<f32>) -> Vec<f32> {
    let size = right.len();
    for row in 0..size {
        for column in 0..=row {
            let (above, below) = matrix.split_at(row * size);
            let own = &below[..column];
            let other = match column == row {
                true => own,
                false => &above[column * size..][..column],
            };
            let rest = below[column] - product(own, other);
            matrix[row * size + column] = match column == row {
                true => rest.max(f32::EPSILON).sqrt(),
                false => rest / matrix[column * size + column],
            };
        }
        let known = product(&matrix[row * size..][..row], &right);
        right[row] = (right[row] - known) / matrix[row * size + row];
    }
    for row in (0..size).rev() {
        let known = (row + 1..size).map(|below| matrix[below * size + row] * right[below]);
        let known: f32 = known.sum();
        right[row] = (right[row] - known) / matrix[row * size + row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved() {
        let matrix = vec![4.0, 0.0, 0.0, 2.0, 5.0, 0.0, 1.0, 3.0, 6.0];
        let solution = solved(matrix, vec![11.0, 21.0, 25.0]);
        let expected = [1.0, 2.0, 3.0];
        let pairs = solution.iter().zip(expected);
        assert!(
            pairs.clone().all(|(own, known)| (own - known).abs() < 1e-4),
            "{solution:?}"
        );
    }

    fn vector(components: &[(usize, i8)]) -> Vec<i8> {
        let mut vector = vec![0; 12];
        components
            .iter()
            .for_each(|(at, value)| vector[*at] = *value);
        vector
    }

    fn everyday() -> EverydayVectors {
        let sentences = (0..16).map(|number| match number < 8 {
            true => ("en", vector(&[(number, 90), (8, 20)])),
            false => ("de", vector(&[(number - 8, 80), (8, 20), (10, 60)])),
        });
        EverydayVectors::new(&sentences.collect::<Vec<_>>())
    }

    #[test]
    fn sentences_of_a_topic_are_on_its_side() {
        let everyday = everyday();
        let boundary = everyday.boundary(&[vector(&[(9, 90), (8, 20)])]);
        let score = |components: &[(usize, i8)]| everyday.score(&boundary, &vector(components));
        assert!(score(&[(9, 90), (8, 20)]) > 0.7);
        assert!(score(&[(9, 90), (8, 20), (0, 30)]) > 0.4);
        for place in 0..8 {
            assert!(score(&[(place, 90), (8, 20)]) < 0.1, "{place}");
        }
        // Texts that a model has no vector for are near neither side.
        assert!(everyday.score(&boundary, &[]).abs() < f32::EPSILON);
    }

    #[test]
    fn the_language_of_a_sentence_tells_nothing() {
        let everyday = everyday();
        let boundary = everyday.boundary(&[vector(&[(9, 90), (8, 20)])]);
        let score = |components: &[(usize, i8)]| everyday.score(&boundary, &vector(components));
        let (own, other) = (
            score(&[(9, 90), (8, 20)]),
            score(&[(9, 90), (8, 20), (10, 60)]),
        );
        assert!((own - other).abs() < 0.1, "{own} {other}");
    }
}
