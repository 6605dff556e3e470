use std::collections::BTreeMap;

use chrono_tz::Tz;
use memfleet_ports::feed::{Change, IndexedPassage, IndexedTurn};
use memfleet_ports::filter::TurnFilter;
use proptest::prelude::*;

use super::*;
use crate::fixture::{analyzer, everything, index, search_spaces, turn, vectors};
use crate::{Eligible, Plan, Ranked, Searched, Weights, candidates, lexical, rank, wanted};

const WORDS: [&str; 12] = [
    "garden", "violin", "cellar", "train", "Porto", "letter", "winter", "bread", "Ada", "river",
    "lamp", "summer",
];

/// The same without words and vectors.
fn outlined(turn: &IndexedTurn) -> IndexedTurn {
    let lengths = |passage: &IndexedPassage| IndexedPassage {
        length: passage.length,
        words: passage.words,
        terms: Vec::new(),
        features: Vec::new(),
        sentence: None,
        pieces: Vec::new(),
    };
    IndexedTurn {
        passages: turn.passages.iter().map(lengths).collect(),
        ..turn.clone()
    }
}

/// Turns as a store that finds candidates would hold them.
struct Store {
    outline: SpaceIndex,
    passages: BTreeMap<u32, IndexedPassage>,
}

impl Store {
    fn of(turns: &[IndexedTurn]) -> Self {
        let mut outline = SpaceIndex::new();
        let mut passages = BTreeMap::new();
        for turn in turns {
            outline.apply(Change::Stored(Box::new(outlined(turn))));
            passages.extend((turn.first_passage..).zip(turn.passages.clone()));
        }
        Self { outline, passages }
    }

    fn read(&self, numbers: &[u32]) -> Vec<Option<IndexedPassage>> {
        let passage = |number| self.passages.get(number).cloned();
        numbers.iter().map(passage).collect()
    }

    fn postings(&self, term: &str) -> TermPassages {
        let counts = self.passages.iter().filter_map(|(&number, passage)| {
            let found = passage.terms.iter().find(|(other, _)| other == term);
            found.map(|&(_, count)| (number, count))
        });
        counts.collect()
    }

    fn near(&self, query: &[i8], limit: usize) -> Vec<Near> {
        let product = |vector: &[i8]| {
            let pairs = vector.iter().zip(query);
            pairs.map(|(&a, &b)| f32::from(a) * f32::from(b)).sum()
        };
        let passages = self.passages.iter();
        let mut near: Vec<Near> = passages
            .filter_map(|(&number, passage)| Some((number, product(passage.sentence.as_ref()?))))
            .collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(limit);
        near
    }

    /// The search that a retriever makes of an outline.
    fn search(&self, query: &str, filter: &TurnFilter, weights: &Weights) -> Vec<Ranked> {
        let outline = &self.outline;
        let numbers = Sample::numbers(outline);
        let sample = Sample::new(outline, &numbers, self.read(&numbers));
        let mut excerpt = Excerpt::new(outline, Arc::new(sample));
        let eligible = outline.eligible(filter, None);
        let plan = Plan::new(
            query,
            &searched(outline, &eligible, None),
            &analyzer(),
            None,
            Tz::UTC,
        );
        let plan = plan.with_vectors(Some(vectors(query)));
        let found = plan
            .words()
            .iter()
            .map(|term| self.postings(term))
            .collect();
        excerpt.set_postings(outline, plan.words(), found);
        let words = lexical(
            &searched(outline, &eligible, Some(&excerpt)),
            &plan,
            weights,
        );
        let limit = wanted(&searched(outline, &eligible, Some(&excerpt)), 0, weights);
        excerpt.add_near(outline, self.near(&vectors(query).sentence, limit));
        let chosen = candidates(
            &searched(outline, &eligible, Some(&excerpt)),
            &plan,
            words,
            weights,
        );
        let needed = chosen.needed()[0].clone();
        let missing = excerpt.missing(&needed);
        excerpt.set_passages(outline, &needed, self.read(&missing));
        let tokens = vec![None; needed.len()];
        rank(
            &searched(outline, &eligible, Some(&excerpt)),
            &plan,
            &chosen,
            &[tokens],
            weights,
            100,
        )
    }
}

fn searched<'a>(
    outline: &'a SpaceIndex,
    eligible: &Eligible,
    excerpt: Option<&'a Excerpt>,
) -> [Searched<'a>; 1] {
    [Searched {
        index: outline,
        eligible: eligible.clone(),
        excerpt,
    }]
}

fn told(choices: &[(usize, usize, usize)]) -> Vec<IndexedTurn> {
    let said = |(number, &(a, b, session)): (u32, &(usize, usize, usize))| {
        let text = format!(
            "The {} and the {} of {}",
            WORDS[a],
            WORDS[b],
            WORDS[(a * b) % 12]
        );
        let speaker = ["Ada", "Ben"][session % 2];
        let mut turn = turn(number, &format!("s{}", session % 5), speaker, &text);
        turn.first_passage = number;
        turn
    };
    (0..).zip(choices).map(said).collect()
}

fn assert_same(ours: &[Ranked], theirs: &[Ranked]) {
    assert_eq!(ours.len(), theirs.len());
    let scores: std::collections::HashMap<_, _> =
        theirs.iter().map(|one| (one.turn, one.score)).collect();
    let last = theirs.last().map_or(0.0, |one| one.score);
    for (one, other) in ours.iter().zip(theirs) {
        assert!((one.score - other.score).abs() < 1e-3, "{one:?} {other:?}");
        let same = scores.get(&one.turn).copied().unwrap_or(last);
        assert!((one.score - same).abs() < 1e-3, "{one:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whether every turn is a candidate or a first stage chooses.
    #[test]
    fn an_outline_with_its_store_ranks_as_the_whole_index(
        choices in prop::collection::vec((0_usize..12, 0_usize..12, 0_usize..9), 1..300),
        exhaustive in prop::sample::select(vec![0_usize, 900]),
    ) {
        let turns = told(&choices);
        let weights = Weights { exhaustive, candidates: 90, ..Weights::shipped() };
        let whole = index(turns.clone());
        let query = "When did Ada see the garden of the winter train?";
        let theirs = search_spaces(&[everything(&whole)], query, &std::collections::HashMap::new(), &weights);
        let ours = Store::of(&turns).search(query, &TurnFilter::default(), &weights);
        assert_same(&ours, &theirs);
    }
}

#[test]
fn a_sample_of_a_large_space_stands_for_all_of_it() {
    let choices: Vec<_> = (0..9_000).map(|n| (n % 12, n / 12 % 12, n % 9)).collect();
    let store = Store::of(&told(&choices));
    let numbers = Sample::numbers(&store.outline);
    assert!((2_500..3_500).contains(&numbers.len()));
    let sample = Arc::new(Sample::new(&store.outline, &numbers, store.read(&numbers)));
    assert!(!sample.is_old(&store.outline));
    let excerpt = Excerpt::new(&store.outline, sample);
    let whole = index(told(&choices));
    let piece = vectors("garden").tokens.pieces[0];
    let (sampled, all) = (
        excerpt.piece_frequency(piece),
        whole.passages().piece_frequency(piece) as f32,
    );
    assert!((sampled / all - 1.0).abs() < 0.2, "{sampled} of {all}");
    let weights = Weights::shipped();
    let ranked = store.search("the garden of the violin", &TurnFilter::default(), &weights);
    let best = |ranked: &Ranked| {
        let number = choices
            .iter()
            .enumerate()
            .position(|(n, _)| crate::fixture::id(n as u32) == ranked.turn);
        let (a, b, _) = choices[number.unwrap()];
        [a, b].contains(&0) || [a, b].contains(&1)
    };
    assert_eq!(ranked.len(), 100);
    assert!(ranked[..10].iter().all(best));
}
