//! What no caller may make slow: as many candidates as a request may have, made to be compared with each other. They are ignored, as an
//! unoptimised build says nothing of time: `cargo test --release -p memfleet-assembly --test amp -- --ignored sizes`.

use crate::{bytes, said};
use memfleet_assembly::{Candidate, Options, Prompt, Weights, assemble};
use std::ops::Range;
use std::time::{Duration, Instant};

/// As many as a request may have.
const CANDIDATES: usize = 5_000;
/// More than it takes on a slow machine.
const LIMIT: Duration = Duration::from_secs(3);
/// Room for all of them.
const BUDGET: usize = 1 << 30;

/// Words that differ from text to text, drawn from so many.
fn words(text: usize, count: usize, from: usize) -> String {
    let mut state = text as u64 + 1;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005) + 1_442_695_040_888_963_407;
        format!("w{} ", (state >> 33) as usize % from)
    };
    (0..count).map(|_| word()).collect()
}

fn texts(text: impl Fn(usize) -> String) -> Vec<String> {
    (0..CANDIDATES).map(text).collect()
}

fn ids() -> Vec<String> {
    (0..CANDIDATES)
        .map(|id| format!("memory-{id:029}"))
        .collect()
}

fn candidates<'a>(ids: &'a [String], texts: &'a [String]) -> Vec<Candidate<'a>> {
    let both = ids.iter().zip(texts).enumerate();
    // So far apart that none is a window of another.
    both.map(|(at, (id, text))| said(id, at as u64 * 10, text))
        .collect()
}

fn check<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    let took = start.elapsed();
    println!("{what}: {took:?}");
    assert!(took < LIMIT, "{what}: {took:?}");
    result
}

#[test]
#[ignore = "measures time, which only a release build can be asked for"]
fn sizes_diversity_among_texts_that_share_their_words() {
    let tokenizer = bytes();
    let ids = ids();
    for (what, from) in [
        ("of 600 words", 600),
        ("of 5,000 words", 5_000),
        ("of 10^6 words", 1_000_000),
    ] {
        let texts = texts(|text| words(text, 500, from));
        let candidates = candidates(&ids, &texts);
        let options = Options {
            weights: Weights::balanced(),
            max_items: Some(1_000),
            ..Options::new(BUDGET, &tokenizer)
        };
        let block = check(what, || assemble(&candidates, &options));
        assert_eq!(block.items.len(), 1_000);
    }
}

#[test]
#[ignore = "measures time, which only a release build can be asked for"]
fn sizes_texts_that_are_half_the_same() {
    let tokenizer = bytes();
    let ids = ids();
    let common = words(CANDIDATES, 150, 1_000_000);
    let texts = texts(|text| common.clone() + &words(text, 150, 1_000_000));
    let candidates = candidates(&ids, &texts);
    let options = Options::new(BUDGET, &tokenizer);
    let block = check("half the same", || assemble(&candidates, &options));
    assert_eq!(block.items.len(), CANDIDATES);
}

#[test]
#[ignore = "measures time, which only a release build can be asked for"]
fn sizes_windows_of_one_place() {
    let tokenizer = bytes();
    let ids = ids();
    let beginning = words(CANDIDATES, 20, 1_000_000);
    let beginnings = [
        ("that begin alike", beginning.as_str()),
        ("that differ", ""),
    ];
    for (what, beginning) in beginnings {
        let texts = texts(|text| beginning.to_owned() + &words(text, 280, 1_000_000));
        let mut candidates = candidates(&ids, &texts);
        candidates.iter_mut().for_each(|it| it.position = 0);
        let options = Options::new(BUDGET, &tokenizer);
        let block = check(what, || assemble(&candidates, &options));
        assert_eq!(block.items.len(), CANDIDATES);
    }
}

#[test]
#[ignore = "measures time, which only a release build can be asked for"]
fn sizes_candidates_that_are_derived_from_many() {
    let tokenizer = bytes();
    let ids = ids();
    let texts = texts(|text| words(text, 10, 1_000_000));
    let mut candidates = candidates(&ids, &texts);
    // None enters the block with all that it was derived from: one of these is nobody's id.
    let lineage = |of: Range<usize>| -> Vec<&str> {
        let ids = ids[of].iter().map(String::as_str);
        ids.chain(["nobody"]).collect()
    };
    let (first, last) = (lineage(0..50), lineage(CANDIDATES - 100..CANDIDATES));
    for (at, candidate) in candidates.iter_mut().enumerate() {
        candidate.lineage = if at % 2 == 0 { &last } else { &first };
    }
    let options = Options::new(BUDGET, &tokenizer);
    let block = check("derived from many", || assemble(&candidates, &options));
    assert_eq!(block.items.len(), CANDIDATES);
}

#[test]
#[ignore = "measures time, which only a release build can be asked for"]
fn sizes_duplicates_of_a_late_one() {
    let tokenizer = bytes();
    let ids = ids();
    let half = CANDIDATES / 2;
    let texts = texts(|text| words(text.min(half), 300, 1_000_000));
    let candidates = candidates(&ids, &texts);
    let options = Options::new(BUDGET, &tokenizer);
    let block = check("duplicates", || assemble(&candidates, &options));
    assert_eq!(block.items.len(), half + 1);
    let provenance = check("provenance", || block.provenance(&candidates));
    assert_eq!(provenance[half].merged_ids.len(), CANDIDATES - half - 1);
}

#[test]
#[ignore = "measures time, which only a release build can be asked for"]
fn sizes_a_prompt_of_many_messages() {
    let common = words(CANDIDATES, 150, 1_000_000);
    let texts = texts(|text| common.clone() + &words(text, 150, 1_000_000));
    let messages: Vec<String> = (0..CANDIDATES)
        .map(|text| common.clone() + &words(text + CANDIDATES, 80, 1_000_000))
        .collect();
    let prompt = check("reading the prompt", || {
        Prompt::of(messages.iter().map(String::as_str))
    });
    let contained = check("asking the prompt", || {
        texts.iter().filter(|text| prompt.contains(text)).count()
    });
    assert_eq!(contained, 0);
}
