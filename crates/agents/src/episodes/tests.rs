use super::text::{HEAD, TITLE};
use super::*;
use chrono::{DateTime, TimeDelta};
use proptest::prelude::*;

fn said(role: Role, text: &str) -> Said<'_> {
    Said {
        role,
        text,
        time: None,
        vector: None,
    }
}

fn cut(turns: &[Said<'_>]) -> Vec<(Range<usize>, Option<Trigger>)> {
    let runs = runs(turns, Language::English);
    runs.into_iter()
        .map(|run| (run.turns, run.trigger))
        .collect()
}

#[test]
fn a_new_matter_of_the_user_opens_a_run_and_a_follow_up_does_not() {
    let turns = [
        said(Role::User, "How do I prune an apple tree?"),
        said(Role::Assistant, "In late winter, with sharp shears."),
        said(Role::User, "Thanks! What about cherries?"),
        said(Role::Assistant, "In summer, after the harvest."),
        said(Role::User, "My landlord raised the rent."),
        said(Role::Assistant, "By how much?"),
    ];
    assert_eq!(
        cut(&turns),
        [(0..4, Some(Trigger::TopicShift)), (4..6, None)]
    );
}

#[test]
fn a_request_ends_the_run_after_its_answer() {
    let turns = [
        said(Role::User, "We planned the trip."),
        said(Role::User, "And now let us sum up."),
        said(Role::Assistant, "You leave on Friday."),
        said(Role::User, "And then?"),
    ];
    assert_eq!(cut(&turns)[0], (0..3, Some(Trigger::Request)));
}

#[test]
fn a_pause_and_a_full_window_end_a_run() {
    let start = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    let at = |hours| Said {
        time: Some(start + TimeDelta::hours(hours)),
        ..said(Role::User, "and more")
    };
    assert_eq!(
        cut(&[at(0), at(1), at(9)]),
        [(0..2, Some(Trigger::Pause)), (2..3, None)]
    );
    let long = vec![said(Role::User, "and more"); WINDOW + 1];
    assert_eq!(cut(&long)[0], (0..WINDOW, Some(Trigger::Saturation)));
}

#[test]
fn among_people_a_run_ends_where_the_meaning_drifts() {
    let vectors = |at: usize| -> &'static [i8] { if at < 8 { &[100, 5] } else { &[5, 100] } };
    let turns: Vec<Said<'_>> = (0..16)
        .map(|at| Said {
            vector: Some(vectors(at)),
            ..said(Role::User, "well")
        })
        .collect();
    assert_eq!(
        cut(&turns),
        [(0..8, Some(Trigger::TopicShift)), (8..16, None)]
    );
}

#[test]
fn a_head_leaves_code_out_and_ends_with_a_sentence() {
    let text = format!(
        "My loop fails. ```for (;;) {{}}``` Why? {}",
        "More. ".repeat(80)
    );
    let head = head(&text);
    assert!(head.starts_with("My loop fails. Why? More."));
    assert!(head.ends_with("More.") && head.chars().count() <= HEAD);
    assert_eq!(title(&head), "My loop fails.");
    assert_eq!(super::head("```only()```"), "```only()```");
}

#[test]
fn central_sentences_stand_for_all_and_repeat_nothing() {
    let vectors: [&[i8]; 4] = [&[100, 0], &[100, 1], &[70, 70], &[0, -100]];
    assert_eq!(central(&vectors, 2), [0, 2]);
    assert_eq!(central(&[], 3), Vec::<usize>::new());
}

proptest! {
    #[test]
    fn runs_cover_a_session_without_gaps(texts in prop::collection::vec(("\\PC{0,20}", any::<bool>(), any::<[i8; 3]>()), 0..90)) {
        let turns: Vec<Said<'_>> = texts
            .iter()
            .map(|(text, assistant, vector)| Said {
                vector: Some(vector),
                ..said(if *assistant { Role::Assistant } else { Role::User }, text)
            })
            .collect();
        let runs = runs(&turns, Language::English);
        let mut end = 0;
        for run in &runs {
            prop_assert_eq!(run.turns.start, end);
            prop_assert!(!run.turns.is_empty());
            end = run.turns.end;
        }
        prop_assert_eq!(end, turns.len());
        prop_assert!(runs.iter().rev().skip(1).all(|run| run.trigger.is_some()));
    }

    #[test]
    fn heads_and_titles_are_bounded(text in "\\PC{0,600}") {
        prop_assert!(head(&text).chars().count() <= HEAD + 1);
        prop_assert!(title(&text).chars().count() <= TITLE + 1);
    }
}
