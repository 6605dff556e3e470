//! Logistic regression: the probability of an outcome from some numbers, by Newton's method (iteratively reweighted least squares)
//! with a slight ridge, so that it has an answer for every sample.

/// Steps until the coefficients stand still, at most.
const STEPS: usize = 30;
/// A step below this changes nothing.
const STILL: f64 = 1e-6;
/// Penalty of a standardised coefficient, as a share of the weight of all examples.
const RIDGE: f64 = 1e-6;

/// Something that was seen.
#[derive(Debug, Clone, Copy)]
pub struct Example<'a> {
    /// Finite numbers, as many in every example.
    pub values: &'a [f32],
    /// Whether it came true.
    pub outcome: bool,
    /// How much it counts; not negative.
    pub weight: f64,
}

/// Log-odds that are linear in the values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Logistic {
    /// Log-odds where every value is 0.
    pub intercept: f64,
    /// Log-odds that one unit of each value adds.
    pub coefficients: Vec<f64>,
}

impl Logistic {
    /// The regression on `examples`; without any every coefficient is 0.
    pub fn fit(examples: &[Example<'_>]) -> Self {
        let scales = Scale::of_all(examples);
        let total: f64 = examples.iter().map(|example| example.weight).sum();
        // The intercept comes first.
        let mut solution = vec![0.0; scales.len() + 1];
        for _ in 0..STEPS {
            let step = newton(examples, &scales, &solution, RIDGE * total);
            solution.iter_mut().zip(&step).for_each(|(x, dx)| *x += dx);
            if step.iter().all(|dx| dx.abs() < STILL) {
                break;
            }
        }
        let coefficients = solution.iter().skip(1).zip(&scales);
        let coefficients: Vec<f64> = coefficients.map(|(x, scale)| x / scale.deviation).collect();
        let shift = coefficients.iter().zip(&scales);
        let shift: f64 = shift.map(|(x, scale)| x * scale.mean).sum();
        Self {
            intercept: solution[0] - shift,
            coefficients,
        }
    }

    /// The probability that these values come true.
    pub fn probability(&self, values: &[f32]) -> f64 {
        let added = self.coefficients.iter().zip(values);
        let added: f64 = added.map(|(x, &value)| x * f64::from(value)).sum();
        chance(self.intercept + added)
    }
}

/// Mean and deviation of a value.
struct Scale {
    mean: f64,
    deviation: f64,
}

impl Scale {
    fn of_all(examples: &[Example<'_>]) -> Vec<Self> {
        let width = examples.first().map_or(0, |example| example.values.len());
        (0..width).map(|at| Self::of(examples, at)).collect()
    }

    fn of(examples: &[Example<'_>], at: usize) -> Self {
        let (mut weight, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for example in examples {
            let value = f64::from(example.values[at]);
            weight += example.weight;
            sum += example.weight * value;
            squares += example.weight * value * value;
        }
        let mean = sum / f64::max(weight, f64::MIN_POSITIVE);
        let variance = squares / f64::max(weight, f64::MIN_POSITIVE) - mean * mean;
        let deviation = variance.max(0.0).sqrt();
        // A value that never changes tells nothing, whatever it is divided by.
        let deviation = if deviation > 1e-9 { deviation } else { 1.0 };
        Self { mean, deviation }
    }

    fn standardised(&self, value: f32) -> f64 {
        (f64::from(value) - self.mean) / self.deviation
    }
}

fn chance(log_odds: f64) -> f64 {
    (1.0 + (-log_odds).exp()).recip()
}

/// The step that Newton's method makes from `at`.
fn newton(examples: &[Example<'_>], scales: &[Scale], at: &[f64], ridge: f64) -> Vec<f64> {
    let width = at.len();
    let (mut gradient, mut curvature) = (vec![0.0; width], vec![vec![0.0; width]; width]);
    let mut row = vec![1.0; width];
    for example in examples {
        for ((slot, scale), &value) in row[1..].iter_mut().zip(scales).zip(example.values) {
            *slot = scale.standardised(value);
        }
        let log_odds: f64 = row.iter().zip(at).map(|(x, b)| x * b).sum();
        let expected = chance(log_odds);
        let missing = example.weight * (f64::from(u8::from(example.outcome)) - expected);
        let bend = example.weight * expected * (1.0 - expected);
        for i in 0..width {
            gradient[i] += missing * row[i];
            for j in 0..=i {
                curvature[i][j] += bend * row[i] * row[j];
            }
        }
    }
    for i in 1..width {
        gradient[i] -= ridge * at[i];
        curvature[i][i] += ridge;
    }
    solve(curvature, gradient)
}

/// x of A x = b for a symmetric A of which the lower half is given (Cholesky). What is undetermined stays 0.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let width = b.len();
    for i in 0..width {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| a[i][k] * a[j][k]).sum();
            let rest = a[i][j] - known;
            a[i][j] = match i == j {
                true => rest.max(0.0).sqrt(),
                false if a[j][j] > 0.0 => rest / a[j][j],
                false => 0.0,
            };
        }
    }
    let divided = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
    for i in 0..width {
        let known: f64 = (0..i).map(|k| a[i][k] * b[k]).sum();
        b[i] = divided(b[i] - known, a[i][i]);
    }
    for i in (0..width).rev() {
        let known: f64 = (i + 1..width).map(|k| a[k][i] * b[k]).sum();
        b[i] = divided(b[i] - known, a[i][i]);
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn examples(rows: &[(Vec<f32>, bool)]) -> Vec<Example<'_>> {
        rows.iter()
            .map(|(values, outcome)| Example {
                values,
                outcome: *outcome,
                weight: 1.0,
            })
            .collect()
    }

    #[test]
    fn coefficients_that_made_the_outcomes_are_found_again() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut row = || {
            let values = [rng.random_range(-2.0..2.0_f32), rng.random_range(0.0..9.0)];
            let odds = -1.0 + 2.0 * f64::from(values[0]) - 0.5 * f64::from(values[1]);
            let outcome = rng.random_bool(chance(odds));
            (values.to_vec(), outcome)
        };
        let rows: Vec<_> = (0..50_000).map(|_| row()).collect();
        let fitted = Logistic::fit(&examples(&rows));
        assert!((fitted.intercept + 1.0).abs() < 0.15, "{fitted:?}");
        assert!((fitted.coefficients[0] - 2.0).abs() < 0.1, "{fitted:?}");
        assert!((fitted.coefficients[1] + 0.5).abs() < 0.05, "{fitted:?}");
    }

    #[test]
    fn the_mean_of_the_probabilities_is_the_share_that_came_true() {
        let rows: Vec<_> = (0..40_u8)
            .map(|at| (vec![f32::from(at)], at % 4 == 0))
            .collect();
        let fitted = Logistic::fit(&examples(&rows));
        let sum: f64 = rows
            .iter()
            .map(|(values, _)| fitted.probability(values))
            .sum();
        assert!((sum / 40.0 - 0.25).abs() < 1e-3);
    }

    #[test]
    fn samples_that_determine_nothing_give_finite_coefficients() {
        let same = vec![(vec![3.0, 3.0], true); 3];
        let apart = [(vec![0.0, 1.0], false), (vec![1.0, 1.0], true)];
        for rows in [&[][..], &same, &apart] {
            let fitted = Logistic::fit(&examples(rows));
            assert!(fitted.intercept.is_finite(), "{fitted:?}");
            assert!(fitted.coefficients.iter().all(|x| x.is_finite()));
        }
    }

    #[test]
    fn an_example_of_weight_two_counts_like_two() {
        let rows = [
            (vec![0.0], false),
            (vec![0.0], true),
            (vec![1.0], true),
            (vec![1.0], false),
            (vec![1.0], true),
        ];
        let mut weighted = examples(&rows[..4]);
        weighted[2].weight = 2.0;
        let one = Logistic::fit(&weighted);
        let other = Logistic::fit(&examples(&rows));
        assert!((one.intercept - other.intercept).abs() < 1e-6);
        assert!((one.coefficients[0] - other.coefficients[0]).abs() < 1e-6);
    }
}
