use std::collections::BTreeSet;

use chrono_tz::Tz;
use memfleet_domain::ids::Speaker;
use memfleet_ports::feed::Change;
use memfleet_ports::filter::TurnFilter;

use super::*;
use crate::fixture::{analyzer, everything, index, turn};
use crate::index::SpaceIndex;
use crate::{Plan, Weights, lexical};

const SHARE: usize = 20;
const QUERY: &str = "w3 w14 w15 w26";
const EVERYTHING: Effort = Effort {
    nearest: usize::MAX,
    ..EFFORT
};
const LITTLE: Effort = Effort {
    nearest: 100,
    one_in: 24,
    sample: 100,
    spare: 4,
    part: 640,
};

/// The sum of a vector a word, fixed by its letters.
fn vector(text: &str) -> Vec<i8> {
    let mut sums = [0_i32; 256];
    for word in text.split(' ') {
        let mut state = word.bytes().fold(1_u64, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        for sum in &mut sums {
            *sum += (random(&mut state) % 31) as i32 - 15;
        }
    }
    sums.iter().map(|&sum| sum.clamp(-127, 127) as i8).collect()
}

fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Turns of six words out of fifty, said by turns; every seventh has no vector.
fn space(turns: u32) -> SpaceIndex {
    let mut state = 7;
    index((0..turns).map(|number| {
        let words: Vec<String> = (0..6)
            .map(|_| format!("w{}", random(&mut state) % 50))
            .collect();
        let text = words.join(" ");
        let speaker = ["Ada", "Ben"][number as usize % 2];
        let mut turn = turn(number, &format!("s{}", number / 20), speaker, &text);
        let vector = (!number.is_multiple_of(7)).then(|| vector(&text));
        turn.passages[0].sentence = vector;
        turn
    }))
}

fn found(spaces: &[Searched<'_>], effort: &Effort) -> BTreeSet<Place> {
    let plan = Plan::new(QUERY, spaces, &analyzer(), None, Tz::UTC);
    let lexical = lexical(spaces, &plan, &Weights::shipped());
    let vector = vector(QUERY);
    let found = nearest(spaces, Some(&vector), &lexical, SHARE, effort);
    found.places().collect()
}

/// The same by a look at every byte of every row, without any short cut.
fn expected(spaces: &[Searched<'_>]) -> BTreeSet<Place> {
    let plan = Plan::new(QUERY, spaces, &analyzer(), None, Tz::UTC);
    let lexical = lexical(spaces, &plan, &Weights::shipped());
    let query = Query::new(&vector(QUERY));
    let mut rows = Vec::new();
    for (space, searched) in spaces.iter().enumerate() {
        for row in searched.eligible.iter() {
            let sentence = searched.index.passages().sentences.get(row);
            let cosine = sentence.map_or(f32::NAN, |sentence| query.dot(sentence) as f32);
            rows.push((
                (space, row),
                lexical.scores[space].window[row as usize],
                cosine,
            ));
        }
    }
    let words = Standard::of(rows.iter().map(|&(_, words, _)| words));
    let cosines = Standard::of(rows.iter().map(|&(_, _, cosine)| cosine));
    let best = |score: &dyn Fn(f32, f32) -> f32| -> Vec<Place> {
        let mut top = Top::new(SHARE);
        for &(place, words, cosine) in &rows {
            top.push(score(words, cosine), place);
        }
        top.into_keys().collect()
    };
    let by_cosine = best(&|_, cosine| cosine);
    let by_both = best(&|score, cosine| words.score(score) + cosines.score(cosine));
    by_cosine.into_iter().chain(by_both).collect()
}

#[test]
fn with_every_byte_of_every_row_nothing_is_missed() {
    let (first, second) = (space(300), space(500));
    let spaces = [everything(&first), everything(&second)];
    assert_eq!(found(&spaces, &EVERYTHING), expected(&spaces));
}

#[test]
fn signs_leave_nearly_all_of_the_best() {
    let index = space(3_000);
    let spaces = [everything(&index)];
    let expected = expected(&spaces);
    let found = found(&spaces, &LITTLE);
    let both = found.intersection(&expected).count();
    assert!(
        both * 10 >= expected.len() * 9,
        "{both} of {}",
        expected.len()
    );
}

#[test]
fn what_may_not_be_found_is_not() {
    let index = space(3_000);
    let filter = TurnFilter {
        speakers: vec![Speaker::new("Ben").unwrap()],
        ..TurnFilter::default()
    };
    let eligible = index.eligible(&filter, None);
    let spaces = [Searched {
        index: &index,
        eligible: eligible.clone(),
        excerpt: None,
    }];
    let found = found(&spaces, &LITTLE);
    assert!(found.len() >= SHARE);
    assert!(found.iter().all(|&(_, row)| eligible.contains(row)));
}

#[test]
fn vectors_of_another_length_are_passed_over() {
    let (mut index, other) = (SpaceIndex::new(), space(300));
    let mut short = turn(0, "s", "Ada", "w3 w14");
    short.passages[0].sentence = Some(vec![1; 16]);
    index.apply(Change::Stored(Box::new(short)));
    let spaces = [everything(&index), everything(&other)];
    let found = found(&spaces, &LITTLE);
    assert!(found.iter().filter(|place| place.0 == 1).count() >= SHARE);
}

#[test]
fn without_vectors_words_alone_rank() {
    let index = space(300);
    let spaces = [everything(&index)];
    let plan = Plan::new(QUERY, &spaces, &analyzer(), None, Tz::UTC);
    let lexical = lexical(&spaces, &plan, &Weights::shipped());
    let found: BTreeSet<Place> = nearest(&spaces, None, &lexical, SHARE, &LITTLE)
        .places()
        .collect();
    let best: BTreeSet<Place> = lexical.best.iter().copied().collect();
    assert_eq!(found.len(), SHARE);
    assert!(found.is_subset(&best));
}
