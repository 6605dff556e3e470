//! z-scores: how far a value lies from the mean of its column, in standard deviations.

/// Weight of a typical deviation against the one that was measured, in values.
const PRIOR_VALUES: f32 = 8.0;

/// Mean and deviation of a column. Values that are not finite are missing: they take no part and score 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Standard {
    /// Values that were measured.
    count: f32,
    mean: f32,
    /// 1 / standard deviation; 0 where all values are equal.
    scale: f32,
}

/// Sums over a column, gathered value by value.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    count: usize,
    /// Distances are summed from the first value: they keep their precision however far the column lies from 0.
    origin: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    /// Adds a value, which must be finite.
    pub(crate) fn add(&mut self, value: f32) {
        self.add_times(value, 1);
    }

    /// Adds a value as often as it occurs.
    pub(crate) fn add_times(&mut self, value: f32, count: usize) {
        let value = f64::from(value);
        if self.count == 0 {
            self.origin = value;
        }
        let distance = value - self.origin;
        self.count += count;
        self.sum += count as f64 * distance;
        self.squares += count as f64 * distance * distance;
    }

    /// Adds all values of another column.
    pub(crate) fn absorb(&mut self, other: Self) {
        if self.count == 0 {
            *self = other;
            return;
        }
        let (count, shift) = (other.count as f64, other.origin - self.origin);
        self.count += other.count;
        self.sum += other.sum + count * shift;
        self.squares += other.squares + 2.0 * shift * other.sum + count * shift * shift;
    }

    /// Values that were added.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Mean and deviation of a column of `count` values, of which those that were not added are 0.
    pub(crate) fn standard(mut self, count: usize) -> Standard {
        let zeros = (count - self.count) as f64;
        self.sum -= zeros * self.origin;
        self.squares += zeros * self.origin * self.origin;
        let measured = count as f32;
        let count = count.max(1) as f64;
        let mean = self.origin + self.sum / count;
        let variance = self.squares / count - (self.sum / count).powi(2);
        let deviation = variance.max(0.0).sqrt();
        // Below this the spread is rounding of equal values.
        let flat = deviation <= 1e-6 * mean.abs().max(1e-3);
        let scale = if flat { 0.0 } else { deviation.recip() };
        Standard {
            count: measured,
            mean: mean as f32,
            scale: scale as f32,
        }
    }
}

impl Standard {
    /// Measures a column.
    pub(crate) fn of(values: impl Iterator<Item = f32>) -> Self {
        let mut moments = Moments::default();
        values
            .filter(|value| value.is_finite())
            .for_each(|value| moments.add(value));
        moments.standard(moments.count)
    }

    /// The same with its deviation drawn towards a typical one, as if [`PRIOR_VALUES`] more values had been
    /// measured. The spread of two or three values is mostly chance: without this any difference between
    /// two candidates, however small, would be a whole deviation.
    pub(crate) fn shrunk(self, typical_deviation: f32) -> Self {
        if self.scale == 0.0 || typical_deviation == 0.0 {
            return self;
        }
        let variance = self.scale.recip().powi(2);
        let prior = typical_deviation.powi(2);
        let variance = (self.count * variance + PRIOR_VALUES * prior) / (self.count + PRIOR_VALUES);
        Self {
            scale: variance.sqrt().recip(),
            ..self
        }
    }

    /// The z-score of a value; 0 when it is missing.
    pub(crate) fn score(self, value: f32) -> f32 {
        if value.is_finite() {
            (value - self.mean) * self.scale
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_values_score_zero() {
        let standard = Standard::of([0.1, 0.1, 0.1].into_iter());
        assert!(standard.score(0.1).abs() < f32::EPSILON);
        assert!(Standard::of(std::iter::empty()).score(3.0).abs() < f32::EPSILON);
    }

    #[test]
    fn missing_values_take_no_part() {
        let standard = Standard::of([1.0, f32::NAN, 3.0].into_iter());
        assert!((standard.score(3.0) - 1.0).abs() < 1e-6);
        assert!(standard.score(f32::NAN).abs() < f32::EPSILON);
    }

    #[test]
    fn values_that_were_not_added_count_as_zeros() {
        let mut moments = Moments::default();
        [3.0, 5.0].into_iter().for_each(|value| moments.add(value));
        assert_eq!(
            moments.standard(4),
            Standard::of([3.0, 0.0, 5.0, 0.0].into_iter())
        );
    }

    #[test]
    fn a_small_difference_between_few_values_is_little() {
        let of_two = Standard::of([0.46, 0.45].into_iter()).shrunk(0.06);
        assert!(of_two.score(0.46) < 0.15);
        let many = (0..600).map(|number| number as f32 / 600.0);
        let (plain, shrunk) = (Standard::of(many.clone()), Standard::of(many).shrunk(0.06));
        assert!((plain.score(0.9) - shrunk.score(0.9)).abs() < 0.02);
        assert!(
            Standard::of([0.5, 0.5].into_iter())
                .shrunk(0.06)
                .score(0.5)
                .abs()
                < f32::EPSILON
        );
    }

    proptest! {
        #[test]
        fn scores_are_finite_and_centred(values in prop::collection::vec(-1e6_f32..1e6, 1..50)) {
            let standard = Standard::of(values.iter().copied());
            let scores: Vec<f32> = values.iter().map(|&value| standard.score(value)).collect();
            prop_assert!(scores.iter().all(|score| score.is_finite()));
            prop_assert!(scores.iter().sum::<f32>().abs() < 0.1);
        }
    }
}
