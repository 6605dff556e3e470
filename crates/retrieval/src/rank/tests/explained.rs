//! Explanations agree with the ranking.

use std::collections::HashMap;

use chrono_tz::Tz;
use memfleet_ports::retriever::StageRank;
use proptest::prelude::*;

use super::{TALK, turns};
use crate::fixture::{analyzer, bare, everything, id, index, search_planned, texts, turn, vectors};
use crate::{Plan, Ranked, SpaceIndex, Weights};

const WORDS: [&str; 12] = [
    "grey", "cat", "train", "Porto", "refund", "shelter", "voucher", "spots", "late", "monday",
    "bread", "violin",
];

fn plan(index: &SpaceIndex, query: &str, explained: bool) -> Plan {
    let plan = Plan::new(query, &[everything(index)], &analyzer(), None, Tz::UTC);
    plan.with_vectors(Some(vectors(query))).explained(explained)
}

fn explained(
    index: &SpaceIndex,
    query: &str,
    texts: &HashMap<u32, String>,
    weights: &Weights,
) -> Vec<Ranked> {
    let plan = plan(index, query, true);
    search_planned(&[everything(index)], &plan, texts, weights)
}

/// Ranks of one list over all candidates, as they rank.
fn ranks<'r>(
    ranked: &'r [Ranked],
    of: impl Fn(&'r Ranked) -> &'r [StageRank],
) -> HashMap<&'r str, Vec<&'r StageRank>> {
    let mut lists: HashMap<&str, Vec<&StageRank>> = HashMap::new();
    for one in ranked.iter().flat_map(of) {
        lists.entry(&one.stage).or_default().push(one);
    }
    lists
        .values_mut()
        .for_each(|it| it.sort_by_key(|one| one.rank));
    lists
}

fn assert_consistent(ranked: &[Ranked]) -> Result<(), TestCaseError> {
    prop_assert!(ranked.windows(2).all(|pair| pair[0].score >= pair[1].score));
    for one in ranked {
        let sum: f32 = one.signals.iter().map(|it| it.contribution).sum();
        prop_assert!((sum - one.score).abs() < 1e-3, "{sum} is not {}", one.score);
    }
    let lists = ranks(ranked, |one| &one.sources);
    let stages = ranks(ranked, |one| &one.stages);
    for (name, list) in lists.iter().chain(&stages) {
        let places: Vec<u32> = list.iter().map(|one| one.rank).collect();
        let all: Vec<u32> = (1..).take(list.len()).collect();
        prop_assert_eq!(places, all, "{}", name);
        let falls = list.windows(2).all(|pair| pair[0].score >= pair[1].score);
        prop_assert!(falls, "{name}: {list:?}");
    }
    prop_assert!(stages.values().all(|list| list.len() == ranked.len()));
    Ok(())
}

#[test]
fn ranks_are_kept_only_where_the_plan_is_explained() {
    let index = index(turns());
    let (query, texts) = ("a grey cat", texts(&TALK));
    let spaces = [everything(&index)];
    let plain = plan(&index, query, false);
    let plain = search_planned(&spaces, &plain, &texts, &Weights::shipped());
    assert!(
        plain
            .iter()
            .all(|it| it.sources.is_empty() && it.stages.is_empty())
    );
    let explained = explained(&index, query, &texts, &Weights::shipped());
    let bare = |ranked: Vec<Ranked>| -> Vec<Ranked> {
        let bare = |it| Ranked {
            sources: Vec::new(),
            stages: Vec::new(),
            ..it
        };
        ranked.into_iter().map(bare).collect()
    };
    assert_eq!(bare(explained), plain);
}

#[test]
fn a_turn_is_named_by_the_source_that_found_it() {
    let cat = turn(0, "s1", "Ada", "A grey cat sat there.");
    let late = turn(1, "s2", "Ben", "My train was late.");
    let index = index([bare(cat), late]);
    let ranked = explained(&index, "grey cat", &HashMap::new(), &Weights::shipped());
    let of = |number| {
        let found = ranked.iter().find(|it| it.turn == id(number)).unwrap();
        let sources = found.sources.iter();
        let names = sources.map(|it| (it.stage.to_string(), it.rank));
        names.collect::<Vec<_>>()
    };
    let named = |list: &[(&str, u32)]| {
        let list = list.iter();
        let list = list.map(|&(name, rank)| (name.to_owned(), rank));
        list.collect::<Vec<_>>()
    };
    assert_eq!(of(0), named(&[("words", 1), ("both", 1)]));
    assert_eq!(of(1), named(&[("vectors", 1), ("both", 2)]));
}

#[test]
fn turns_of_a_named_day_are_listed_without_a_score() {
    let said = |number| turn(number, "s", "Ada", &format!("note {number} about bread"));
    let index = index((0..40).map(said));
    let weights = Weights {
        exhaustive: 4,
        candidates: 3,
        ..Weights::shipped()
    };
    let query = format!("note on {}", crate::fixture::day(7).format("%-d %B %Y"));
    let ranked = explained(&index, &query, &HashMap::new(), &weights);
    let day = ranked.iter().find(|it| it.turn == id(7)).unwrap();
    let listed = day.sources.iter().find(|it| it.stage == "day").unwrap();
    assert_eq!((listed.rank, listed.score), (1, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn explanation_of_any_search_agrees_with_its_ranking(
        said in prop::collection::vec(prop::collection::vec(prop::sample::select(&WORDS[..]), 1..9), 1..70),
        asked in prop::collection::vec(prop::sample::select(&WORDS[..]), 1..5),
        candidates in 3_usize..60,
        exhaustive in 0_usize..80,
    ) {
        let said: Vec<String> = said.iter().map(|words| words.join(" ")).collect();
        let talk: Vec<(u32, &str, &str, &str)> = (0_u32..)
            .zip(&said)
            .map(|(number, text)| (number, ["s1", "s2"][number as usize % 2], "Ada", text.as_str()))
            .collect();
        let index = index(talk.iter().map(|&(number, session, speaker, text)| {
            let turn = turn(number, session, speaker, text);
            if number % 7 == 3 { bare(turn) } else { turn }
        }));
        let weights = Weights { exhaustive, candidates, ..Weights::shipped() };
        let ranked = explained(&index, &asked.join(" "), &texts(&talk), &weights);
        assert_consistent(&ranked)?;
        // Where every turn is a candidate, one without vectors and without a word of the query is
        // named by no source.
        if exhaustive < talk.len() {
            prop_assert!(ranked.iter().all(|one| !one.sources.is_empty()));
        }
    }
}
