//! Cosines of int8 vectors, and the likeness to a class.

/// The mean of the `neighbours` best cosines to the examples; 0 without an example.
pub fn likeness(vector: &[i8], examples: &[Vec<i8>], neighbours: usize) -> f32 {
    let cosines = examples.iter().map(|example| cosine(vector, example));
    let mut cosines = cosines.collect::<Vec<_>>();
    cosines.sort_unstable_by(|left, right| right.total_cmp(left));
    cosines.truncate(neighbours);
    cosines.iter().sum::<f32>() / cosines.len().max(1) as f32
}

/// The cosine, in −1..=1; 0 where a vector is zero. Exact in integers up to the root, so that it is the same on every machine.
fn cosine(left: &[i8], right: &[i8]) -> f32 {
    let norms = dot(left, left) as f64 * dot(right, right) as f64;
    match norms > 0.0 {
        true => (dot(left, right) as f64 / norms.sqrt()) as f32,
        false => 0.0,
    }
}

fn dot(left: &[i8], right: &[i8]) -> i64 {
    let products = left.iter().zip(right);
    products
        .map(|(left, right)| i64::from(i32::from(*left) * i32::from(*right)))
        .sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_best_examples_count() {
        let examples = [vec![100, 0], vec![0, 100], vec![-100, 0]];
        assert!((likeness(&[50, 0], &examples, 1) - 1.0).abs() < 1e-6);
        assert!((likeness(&[50, 0], &examples, 2) - 0.5).abs() < 1e-6);
        assert!(likeness(&[50, 0], &[], 3).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn a_cosine_is_between_minus_one_and_one(left in prop::array::uniform8(any::<i8>()), right in prop::array::uniform8(any::<i8>())) {
            prop_assert!((-1.000_001..=1.000_001).contains(&cosine(&left, &right)));
        }
    }
}
