//! How well a clustering agrees with labels.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;

/// Agreement of clusters with labels, each measure at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// How far a cluster holds one label only.
    pub homogeneity: f64,
    /// How far a label is in one cluster only.
    pub completeness: f64,
    /// Their harmonic mean (Rosenberg & Hirschberg 2007). Many small clusters do well by it.
    pub v_measure: f64,
    /// The share of pairs that are together or apart in both, corrected for chance (Hubert & Arabie 1985): 0 for what chance would do.
    pub adjusted_rand: f64,
}

/// Compares the cluster of each item with its label.
pub fn agreement<C: Eq + Hash, L: Eq + Hash>(items: &[(C, L)]) -> Agreement {
    let (mut clusters, mut labels, mut cells) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (cluster, label) in items {
        *clusters.entry(cluster).or_insert(0.0) += 1.0;
        *labels.entry(label).or_insert(0.0) += 1.0;
        *cells.entry((cluster, label)).or_insert(0.0) += 1.0;
    }
    let total = items.len() as f64;
    let conditional = |given: &dyn Fn(&(&C, &L)) -> f64| -> f64 {
        let parts = cells.iter();
        -parts
            .map(|(cell, count): (&(&C, &L), &f64)| count / total * (count / given(cell)).ln())
            .sum::<f64>()
    };
    let share = |conditional: f64, whole: f64| {
        if whole == 0.0 {
            1.0
        } else {
            1.0 - conditional / whole
        }
    };
    let homogeneity = share(
        conditional(&|(cluster, _)| clusters[cluster]),
        entropy(labels.values(), total),
    );
    let completeness = share(
        conditional(&|(_, label)| labels[label]),
        entropy(clusters.values(), total),
    );
    let sum = homogeneity + completeness;
    Agreement {
        homogeneity,
        completeness,
        v_measure: if sum > 0.0 {
            2.0 * homogeneity * completeness / sum
        } else {
            0.0
        },
        adjusted_rand: adjusted_rand(
            pairs(cells.values()),
            pairs(clusters.values()),
            pairs(labels.values()),
            pairs([&total]),
        ),
    }
}

fn entropy<'c>(counts: impl IntoIterator<Item = &'c f64>, total: f64) -> f64 {
    let shares = counts.into_iter().map(|count| count / total);
    -shares.map(|share| share * share.ln()).sum::<f64>()
}

fn pairs<'c>(counts: impl IntoIterator<Item = &'c f64>) -> f64 {
    counts
        .into_iter()
        .map(|count| count * (count - 1.0) / 2.0)
        .sum()
}

fn adjusted_rand(both: f64, clusters: f64, labels: f64, all: f64) -> f64 {
    if all == 0.0 {
        return 1.0;
    }
    let expected = clusters * labels / all;
    let most = f64::midpoint(clusters, labels);
    // Neither holds a pair, or both hold all.
    let is_trivial = (most - expected).abs() < f64::EPSILON;
    if is_trivial {
        1.0
    } else {
        (both - expected) / (most - expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(u32, u32)]) -> Agreement {
        agreement(pairs)
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 5e-4
    }

    #[test]
    fn the_same_parts_agree_whatever_they_are_called() {
        let all = of(&[(1, 7), (1, 7), (2, 5), (2, 5), (3, 6)]);
        assert!(is_near(all.v_measure, 1.0) && is_near(all.adjusted_rand, 1.0));
    }

    #[test]
    fn one_cluster_is_complete_and_single_items_are_homogeneous() {
        let one = of(&[(1, 1), (1, 1), (1, 2), (1, 2)]);
        assert!(is_near(one.completeness, 1.0) && is_near(one.homogeneity, 0.0));
        let single = of(&[(1, 1), (2, 1), (3, 2), (4, 2)]);
        assert!(is_near(single.homogeneity, 1.0) && is_near(single.completeness, 0.5));
        assert!(is_near(single.adjusted_rand, 0.0));
    }

    #[test]
    fn figures_are_those_of_the_literature() {
        // Labels 0 0 1 1, clusters 0 0 1 2.
        let split = of(&[(0, 0), (0, 0), (1, 1), (2, 1)]);
        assert!(is_near(split.v_measure, 0.8) && is_near(split.adjusted_rand, 0.5714));
    }

    #[test]
    fn nothing_agrees_with_nothing() {
        let none = of(&[]);
        assert!(is_near(none.homogeneity, 1.0) && is_near(none.adjusted_rand, 1.0));
    }
}
