use std::collections::{BTreeSet, HashMap};

use memfleet_domain::derivation::Kind;
use proptest::prelude::*;

use super::*;
use crate::fixture::{derivation, id, index, search, texts, turn};

/// The places of the highest scores, best first; of equals the earlier.
fn best(scores: &[f32], most: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..scores.len()).collect();
    all.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    all.truncate(most);
    all
}

fn round(first: &[f32], likeness: Vec<f32>, kept: usize) -> Round {
    let mut round = Round {
        again: Again {
            kept,
            reach: 2 * kept,
            seeds: 1,
            likeness: 1.0,
            facts: 0.0,
        },
        facts: vec![0.0; first.len()],
        best_facts: vec![None; first.len()],
        kept: vec![0.0; first.len()],
        likeness,
    };
    round.keep(first, &best(first, first.len()));
    round
}

const TURNS: [(u32, &str, &str, &str); 4] = [
    (1, "a", "user", "my allotment has plum trees"),
    (2, "b", "user", "the rent went up again"),
    (3, "c", "user", "plum trees want sun"),
    (4, "d", "user", "she plays the oboe"),
];

#[test]
fn what_is_like_the_best_turn_comes_before_what_is_not() {
    let index =
        index(TURNS.map(|(number, session, speaker, text)| turn(number, session, speaker, text)));
    let weights = Weights {
        again: Again {
            kept: 1,
            reach: 100,
            seeds: 1,
            likeness: 5.0,
            facts: 0.0,
        },
        ..Weights::shipped()
    };
    let found = search(&index, "allotment", &texts(&TURNS), &weights);
    let order: Vec<_> = found.iter().take(2).map(|ranked| ranked.turn).collect();
    assert_eq!(order, [id(1), id(3)]);
}

#[test]
fn a_turn_names_the_fact_that_is_found_best() {
    let mut index = index([turn(4, "d", "user", "she plays it")]);
    let (oboe, rent) = (
        derivation(Kind::Fact, 5, &[4], "Ada plays the oboe"),
        derivation(Kind::Fact, 6, &[4], "Ada pays rent"),
    );
    index.derive(&oboe);
    index.derive(&rent);
    let texts: HashMap<u32, String> = [
        (400, "user: she plays it"),
        (550, "Ada: Ada plays the oboe"),
        (650, "Ada: Ada pays rent"),
    ]
    .map(|(number, text)| (number, text.to_owned()))
    .into();
    let found = search(&index, "oboe", &texts, &Weights::shipped());
    assert_eq!(found[0].fact, Some(oboe.id));
    index.withdraw(oboe.id);
    let found = search(&index, "oboe", &texts, &Weights::shipped());
    assert_eq!(found[0].fact, Some(rent.id));
}

proptest! {
    #[test]
    fn the_best_of_the_first_round_keep_their_places(
        pairs in prop::collection::vec((-1e3_f32..1e3, -3_f32..3.0), 1..40),
        kept in 0_usize..12,
    ) {
        let (first, likeness): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let round = round(&first, likeness, kept);
        let scores: Vec<f32> = (0..first.len()).map(|at| first[at] + round.added(at)).collect();
        prop_assert_eq!(best(&scores, kept), best(&first, kept));
        let within = |scores: &[f32]| BTreeSet::from_iter(best(scores, 2 * kept));
        prop_assert_eq!(within(&scores), within(&first));
    }
}
