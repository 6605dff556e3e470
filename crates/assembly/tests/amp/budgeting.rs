//! Items 64 to 81: the budget is a fact, whatever memory and prompt say.

use crate::{bytes, o200k, reason, said};
use memfleet_assembly::{
    Candidate, Count, Empty, Enclosure, Extent, Nonce, Options, Place, Reason, Template, Tokenizer,
    Trust, assemble,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const EXACT: [&str; 4] = ["o200k_base", "cl100k_base", "p50k_base", "r50k_base"];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "([a-zA-Z]{1,9}[ .,!?\n]{1,2}){0,30}",
        1 => any::<String>(),
        2 => "[\\p{Han}\\p{Hangul}\\p{Thai}\\p{Arabic}\\p{Cyrillic}\\p{Devanagari}。！? \n]{0,60}",
        1 => "( |\n|\t|a|1|=|<|\\||m1|\\[|\\]|👩\u{200D}👩|\u{300}){0,40}",
    ]
}

/// Assembles `cases` random blocks and holds what each adds to the text before it, counted on the whole, against its budget.
fn delta_holds(cases: u32, seed: u8) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let tokenizers = EXACT.map(|name| Tokenizer::named(name).unwrap());
    let nonce = Nonce::new("k3f9a1c7").unwrap();
    let strategy = (
        text(),
        prop::collection::vec(text(), 1..6),
        1usize..220,
        any::<u32>(),
    );
    let test = |(before, texts, budget, pick): (String, Vec<String>, usize, u32)| {
        let tokenizer = &tokenizers[pick as usize % 4];
        let candidates: Vec<Candidate<'_>> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| Candidate {
                session: at as u64 % 2,
                ..said("", at as u64, text)
            })
            .collect();
        let separator = ["", "\n\n", "\n", " "][(pick >> 2) as usize % 4];
        let options = Options {
            place: Place {
                before: &before,
                separator,
            },
            template: Template::shipped()[(pick >> 4) as usize % 2],
            enclosure: [
                Enclosure::Plain,
                Enclosure::Delimited(nonce),
                Enclosure::Datamarked(nonce),
            ][(pick >> 5) as usize % 3],
            cut_at_end: pick & 1024 == 0,
            minimum_useful_tokens: 4,
            ..Options::new(budget, tokenizer)
        };
        let block = assemble(&candidates, &options);
        prop_assert_eq!(block.tokens, tokenizer.count(&block.text));
        if block.items.is_empty() {
            prop_assert_eq!(&block.text, "");
            return Ok(());
        }
        let after = [&before, separator, &block.text].concat();
        let grown = tokenizer
            .count(&after)
            .saturating_sub(tokenizer.count(&before));
        prop_assert!(grown <= budget && block.tokens <= budget);
        prop_assert_eq!(grown, block.added_tokens);
        Ok(())
    };
    TestRunner::new_with_rng(config, rng)
        .run(&strategy, test)
        .unwrap();
}

#[test]
fn amp_064_what_a_block_adds_to_any_text_is_within_its_budget() {
    delta_holds(6_000, 1);
}

#[test]
#[ignore = "takes minutes: cargo test -p memfleet-assembly --test amp -- --ignored amp_064"]
fn amp_064_what_a_block_adds_to_any_text_is_within_its_budget_a_hundred_thousand_times() {
    delta_holds(100_000, 2);
}

#[test]
fn amp_064_the_frame_is_inside_the_budget() {
    let tokenizer = bytes();
    let options = |budget| Options {
        template: Template::cited(),
        enclosure: Enclosure::Delimited(Nonce::new("k3f9a1c7").unwrap()),
        place: Place::after("Hello."),
        ..Options::new(budget, &tokenizer)
    };
    let line = "[m1] Ann: tea\n".len();
    let exact = options(0).overhead() + line;
    assert_eq!(
        assemble(&[said("a", 0, "tea")], &options(exact)).added_tokens,
        exact
    );
    assert_eq!(
        assemble(&[said("a", 0, "tea")], &options(exact - 1)).text,
        ""
    );
}

#[test]
fn amp_067_a_budget_of_zero_adds_nothing() {
    let tokenizer = bytes();
    let options = Options {
        enclosure: Enclosure::Delimited(Nonce::new("k3f9a1c7").unwrap()),
        ..Options::new(0, &tokenizer)
    };
    let block = assemble(&[said("a", 0, "tea")], &options);
    assert_eq!(
        (block.text.as_str(), block.tokens, block.added_tokens),
        ("", 0, 0)
    );
    assert_eq!(block.trace.empty, Some(Empty::BudgetZero));
    assert_eq!(reason(&block, 0), Some(Reason::Budget));
}

#[test]
fn amp_070_where_not_even_a_beginning_fits_nothing_is_added() {
    let tokenizer = o200k();
    let long = "One sentence follows another. ".repeat(40);
    let options = Options {
        cut_at_end: true,
        ..Options::new(20, &tokenizer)
    };
    let block = assemble(&[said("a", 0, &long)], &options);
    assert_eq!(
        (block.text.as_str(), block.trace.empty),
        ("", Some(Empty::BudgetTooSmall))
    );
}

#[test]
fn amp_071_an_item_over_its_limit_is_cut_with_a_marker_and_says_so() {
    let tokenizer = o200k();
    let long = "One sentence follows another. ".repeat(40);
    let options = Options {
        cut_at_end: true,
        per_item_tokens: Some(60),
        ..Options::new(500, &tokenizer)
    };
    let block = assemble(&[said("a", 0, &long), said("b", 1, "short")], &options);
    let item = &block.items[0];
    assert!(item.truncated() && item.tokens <= 60 && item.tokens > 40);
    assert_eq!(
        item.original_tokens,
        tokenizer.count(&format!("Ann: {}\n", long.trim_end()))
    );
    assert!(
        block.text.contains("another. […]\nAnn: short"),
        "{}",
        block.text
    );
    assert!(!block.items[1].truncated());
    assert_eq!(block.items[1].original_tokens, block.items[1].tokens);
}

#[test]
fn amp_072_where_everything_is_too_long_the_beginning_of_the_best_is_shown() {
    let tokenizer = o200k();
    let long = [
        "One sentence follows another. ",
        "And so on, and so on, again. ",
    ]
    .map(|text| text.repeat(40));
    let options = Options {
        cut_at_end: true,
        ..Options::new(50, &tokenizer)
    };
    let block = assemble(&[said("a", 0, &long[0]), said("b", 1, &long[1])], &options);
    assert!(
        block.text.starts_with("Ann: One sentence") && block.text.ends_with("[…]"),
        "{}",
        block.text
    );
    assert!(block.tokens <= 50 && block.tokens > 30);
    assert_eq!(reason(&block, 1), Some(Reason::Budget));
}

#[test]
fn amp_073_a_cut_inside_of_code_closes_its_fence() {
    let tokenizer = o200k();
    let code = format!(
        "Look at this:\n```rust\n{}```\n",
        "let value = compute(value);\n".repeat(60)
    );
    let options = Options {
        cut_at_end: true,
        ..Options::new(80, &tokenizer)
    };
    let block = assemble(&[said("a", 0, &code)], &options);
    assert_eq!(block.text.matches("```").count(), 2, "{}", block.text);
    assert!(matches!(&block.items[0].extent, Extent::Excerpt(ranges) if ranges.len() == 1));
}

#[test]
fn amp_074_an_item_that_does_not_fit_makes_way_for_smaller_ones() {
    let tokenizer = bytes();
    let long = "word ".repeat(20);
    let candidates = [
        said("a", 0, &long),
        said("b", 1, "short"),
        said("c", 2, &long[..90]),
        said("d", 3, "last"),
    ];
    let block = assemble(&candidates, &Options::new(40, &tokenizer));
    assert_eq!(crate::shown(&block), [1, 3]);
}

/// Counts as another tokenizer does, and counts its calls and their bytes.
struct Watched {
    tokenizer: Tokenizer,
    calls: AtomicUsize,
    bytes: AtomicUsize,
}

impl Count for Watched {
    fn count(&self, text: &str) -> usize {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
        self.tokenizer.count(text)
    }
}

#[test]
fn amp_079_texts_are_counted_a_few_times_each_however_many_there_are() {
    for count in [50, 400, 1600] {
        let texts: Vec<String> = (0..count)
            .map(|at| {
                format!("In week {at} we met at the station and talked about plan {at}. ")
                    .repeat(1 + at % 4)
            })
            .collect();
        let candidates: Vec<Candidate<'_>> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| Candidate {
                session: at as u64 % 20,
                trust: Trust::Tool,
                ..said("", at as u64, text)
            })
            .collect();
        let watched = Arc::new(Watched {
            tokenizer: o200k(),
            calls: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        });
        let tokenizer = Tokenizer::counting("watched", watched.clone());
        let options = Options {
            template: Template::cited(),
            place: Place::after("Hello."),
            enclosure: Enclosure::Delimited(Nonce::new("k3f9a1c7").unwrap()),
            ..Options::new(count * 30, &tokenizer)
        };
        let block = assemble(&candidates, &options);
        assert!(block.items.len() > count / 3);
        let all: usize = texts.iter().map(|text| text.len() + 80).sum();
        let (calls, counted) = (
            watched.calls.load(Ordering::Relaxed),
            watched.bytes.load(Ordering::Relaxed),
        );
        assert!(calls <= 2 * count + 40, "{calls} calls for {count}");
        assert!(counted <= 5 * all, "{counted} bytes of {all}");
    }
}

#[test]
fn amp_080_the_tokens_of_a_block_are_those_of_a_recount() {
    for name in Tokenizer::NAMES {
        let tokenizer = Tokenizer::named(name).unwrap();
        let options = Options {
            template: Template::cited(),
            ..Options::new(300, &tokenizer)
        };
        let block = assemble(
            &[
                said("a", 0, "Wir fahren nach Wien. 世界"),
                said("b", 1, "tea"),
            ],
            &options,
        );
        assert_eq!(block.tokens, tokenizer.count(&block.text), "{name}");
        assert_eq!(block.items.len(), 2, "{name}");
    }
}
