//! Items 59 to 62, 75 to 77, 82 to 90 and 102: what enters a block, and in which order.

use crate::{bytes, day, o200k, reason, said, shown};
use memfleet_assembly::{
    Candidate, Empty, Extent, Granularity, Options, Order, Prompt, Reason, Validity, Weights,
    assemble,
};
use proptest::prelude::*;

#[expect(
    clippy::large_types_passed_by_value,
    reason = "candidates of tests are made where they are passed"
)]
fn relevant(relevance: f32, candidate: Candidate<'_>) -> Candidate<'_> {
    Candidate {
        relevance: Some(relevance),
        ..candidate
    }
}

fn only_relevance() -> Weights {
    Weights {
        relevance: 1.0,
        ..Weights::plain()
    }
}

#[test]
fn amp_059_items_below_the_threshold_are_dropped_one_by_one() {
    let tokenizer = bytes();
    let options = Options {
        threshold: Some(0.3),
        ..Options::new(500, &tokenizer)
    };
    let candidates = [
        relevant(0.9, said("a", 0, "one")),
        relevant(0.1, said("b", 1, "two")),
        relevant(0.5, said("c", 2, "three")),
    ];
    let block = assemble(&candidates, &options);
    assert_eq!(shown(&block), [0, 2]);
    assert_eq!(reason(&block, 1), Some(Reason::BelowThreshold));
    let none = assemble(&candidates[1..2], &options);
    assert_eq!(
        (none.trace.empty, none.trace.best_relevance),
        (Some(Empty::BelowThreshold), Some(0.1))
    );
}

#[test]
fn amp_060_the_threshold_is_never_held_against_a_score() {
    let tokenizer = bytes();
    let options = Options {
        threshold: Some(0.3),
        ..Options::new(500, &tokenizer)
    };
    let fused = Candidate {
        score: 0.016,
        ..said("a", 0, "one")
    };
    let block = assemble(&[fused], &options);
    assert_eq!((shown(&block), block.trace.unscored), (vec![0], 1));
}

#[test]
fn amp_062_the_threshold_itself_passes_and_numbers_that_are_none_are_counted() {
    let tokenizer = bytes();
    let options = Options {
        threshold: Some(0.3),
        ..Options::new(500, &tokenizer)
    };
    let wrong = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let mut candidates = vec![relevant(0.3, said("a", 0, "one"))];
    candidates.extend(wrong.map(|number| relevant(number, said("b", 1, "two"))));
    candidates.extend(wrong.map(|score| Candidate {
        score,
        ..said("c", 2, "three")
    }));
    let block = assemble(&candidates, &options);
    assert_eq!((shown(&block), block.trace.invalid_scores), (vec![0], 6));
    assert!((1..7).all(|at| reason(&block, at) == Some(Reason::InvalidScore)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn amp_075_nothing_is_packed_while_something_better_that_fits_is_left_out(
        items in prop::collection::vec(("[a-z]{1,40}", 0.0f32..1.0), 1..25), budget in 8usize..400,
    ) {
        let tokenizer = bytes();
        let candidates: Vec<Candidate<'_>> =
            items.iter().enumerate().map(|(at, (text, relevance))| relevant(*relevance, said("", at as u64, text))).collect();
        let options = Options { weights: only_relevance(), ..Options::new(budget, &tokenizer) };
        let block = assemble(&candidates, &options);
        for left in block.left_out.iter().filter(|left| left.reason == Reason::Budget) {
            let own = candidates[left.candidate].relevance;
            let better: usize =
                block.items.iter().filter(|item| candidates[item.candidate].relevance >= own).map(|item| item.tokens).sum();
            let line = format!("Ann: {}\n", candidates[left.candidate].text).len();
            // What has no date stands under a blank line.
            prop_assert!(better + line + 1 > budget);
        }
    }

    #[test]
    fn amp_087_any_order_of_the_input_gives_the_same_bytes(
        items in prop::collection::vec(("[a-z]{1,12}( [a-z]{1,9}){0,12}", 0u8..3, 0u32..3), 1..14), budget in 20usize..400, turn in 0usize..14, pick in 0u8..8,
    ) {
        let tokenizer = bytes();
        let ids: Vec<String> = (0..items.len()).map(|at| format!("m{at}")).collect();
        let mut candidates: Vec<Candidate<'_>> = items
            .iter()
            .zip(&ids)
            .map(|((text, score, on), id)| Candidate { score: f32::from(*score), event_time: Some(day(on + 1)), ..said(id, 0, text) })
            .collect();
        let orders = [Order::Rank, Order::Chronological, Order::BestLast, Order::Sandwich];
        let options = Options {
            weights: if pick & 4 == 0 { Weights::plain() } else { Weights::balanced() },
            order: orders[pick as usize % 4],
            ..Options::new(budget, &tokenizer)
        };
        let first = assemble(&candidates, &options).text;
        let middle = turn % candidates.len();
        candidates.rotate_left(middle);
        prop_assert_eq!(&assemble(&candidates, &options).text, &first);
        candidates.reverse();
        prop_assert_eq!(&assemble(&candidates, &options).text, &first);
    }
}

#[test]
fn amp_076_of_equals_the_newer_wins_whatever_the_sign_of_the_scores() {
    let tokenizer = bytes();
    for score in [-7.0, 0.0, 7.0] {
        let old = Candidate {
            score,
            event_time: Some(day(1)),
            ..said("a", 0, "the old one")
        };
        let new = Candidate {
            score,
            event_time: Some(day(20)),
            ..said("b", 1, "the new one")
        };
        for weights in [Weights::plain(), Weights::balanced()] {
            let options = Options {
                weights,
                max_items: Some(1),
                ..Options::new(500, &tokenizer)
            };
            assert_eq!(shown(&assemble(&[old, new], &options)), [1]);
        }
    }
}

#[test]
fn amp_076_recency_gains_with_its_weight_and_never_loses() {
    let tokenizer = bytes();
    let old = Candidate {
        event_time: Some(day(1)),
        ..relevant(0.8, said("a", 0, "the old one"))
    };
    let new = Candidate {
        event_time: Some(day(30)),
        ..relevant(0.7, said("b", 1, "the new one"))
    };
    let newer_wins = |recency: f64| {
        let weights = Weights {
            recency,
            half_life_days: 30.0,
            ..only_relevance()
        };
        let options = Options {
            weights,
            max_items: Some(1),
            as_of: Some(day(30)),
            ..Options::new(500, &tokenizer)
        };
        shown(&assemble(&[old, new], &options)) == [1]
    };
    let wins: Vec<bool> = (0..20)
        .map(|step| newer_wins(f64::from(step) * 0.05))
        .collect();
    assert!(!wins[0] && wins[19] && wins.is_sorted());
}

#[test]
fn amp_077_diversity_prefers_what_is_not_said_yet_and_fills_up_with_the_rest() {
    let tokenizer = bytes();
    let near = [
        "Ann plays the violin in a small quartet",
        "Ann plays the violin in a small orchestra",
        "Bob sails at weekends",
    ];
    let candidates = [
        relevant(0.9, said("a", 0, near[0])),
        relevant(0.88, said("b", 1, near[1])),
        relevant(0.7, said("c", 2, near[2])),
    ];
    let choose = |lambda: f64, most: usize| {
        let weights = Weights {
            lambda,
            ..only_relevance()
        };
        let options = Options {
            weights,
            max_items: Some(most),
            ..Options::new(500, &tokenizer)
        };
        shown(&assemble(&candidates, &options))
    };
    assert_eq!(choose(1.0, 2), [0, 1]);
    assert_eq!(choose(0.6, 2), [0, 2]);
    assert_eq!(choose(0.6, 3), [0, 1, 2]);
}

#[test]
fn amp_077_sessions_and_sources_have_their_caps() {
    let tokenizer = bytes();
    let texts = ["one", "two", "three", "four"];
    let candidates: Vec<Candidate<'_>> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| Candidate {
            session: at as u64 / 3,
            source: if at == 1 { "notes" } else { "chat" },
            ..said("", at as u64, text)
        })
        .collect();
    let by_session = assemble(
        &candidates,
        &Options {
            max_per_session: Some(2),
            ..Options::new(500, &tokenizer)
        },
    );
    assert_eq!(
        (shown(&by_session), reason(&by_session, 2)),
        (vec![0, 1, 3], Some(Reason::PerSessionCap))
    );
    let by_source = assemble(
        &candidates,
        &Options {
            max_per_source: Some(1),
            ..Options::new(500, &tokenizer)
        },
    );
    assert_eq!(
        (shown(&by_source), reason(&by_source, 2)),
        (vec![0, 1], Some(Reason::PerSourceCap))
    );
}

#[test]
fn amp_082_duplicates_appear_once_with_the_best_score_and_all_sources() {
    let tokenizer = bytes();
    let candidates = [
        Candidate {
            source: "graph",
            ..said("a", 2, "Caf\u{e9}  is\nopen")
        },
        Candidate {
            source: "vectors",
            ..said("b", 0, "Cafe\u{301} is open")
        },
        Candidate {
            source: "vectors",
            ..said("c", 1, "Café is open")
        },
    ];
    let block = assemble(&candidates, &Options::new(500, &tokenizer));
    assert_eq!(shown(&block), [1]);
    assert_eq!(reason(&block, 0), Some(Reason::Duplicate(1)));
    let provenance = &block.provenance(&candidates)[0];
    assert_eq!(provenance.sources, ["vectors", "graph"]);
    assert_eq!(provenance.merged_ids, ["c", "a"]);
    // Nor does a duplicate that would not fit lose its source.
    let tight = assemble(
        &candidates,
        &Options::new("\nAnn: Café is open\n".len() + 1, &tokenizer),
    );
    assert_eq!(tight.items[0].merged.len(), 2);
}

#[test]
fn amp_090_the_same_memory_from_two_systems_is_one() {
    let tokenizer = bytes();
    let candidates = [
        Candidate {
            source: "vectors",
            ..said("a", 0, "Ann moved to Rome in May")
        },
        Candidate {
            source: "keywords",
            ..said("a", 1, "… moved to Rome in May")
        },
    ];
    let block = assemble(&candidates, &Options::new(500, &tokenizer));
    assert_eq!(
        (shown(&block), reason(&block, 1)),
        (vec![0], Some(Reason::Duplicate(0)))
    );
    assert_eq!(
        block.provenance(&candidates)[0].sources,
        ["vectors", "keywords"]
    );
}

#[test]
fn amp_083_a_common_beginning_of_a_hundred_characters_is_no_duplicate() {
    let tokenizer = bytes();
    let beginning = "Minutes of the weekly meeting of the harbour committee, held in the large room on the first floor, as always. ";
    assert!(beginning.len() > 100);
    let texts = [
        format!("{beginning}The crane was sold."),
        format!("{beginning}A new quay was planned."),
    ];
    let candidates = [
        said("a", 0, &texts[0]),
        Candidate {
            session: 1,
            ..said("b", 1, &texts[1])
        },
    ];
    assert_eq!(
        shown(&assemble(&candidates, &Options::new(900, &tokenizer))),
        [0, 1]
    );
}

#[test]
fn amp_084_windows_of_one_document_do_not_repeat_each_other() {
    let tokenizer = bytes();
    let document = "The harbour has nine cranes, of which two are old. The town council wants to sell one of them this year. \
                    The market is held on Saturdays, and sells mostly fish, vegetables and old books. The hills begin behind it.";
    let candidates = [
        said("a", 0, &document[..150]),
        said("b", 1, &document[51..]),
    ];
    let block = assemble(&candidates, &Options::new(900, &tokenizer));
    assert_eq!(
        block.text.matches("wants to sell one of them").count(),
        1,
        "{}",
        block.text
    );
    assert!(block.text.contains("The hills begin"));
    assert_eq!(
        block.items[1].extent,
        Extent::Excerpt(std::iter::once(99..document.len() - 51).collect())
    );
}

#[test]
fn amp_085_a_fact_is_dropped_where_all_that_it_was_derived_from_is_shown() {
    let tokenizer = bytes();
    let fact = |position, lineage| Candidate {
        granularity: Granularity::Fact,
        lineage,
        ..said("f", position, "Ann lives in Rome")
    };
    let turns = [
        said("t1", 1, "I moved to Rome last May"),
        said("t2", 2, "and I like it there"),
    ];
    let options = Options::new(500, &tokenizer);
    for position in [0, 9] {
        let block = assemble(&[fact(position, &["t1"]), turns[0], turns[1]], &options);
        assert_eq!(shown(&block), [1, 2], "at {position}");
        assert_eq!(reason(&block, 0), Some(Reason::DerivedFromIncluded));
        assert_eq!(block.items[0].merged, [0]);
    }
    // It says more than the part of its origin that is shown.
    let partly = assemble(&[fact(0, &["t1", "t9"]), turns[0]], &options);
    assert_eq!(partly.items.len(), 2);
    // Two that name each other do not both go.
    let circle = assemble(
        &[
            Candidate {
                lineage: &["t1"],
                ..said("f", 0, "one")
            },
            Candidate {
                lineage: &["f"],
                ..said("t1", 1, "two")
            },
        ],
        &options,
    );
    assert_eq!(circle.items.len(), 1);
}

#[test]
fn amp_086_superseded_facts_are_left_out_or_labelled_with_their_interval() {
    let tokenizer = bytes();
    let valid = Validity {
        from: Some(day(1)),
        until: Some(day(9)),
    };
    let old = Candidate {
        granularity: Granularity::Fact,
        valid,
        superseded_by: Some("b"),
        ..said("a", 0, "Ann lives in Rome")
    };
    let unmarked = Candidate {
        superseded_by: None,
        ..old
    };
    let new = Candidate {
        granularity: Granularity::Fact,
        supersedes: &["a"],
        ..said("b", 1, "Ann lives in Wien")
    };
    let options = Options::new(500, &tokenizer);
    for old in [old, unmarked] {
        let block = assemble(&[old, new], &options);
        assert_eq!(
            (shown(&block), reason(&block, 0)),
            (vec![1], Some(Reason::Superseded))
        );
    }
    let history = assemble(
        &[old, new],
        &Options {
            include_superseded: true,
            ..options
        },
    );
    assert_eq!(
        history.text,
        "Ann [fact, superseded, 2023-05-01 to 2023-05-09]: Ann lives in Rome\nAnn [fact]: Ann lives in Wien"
    );
}

#[test]
fn amp_087_equals_go_by_score_then_time_then_id() {
    let tokenizer = bytes();
    let at = |id, score, on, text| Candidate {
        score,
        event_time: Some(day(on)),
        ..said(id, 0, text)
    };
    let candidates = [
        at("c", 1.0, 2, "one"),
        at("b", 1.0, 2, "two"),
        at("a", 1.0, 1, "three"),
        at("z", 2.0, 1, "four"),
    ];
    let block = assemble(
        &candidates,
        &Options {
            order: Order::Rank,
            ..Options::new(500, &tokenizer)
        },
    );
    assert_eq!(shown(&block), [3, 1, 0, 2]);
}

#[test]
fn amp_087_a_thousand_runs_on_several_threads_give_the_same_bytes() {
    let texts: Vec<String> = (0..40)
        .map(|at| format!("In week {at} we talked about plan {} again", at % 7))
        .collect();
    let run = || {
        let tokenizer = o200k();
        let candidates: Vec<Candidate<'_>> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| Candidate {
                score: (at % 5) as f32,
                ..said("", at as u64, text)
            })
            .collect();
        assemble(
            &candidates,
            &Options {
                weights: Weights::balanced(),
                ..Options::new(200, &tokenizer)
            },
        )
        .text
    };
    let first = run();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..250).for_each(|_| assert_eq!(run(), first)));
        }
    });
}

#[test]
fn amp_088_only_the_declared_date_depends_on_the_present() {
    let tokenizer = bytes();
    let text = |as_of| {
        let candidates = [
            Candidate {
                event_time: Some(day(3)),
                ..said("a", 0, "tea")
            },
            said("b", 1, "coffee"),
        ];
        assemble(
            &candidates,
            &Options {
                as_of,
                weights: Weights::balanced(),
                ..Options::new(500, &tokenizer)
            },
        )
        .text
    };
    assert_eq!(
        text(Some(day(20))),
        format!("as of 2023-05-20\n{}", text(None))
    );
    assert_eq!(text(Some(day(20))), text(Some(day(20))));
    assert_eq!(
        text(Some(day(20))).replace("05-20", "05-21"),
        text(Some(day(21)))
    );
}

#[test]
fn amp_089_items_stand_in_the_order_that_was_asked_for() {
    let tokenizer = bytes();
    let at = |session, position, score, text| Candidate {
        session,
        score,
        event_time: Some(day(session as u32 + 1)),
        ..said("", position, text)
    };
    let candidates = [
        at(0, 1, 4.0, "best"),
        at(0, 0, 1.0, "worst"),
        at(1, 0, 3.0, "second"),
        at(2, 0, 2.0, "third"),
    ];
    let order = |order| {
        shown(&assemble(
            &candidates,
            &Options {
                order,
                ..Options::new(500, &tokenizer)
            },
        ))
    };
    assert_eq!(order(Order::Rank), [0, 2, 3, 1]);
    assert_eq!(order(Order::Chronological), [1, 0, 2, 3]);
    assert_eq!(order(Order::BestLast), [3, 2, 1, 0]);
    assert_eq!(order(Order::Sandwich), [0, 3, 1, 2]);
}

#[test]
fn amp_102_what_the_prompt_says_already_is_left_out() {
    let tokenizer = bytes();
    let prompt = Prompt::of([
        "You are helpful.",
        "As I said: we moved the meeting to half past nine. Can you tell Bob?",
    ]);
    let candidates = [
        said("a", 0, "We moved the meeting to half past nine"),
        said("b", 1, "Bob is ill today"),
    ];
    let block = assemble(
        &candidates,
        &Options {
            prompt: Some(&prompt),
            ..Options::new(500, &tokenizer)
        },
    );
    assert_eq!(
        (shown(&block), reason(&block, 0)),
        (vec![1], Some(Reason::InPrompt))
    );
}

#[test]
fn what_the_caller_keeps_out_is_recorded_with_its_reason() {
    let tokenizer = bytes();
    let candidates = [
        Reason::CurrentSession,
        Reason::DerivedFromCurrent,
        Reason::RecencyFilter,
        Reason::Policy,
    ]
    .map(|reason| Candidate {
        excluded: Some(reason),
        ..said("", 0, "tea")
    });
    let block = assemble(&candidates, &Options::new(500, &tokenizer));
    assert_eq!(block.trace.empty, Some(Empty::AllLeftOut));
    for (at, candidate) in candidates.iter().enumerate() {
        assert_eq!(reason(&block, at), candidate.excluded);
    }
}

/// Two ways to say the same person's home, of which the second holds and is longer.
fn homes() -> [Candidate<'static>; 2] {
    [
        Candidate {
            successor: Some("new"),
            score: 2.0,
            ..said("old", 0, "I live in Rome.")
        },
        Candidate {
            score: 1.0,
            ..said(
                "new",
                1,
                "I live in Oslo since the spring of this year, near the harbour.",
            )
        },
    ]
}

#[test]
fn what_ended_enters_beside_what_holds_alone_at_any_budget() {
    let tokenizer = bytes();
    for budget in 0..300 {
        let block = assemble(&homes(), &Options::new(budget, &tokenizer));
        let shown = shown(&block);
        assert!(
            !shown.contains(&0) || shown.contains(&1),
            "{budget}: {shown:?}"
        );
        if shown.contains(&1) && !shown.contains(&0) {
            assert_eq!(reason(&block, 0), Some(Reason::Budget));
        }
    }
    let one = Options {
        max_items: Some(1),
        ..Options::new(500, &tokenizer)
    };
    assert_eq!(shown(&assemble(&homes(), &one)), [1]);
}

#[test]
fn successors_in_a_circle_or_of_no_candidate_keep_nothing_out() {
    let tokenizer = bytes();
    let [old, new] = homes();
    let circle = Candidate {
        successor: Some("old"),
        ..new
    };
    let options = Options::new(500, &tokenizer);
    assert_eq!(assemble(&[old, circle], &options).items.len(), 2);
    let strange = Candidate {
        successor: Some("elsewhere"),
        ..old
    };
    assert_eq!(assemble(&[strange], &options).items.len(), 1);
}
