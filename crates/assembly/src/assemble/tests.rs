//! What assembly promises, by example and by property.

use super::*;
use crate::{Enclosure, Extent, Nonce, SentenceScorer, Tokenizer, Trust};
use chrono::{DateTime, TimeZone, Utc};
use memfleet_language::{Analyzer, Language};
use proptest::prelude::*;
use std::sync::LazyLock;

fn day(day: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2023, 5, day, 13, 56, 0).unwrap()
}

fn turn<'a>(place: (u64, u64), speaker: &'a str, text: &'a str, score: f32) -> Candidate<'a> {
    let (session, position) = place;
    let event_time = Some(day(session as u32 + 1));
    Candidate {
        session,
        position,
        speaker,
        event_time,
        recorded_at: day(31),
        text,
        score,
        trust: Trust::User,
        ..Candidate::default()
    }
}

fn o200k() -> Tokenizer {
    Tokenizer::named("o200k_base").unwrap()
}

fn reason(block: &Block, candidate: usize) -> Option<Reason> {
    block
        .left_out
        .iter()
        .find(|left| left.candidate == candidate)
        .map(|left| left.reason)
}

#[test]
fn turns_stand_in_order_of_time_under_the_date_of_their_day() {
    let candidates = [
        turn((7, 4), "Melanie", "Great!\nAnd you?", 2.0),
        turn((7, 1), "Caroline", "I went to the group.", 1.0),
        turn((1, 9), "Melanie", "Hi.", 3.0),
    ];
    let tokenizer = o200k();
    let options = Options {
        enclosure: Enclosure::Delimited(Nonce::new("k3f9").unwrap()),
        ..Options::new(500, &tokenizer)
    };
    let block = assemble(&candidates, &options);
    assert_eq!(
        block.text,
        "<memory nonce=\"k3f9\">\n2023-05-02\nMelanie: Hi.\n2023-05-08\nCaroline: I went to the group.\n\
         Melanie: Great!\n And you?\n</memory nonce=\"k3f9\">"
    );
    assert_eq!(
        block
            .items
            .iter()
            .map(|item| item.candidate)
            .collect::<Vec<_>>(),
        [2, 1, 0]
    );
    assert_eq!(block.tokens, tokenizer.count(&block.text));
}

#[test]
fn headings_follow_the_time_zone_and_only_dates_have_them() {
    let candidates = [turn((0, 0), "A", "one", 3.0), turn((1, 0), "B", "two", 2.0)];
    let tokenizer = o200k();
    let kiritimati = Options {
        time_zone: chrono_tz::Pacific::Kiritimati,
        ..Options::new(500, &tokenizer)
    };
    let text = |candidates: &[Candidate<'_>]| assemble(candidates, &kiritimati).text;
    assert_eq!(text(&candidates), "2023-05-02\nA: one\n2023-05-03\nB: two");
    let undated = candidates.map(|candidate| Candidate {
        event_time: None,
        ..candidate
    });
    assert_eq!(text(&undated), "A: one\n\nB: two");
}

#[test]
fn sessions_without_a_date_stand_where_they_were_recorded() {
    let recorded = |day_of_may, candidate| Candidate {
        event_time: None,
        recorded_at: day(day_of_may),
        ..candidate
    };
    let candidates = [
        recorded(9, turn((0, 0), "A", "nine", 3.0)),
        turn((5, 0), "B", "six", 2.0),
        recorded(3, turn((7, 0), "C", "three", 1.0)),
    ];
    let tokenizer = o200k();
    let text = assemble(&candidates, &Options::new(500, &tokenizer)).text;
    assert_eq!(text, "C: three\n2023-05-06\nB: six\n\nA: nine");
}

#[test]
fn duplicates_blanks_and_scores_that_are_no_numbers_are_left_out_with_their_reason() {
    let candidates = [
        turn((0, 0), "A", "I like tea", 1.0),
        turn((1, 0), "A", "i like  tea", 2.0),
        turn((1, 1), "A", "\u{200B}\n", 3.0),
        turn((1, 2), "A", "nan", f32::NAN),
    ];
    let tokenizer = o200k();
    let block = assemble(&candidates, &Options::new(100, &tokenizer));
    assert_eq!(block.items.len(), 1);
    assert_eq!(reason(&block, 0), Some(Reason::Duplicate(1)));
    assert_eq!(reason(&block, 2), Some(Reason::Blank));
    assert_eq!(reason(&block, 3), Some(Reason::InvalidScore));
    let one = assemble(
        &candidates[..1],
        &Options {
            max_items: Some(0),
            ..Options::new(100, &tokenizer)
        },
    );
    assert_eq!(
        (one.text.as_str(), one.tokens, reason(&one, 0)),
        ("", 0, Some(Reason::MaxItems))
    );
}

#[test]
fn a_turn_that_does_not_fit_is_skipped_for_smaller_ones() {
    let long = "word ".repeat(100);
    let candidates = [
        turn((0, 0), "A", &long, 2.0),
        turn((0, 1), "A", "short", 1.0),
    ];
    let tokenizer = o200k();
    let block = assemble(&candidates, &Options::new(30, &tokenizer));
    assert_eq!(block.text, "2023-05-01\nA: short");
    assert_eq!(reason(&block, 0), Some(Reason::Budget));
    let capped = Options {
        per_item_tokens: Some(20),
        ..Options::new(1000, &tokenizer)
    };
    assert_eq!(
        reason(&assemble(&candidates, &capped), 0),
        Some(Reason::TooLong)
    );
}

#[test]
fn long_turns_are_cut_to_relevant_sentences_when_others_need_the_room_and_stay_whole_when_not() {
    let filler = "Here is one more sentence about nothing at all that matters. ".repeat(20);
    let long = format!("{filler}The violin was made in Cremona. {filler}");
    let analyzer = Analyzer::new(Language::English);
    let scorer = SentenceScorer::new(&analyzer, "Where was the violin made?", [long.as_str()]);
    let scores = scorer.score(&long, &memfleet_language::sentences(&long));
    let mut candidates = vec![Candidate {
        sentence_scores: Some(&scores),
        ..turn((0, 0), "A", &long, 9.0)
    }];
    let others: Vec<String> = (0..30)
        .map(|index| format!("Evidence number {index} is this short sentence."))
        .collect();
    candidates.extend(
        others
            .iter()
            .enumerate()
            .map(|(index, text)| turn((0, index as u64 + 1), "B", text, 1.0)),
    );
    let tokenizer = o200k();
    let block = assemble(&candidates, &Options::new(500, &tokenizer));
    assert!(matches!(&block.items[0].extent, Extent::Excerpt(ranges) if !ranges.is_empty()));
    assert!(block.text.contains("A: […] "), "{}", block.text);
    assert!(block.text.contains("Cremona"), "{}", block.text);
    assert!(block.items.len() > 20, "{}", block.text);
    let roomy = assemble(&candidates, &Options::new(5000, &tokenizer));
    assert_eq!(roomy.items[0].extent, Extent::Whole);
    let whole_only = assemble(
        &candidates,
        &Options {
            excerpts: false,
            ..Options::new(300, &tokenizer)
        },
    );
    assert!(
        whole_only
            .items
            .iter()
            .all(|item| item.extent == Extent::Whole)
    );
}

#[test]
fn nothing_is_rendered_without_candidates_or_budget() {
    let tokenizer = o200k();
    let options = Options {
        enclosure: Enclosure::Delimited(Nonce::new("k3f9").unwrap()),
        ..Options::new(10, &tokenizer)
    };
    let empty = assemble(&[], &options);
    assert_eq!(
        (empty.text.as_str(), empty.trace.empty),
        ("", Some(Empty::NoCandidates))
    );
    let block = assemble(
        &[turn((0, 0), "A", "one", 1.0)],
        &Options {
            budget_tokens: 0,
            ..options
        },
    );
    assert_eq!((block.text.as_str(), block.left_out.len()), ("", 1));
}

static TOKENIZERS: LazyLock<[Tokenizer; 6]> =
    LazyLock::new(|| Tokenizer::NAMES.map(|name| Tokenizer::named(name).unwrap()));

#[derive(Debug, Clone)]
struct Spoken {
    session: u64,
    position: u64,
    speaker: String,
    time: Option<i64>,
    text: String,
    score: f32,
}

fn spoken() -> impl Strategy<Value = Spoken> {
    let text = prop_oneof![
        4 => "([a-zA-Z]{1,9}[ .,!?\n]{1,2}){1,40}",
        1 => any::<String>(),
        1 => "[\\p{Han}\\p{Hangul}\\p{Thai}\\p{Arabic}。！? \n]{0,80}",
        1 => "(<\\|im_start\\|>|</memory nonce=\"n0nce\">|\r\n|\u{2028}|Bob: |👩\u{200D}👩|[\u{202E}\u{0}\u{1b} /-]){0,20}",
    ];
    let speaker = prop_oneof!["[A-Z][a-z]{2,8}", any::<String>(), "[/ \u{300}:\n]{0,3}"];
    let score = prop_oneof![9 => -5.0f32..5.0, 1 => any::<f32>()];
    let time = prop_oneof![4 => (1_600_000_000i64..1_700_000_000).prop_map(Some), 1 => Just(None), 1 => any::<i64>().prop_map(Some)];
    (0u64..5, 0u64..50, speaker, time, text, score).prop_map(
        |(session, position, speaker, time, text, score)| Spoken {
            session,
            position,
            speaker,
            time,
            text,
            score,
        },
    )
}

fn candidates<'a>(spoken: &'a [Spoken], scores: &'a [Vec<f32>]) -> Vec<Candidate<'a>> {
    let candidate = |(spoken, scores): (&'a Spoken, &'a Vec<f32>)| Candidate {
        session: spoken.session,
        position: spoken.position,
        speaker: &spoken.speaker,
        event_time: spoken
            .time
            .and_then(|seconds| DateTime::from_timestamp(seconds, 0)),
        recorded_at: day(31),
        text: &spoken.text,
        score: spoken.score,
        sentence_scores: (spoken.position % 3 > 0).then_some(scores.as_slice()),
        trust: Trust::User,
        ..Candidate::default()
    };
    spoken.iter().zip(scores).map(candidate).collect()
}

fn sentence_scores(spoken: &[Spoken]) -> Vec<Vec<f32>> {
    let scores = |spoken: &Spoken| {
        let count = memfleet_language::sentences(&spoken.text).len();
        (0..count).map(|index| (index * 7 % 5) as f32).collect()
    };
    spoken.iter().map(scores).collect()
}

fn options(tokenizer: &Tokenizer, budget: usize, pick: u32) -> Options<'_> {
    let choose = |bit: u32| pick >> bit & 1 == 1;
    Options {
        per_item_tokens: choose(0).then_some(40),
        max_items: choose(1).then_some(5),
        minimum_useful_tokens: if choose(2) { 24 } else { 0 },
        excerpts: choose(3),
        time_zone: if choose(4) {
            chrono_tz::Pacific::Kiritimati
        } else {
            chrono_tz::Tz::UTC
        },
        enclosure: if choose(5) {
            Enclosure::Delimited(Nonce::new("n0nce").unwrap())
        } else {
            Enclosure::Plain
        },
        ..Options::new(budget, tokenizer)
    }
}

/// What must hold of every block.
fn check(block: &Block, candidates: &[Candidate<'_>], options: &Options<'_>) {
    assert!(block.tokens <= options.budget_tokens);
    assert_eq!(block.tokens, options.tokenizer.count(&block.text));
    assert_eq!(block.text.is_empty(), block.items.is_empty());
    assert_eq!(block.items.len() + block.left_out.len(), candidates.len());
    let at_line_start = block
        .text
        .split('\n')
        .filter(|line| !line.is_empty() && !line.starts_with(' '));
    let dated = |line: &&str| line.len() >= 10 && !line.contains(": ") && line.contains('-');
    let enclosure = 2 * usize::from(options.enclosure.nonce().is_some());
    let speakers = at_line_start.filter(|line| !dated(line)).count();
    if !block.items.is_empty() {
        assert_eq!(speakers, block.items.len() + enclosure, "{}", block.text);
    }
    assert!(
        !block
            .text
            .contains(['\r', '\u{202E}', '\u{1b}', '\u{2028}'])
    );
    assert!(options.enclosure.nonce().is_none() || block.text.matches("n0nce").count() <= 2);
    for item in &block.items {
        let text = candidates[item.candidate].text;
        if let Extent::Excerpt(ranges) = &item.extent {
            assert!(
                !ranges.is_empty() && ranges.windows(2).all(|pair| pair[0].end < pair[1].start)
            );
            assert!(ranges.iter().all(|range| text.get(range.clone()).is_some()));
        }
        assert!(
            options
                .per_item_tokens
                .is_none_or(|most| item.tokens <= most)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn no_block_exceeds_its_budget_or_can_be_forged(
        spoken in prop::collection::vec(spoken(), 0..14),
        budget in prop_oneof![0usize..60, 0usize..400, 0usize..5000],
        pick in any::<u32>(),
    ) {
        let scores = sentence_scores(&spoken);
        let candidates = candidates(&spoken, &scores);
        let options = options(&TOKENIZERS[pick as usize % TOKENIZERS.len()], budget, pick >> 8);
        check(&assemble(&candidates, &options), &candidates, &options);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_order_of_the_input_does_not_matter(
        spoken in prop::collection::vec(spoken(), 0..10),
        budget in 0usize..600,
        pick in any::<u32>(),
    ) {
        let mut distinct = spoken;
        distinct.sort_by_key(|spoken| (spoken.session, spoken.position));
        distinct.dedup_by_key(|spoken| (spoken.session, spoken.position));
        let reversed: Vec<Spoken> = distinct.iter().rev().cloned().collect();
        let tokenizer = o200k();
        let options = options(&tokenizer, budget, pick);
        let forward = assemble(&candidates(&distinct, &sentence_scores(&distinct)), &options);
        let backward = assemble(&candidates(&reversed, &sentence_scores(&reversed)), &options);
        prop_assert_eq!(forward.text, backward.text);
    }

    #[test]
    fn whatever_fits_the_room_that_is_left_is_in_the_block(
        texts in prop::collection::vec("([a-z]{1,9} ){1,60}", 1..20),
        budget in 20usize..400,
    ) {
        let candidates: Vec<Candidate<'_>> =
            texts.iter().enumerate().map(|(index, text)| turn((0, index as u64), "A", text, -(index as f32))).collect();
        let tokenizer = o200k();
        let block = assemble(&candidates, &Options::new(budget, &tokenizer));
        for left in block.left_out.iter().filter(|left| left.reason == Reason::Budget) {
            let alone = tokenizer.count(&format!("A: {}\n", candidates[left.candidate].text.trim()));
            // The heading and the rounding of counts at line ends may take some tokens.
            prop_assert!(block.tokens + alone + 14 > budget);
        }
    }
}
