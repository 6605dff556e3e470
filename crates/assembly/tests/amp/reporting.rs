//! Items 91, 92, 95 to 97: what is reported of a block.

use crate::{bytes, day, reason, said};
use chrono::{DateTime, TimeDelta};
use memfleet_assembly::{Candidate, Granularity, Options, Reason, Trust, assemble};

#[test]
fn amp_091_every_item_says_where_it_comes_from() {
    let tokenizer = bytes();
    let long = "One sentence follows another. ".repeat(9);
    let candidate = Candidate {
        source: "notes",
        session: 7,
        event_time: Some(day(2) + TimeDelta::nanoseconds(1_234_567)),
        recorded_at: day(3),
        relevance: Some(0.8),
        granularity: Granularity::Summary,
        trust: Trust::Web,
        lineage: &["t1", "t2"],
        ..said("a", 4, &long)
    };
    let options = Options {
        cut_at_end: true,
        per_item_tokens: Some(120),
        ..Options::new(900, &tokenizer)
    };
    let block = assemble(&[candidate], &options);
    let of = &block.provenance(&[candidate])[0];
    assert_eq!((of.key, of.id, of.session, of.rank), (1, "a", 7, 0));
    assert_eq!(
        (of.sources.as_slice(), of.lineage),
        (["notes"].as_slice(), ["t1", "t2"].as_slice())
    );
    assert_eq!(
        (of.granularity, of.trust),
        (Granularity::Summary, Trust::Web)
    );
    assert_eq!((of.score, of.relevance), (-4.0, Some(0.8)));
    assert!(of.truncated && of.tokens <= 120 && of.original_tokens > 200);
    assert_eq!(of.content_hash, *blake3::hash(long.as_bytes()).as_bytes());
    // AMP item 96: milliseconds.
    assert_eq!(of.event_time, Some(day(2) + TimeDelta::milliseconds(1)));
    assert_eq!(of.recorded_at, day(3));
}

#[test]
fn amp_092_every_candidate_is_kept_or_has_a_reason_and_reasons_have_stable_names() {
    let tokenizer = bytes();
    let long = "word ".repeat(200);
    let candidates = [
        said("a", 0, "tea"),
        said("b", 1, " "),
        said("c", 2, "Tea"),
        said("d", 3, &long),
    ];
    let block = assemble(&candidates, &Options::new(100, &tokenizer));
    assert_eq!(block.items.len() + block.left_out.len(), candidates.len());
    let codes: Vec<&str> = block
        .left_out
        .iter()
        .map(|left| left.reason.code())
        .collect();
    assert_eq!(codes, ["BLANK", "DUPLICATE", "BUDGET"]);
    assert_eq!(reason(&block, 2), Some(Reason::Duplicate(0)));
}

#[test]
fn amp_095_an_empty_block_says_why_and_names_every_candidate() {
    let tokenizer = bytes();
    let block = assemble(&[said("a", 0, "tea")], &Options::new(3, &tokenizer));
    assert_eq!(
        block.trace.empty.map(memfleet_assembly::Empty::code),
        Some("BUDGET_TOO_SMALL")
    );
    assert!(block.provenance(&[said("a", 0, "tea")]).is_empty());
    assert_eq!(block.left_out.len(), 1);
}

#[test]
fn amp_096_dates_are_those_of_the_zone_and_years_that_nobody_meant_are_not_shown() {
    let tokenizer = bytes();
    let text = |time, time_zone| {
        let candidate = Candidate {
            event_time: Some(time),
            ..said("a", 0, "tea")
        };
        assemble(
            &[candidate],
            &Options {
                time_zone,
                ..Options::new(99, &tokenizer)
            },
        )
        .text
    };
    assert_eq!(text(day(1), chrono_tz::UTC), "2023-05-01\nAnn: tea");
    assert_eq!(
        text(day(1), chrono_tz::Pacific::Kiritimati),
        "2023-05-02\nAnn: tea"
    );
    for time in [
        DateTime::<chrono::Utc>::MIN_UTC,
        DateTime::<chrono::Utc>::MAX_UTC,
    ] {
        assert_eq!(text(time, chrono_tz::UTC), "Ann: tea");
    }
}

#[test]
fn amp_097_what_a_memory_says_of_its_source_is_no_provenance() {
    let tokenizer = bytes();
    let text = "{\"source\":\"bank\",\"memory_id\":\"z\"} [m7; source: bank] via bank";
    let candidates = [said("a", 0, text)];
    let block = assemble(&candidates, &Options::new(500, &tokenizer));
    let of = &block.provenance(&candidates)[0];
    assert_eq!((of.id, of.sources.as_slice()), ("a", [""].as_slice()));
}
