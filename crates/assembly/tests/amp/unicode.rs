//! Items 115 to 117: any script, any size.

use crate::{bytes, o200k, said};
use memfleet_assembly::{Candidate, Extent, Options, assemble};
use memfleet_language::{passages, sentences};
use proptest::prelude::*;

fn long_texts() -> [String; 5] {
    [
        "火曜日の会議は九時半に変更しました。アンナの電車が遅れるからです。".repeat(40),
        "星期二我们把会议改到九点半因为安娜的火车晚点".repeat(60),
        "Во вторник мы перенесли встречу. Поезд опаздывает! ".repeat(40),
        "👨\u{200D}👩\u{200D}👧\u{200D}👦🏳\u{FE0F}\u{200D}🌈".repeat(200),
        "วันอังคารเราเลื่อนการประชุมเป็นเก้าโมงครึ่ง".repeat(40),
    ]
}

#[test]
fn amp_116_long_texts_in_any_script_are_cut_within_limits_without_loss() {
    for text in long_texts() {
        for limit in [1, 7, 300, 700] {
            let parts = passages(&text, limit);
            let joined: String = parts.iter().map(|part| &text[part.clone()]).collect();
            assert_eq!(joined, text);
            assert!(
                parts
                    .iter()
                    .all(|part| text[part.clone()].chars().count() <= limit)
            );
        }
        let joined: String = sentences(&text)
            .into_iter()
            .map(|part| &text[part])
            .collect();
        assert_eq!(joined, text);
    }
}

#[test]
fn amp_116_excerpts_and_beginnings_in_any_script_are_parts_of_their_text() {
    let tokenizer = o200k();
    for text in long_texts() {
        let scores: Vec<f32> = (0..sentences(&text).len())
            .map(|at| (at * 7 % 5) as f32)
            .collect();
        for sentence_scores in [None, Some(scores.as_slice())] {
            let candidate = Candidate {
                sentence_scores,
                ..said("a", 0, &text)
            };
            let options = Options {
                cut_at_end: true,
                per_item_tokens: Some(90),
                ..Options::new(400, &tokenizer)
            };
            let block = assemble(&[candidate], &options);
            let Extent::Excerpt(ranges) = &block.items[0].extent else {
                panic!("{}", block.text)
            };
            for range in ranges {
                // Marks of directions and lone joiners aside, what is shown is the text to the byte.
                assert!(
                    block.text.contains(text[range.clone()].trim()),
                    "{}",
                    block.text
                );
            }
        }
    }
}

#[test]
fn amp_115_ten_million_signs_without_a_space_are_assembled() {
    let tokenizer = o200k();
    for unit in ["a", " ", "世", "\n", "\u{300}", "<|", "`"] {
        let text = unit.repeat(3_000_000 / unit.len());
        let options = Options {
            cut_at_end: true,
            ..Options::new(400, &tokenizer)
        };
        let block = assemble(&[said("a", 0, &text), said("b", 1, "tea")], &options);
        assert!(
            block.tokens <= 400 && block.text.contains("tea"),
            "{unit:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn amp_117_folding_that_changes_lengths_shifts_no_offset(text in "([İßﬁŉǰΐẞｶﾞ\u{130}]|[a-z]{1,6}|[ .!?\n]){1,80}") {
        let tokenizer = bytes();
        let scores: Vec<f32> = (0..sentences(&text).len()).map(|at| (at % 3) as f32).collect();
        let candidate = Candidate { sentence_scores: Some(&scores), ..said("a", 0, &text) };
        let options = Options { cut_at_end: true, per_item_tokens: Some(60), minimum_useful_tokens: 1, ..Options::new(120, &tokenizer) };
        let block = assemble(&[candidate], &options);
        for item in &block.items {
            if let Extent::Excerpt(ranges) = &item.extent {
                prop_assert!(ranges.iter().all(|range| text.get(range.clone()).is_some()));
            }
        }
    }
}
