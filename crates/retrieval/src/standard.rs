//! z-scores: how far a value lies from the mean of its column, in standard deviations.

/// Mean and deviation of a column. Values that are not finite are missing: they take no part and score 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Standard {
    mean: f32,
    /// 1 / standard deviation; 0 where all values are equal.
    scale: f32,
}

impl Standard {
    /// Measures a column.
    pub(crate) fn of(values: impl Iterator<Item = f32>) -> Self {
        // Sums of distances from the first value keep their precision however far the column lies from 0.
        let mut finite = values
            .filter(|value| value.is_finite())
            .map(f64::from)
            .peekable();
        let Some(&origin) = finite.peek() else {
            return Self {
                mean: 0.0,
                scale: 0.0,
            };
        };
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for value in finite.map(|value| value - origin) {
            count += 1.0;
            sum += value;
            squares += value * value;
        }
        let mean = origin + sum / count;
        let deviation = (squares / count - (sum / count).powi(2)).max(0.0).sqrt();
        // Below this the spread is rounding of equal values.
        let flat = deviation <= 1e-6 * mean.abs().max(1e-3);
        let scale = if flat { 0.0 } else { deviation.recip() };
        Self {
            mean: mean as f32,
            scale: scale as f32,
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
