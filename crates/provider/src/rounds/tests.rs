use super::*;
use crate::tools::{Get, Search};
use proptest::prelude::*;

fn search(query: &str) -> Ask {
    Ask::Search(Search {
        query: query.to_owned(),
        ..Search::default()
    })
}

fn turn(rounds: u32, tokens: u32) -> Turn {
    let limits = Limits {
        rounds,
        tokens,
        tokens_per_call: 500,
        ..Limits::default()
    };
    Turn::new(limits, [])
}

/// One round that finds something new.
fn fruitful(turn: &mut Turn, number: u32) {
    turn.open().unwrap();
    let verdict = turn.ask(&search(&format!("query {number}")));
    assert!(matches!(verdict, Verdict::Run { .. }), "{verdict:?}");
    turn.deliver(&[&format!("m{number}")], 10).unwrap();
    turn.close();
}

#[test]
fn amp_022_a_round_over_the_limit_never_reaches_memory() {
    let mut turn = turn(3, 1000);
    for number in 0..3 {
        assert!(!turn.must_finalize());
        fruitful(&mut turn, number);
    }
    assert!(turn.must_finalize());
    assert_eq!(turn.open(), Err(Termination::RoundLimit));
    assert_eq!(
        turn.ask(&search("another")),
        Verdict::Ended(Termination::RoundLimit)
    );
    assert_eq!(turn.rounds_used(), 3);
}

#[test]
fn amp_022_no_rounds_means_that_the_first_call_of_the_model_is_its_last() {
    let mut turn = turn(0, 1000);
    assert!(turn.must_finalize());
    assert_eq!(
        turn.ask(&search("a")),
        Verdict::Ended(Termination::RoundLimit)
    );
    assert_eq!(turn.rounds_used(), 0);
}

#[test]
fn amp_024_every_reason_is_told_apart() {
    let mut budget = turn(3, 10);
    fruitful(&mut budget, 1);
    assert_eq!(budget.termination(), Some(Termination::TokenBudget));

    let mut repeated = turn(3, 1000);
    fruitful(&mut repeated, 1);
    assert_eq!(
        repeated.ask(&search(" QUERY  1?")),
        Verdict::Answer(ALREADY_RETURNED)
    );
    assert_eq!(repeated.close(), Some(Termination::RepeatedQuery));

    let mut empty = turn(5, 1000);
    for query in ["a", "b"] {
        assert!(matches!(empty.ask(&search(query)), Verdict::Run { .. }));
        empty.deliver(&[], 5).unwrap();
        empty.close();
    }
    assert_eq!(empty.termination(), Some(Termination::NoNewResults));

    let mut malformed = turn(3, 1000);
    malformed.reject(&BadArguments::NotAnObject);
    malformed.reject(&BadArguments::BlankQuery);
    assert_eq!(malformed.termination(), None);
    malformed.reject(&BadArguments::NotAnObject);
    assert_eq!(malformed.termination(), Some(Termination::ToolsRejected));

    for outside in [
        Termination::ModelAnswered,
        Termination::Deadline,
        Termination::ClientToolPending,
        Termination::UpstreamError,
    ] {
        let mut turn = turn(3, 1000);
        turn.end(outside);
        assert!(turn.must_finalize());
        assert_eq!(turn.open(), Err(outside));
    }
}

#[test]
fn a_turn_goes_on_when_the_client_comes_back() {
    let mut turn = turn(2, 1000);
    fruitful(&mut turn, 1);
    turn.end(Termination::ClientToolPending);
    turn.resume();
    fruitful(&mut turn, 2);
    assert_eq!(turn.termination(), Some(Termination::RoundLimit));
    turn.resume();
    assert!(turn.must_finalize());
}

#[test]
fn amp_029_one_token_over_what_is_allowed_is_refused_and_changes_nothing() {
    let mut turn = turn(3, 600);
    assert_eq!(turn.ask(&search("a")), Verdict::Run { tokens: 500 });
    let error = turn.deliver(&["m"], 501).unwrap_err();
    assert_eq!((error.tokens, error.allowed), (501, 500));
    assert_eq!(turn.fresh(&["m"]), ["m"]);
    turn.deliver(&["m"], 500).unwrap();
    assert_eq!(turn.ask(&search("b")), Verdict::Run { tokens: 100 });
    assert!(turn.deliver(&[], 101).is_err());
    turn.deliver(&[], 100).unwrap();
    assert!(turn.must_finalize());
    assert_eq!(
        turn.ask(&search("c")),
        Verdict::Ended(Termination::TokenBudget)
    );
}

#[test]
fn amp_030_what_was_given_is_not_given_again() {
    let mut turn = Turn::new(Limits::default(), ["in prompt".to_owned()]);
    assert_eq!(turn.fresh(&["a", "in prompt", "b", "a"]), ["a", "b"]);
    turn.ask(&search("x"));
    turn.deliver(&["a"], 1).unwrap();
    assert_eq!(turn.fresh(&["a", "b"]), ["b"]);
    let again = Ask::Search(Search {
        query: "Ｘ".to_owned(),
        ..Search::default()
    });
    assert!(matches!(turn.ask(&again), Verdict::Run { .. }));
    let more = Ask::Search(Search {
        query: "x!".to_owned(),
        limit: Some(20),
        ..Search::default()
    });
    assert_eq!(turn.ask(&more), Verdict::Answer(ALREADY_RETURNED));
    let get = |ids: &[&str]| {
        Ask::Get(Get {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        })
    };
    assert!(matches!(turn.ask(&get(&["1", "2"])), Verdict::Run { .. }));
    assert_eq!(
        turn.ask(&get(&["2", "1", "2"])),
        Verdict::Answer(ALREADY_RETURNED)
    );
}

#[test]
fn amp_031_wrong_arguments_are_told_to_the_model() {
    let mut turn = turn(3, 1000);
    let text = turn.reject(&BadArguments::LongQuery(4000));
    assert!(text.contains("4000") && text.contains("2048"), "{text}");
}

proptest! {
    #[test]
    fn amp_029_results_of_all_rounds_stay_within_the_budget(
        rounds in 0_u32..6, budget in 0_u32..3_000,
        results in prop::collection::vec((0_u32..1_500, any::<bool>(), "[a-c]{1,2}"), 0..20),
    ) {
        let mut turn = turn(rounds, budget);
        let mut sum = 0;
        for (tokens, next_round, query) in results {
            if next_round { turn.close(); }
            let state = serde_json::to_string(&turn).unwrap();
            turn = serde_json::from_str(&state).unwrap();
            if let Verdict::Run { tokens: allowed } = turn.ask(&search(&query)) {
                prop_assert!(allowed <= 500);
                prop_assert_eq!(turn.deliver(&[&query], tokens).is_ok(), tokens <= allowed);
                if tokens <= allowed { sum += tokens; }
            }
        }
        prop_assert!(sum <= budget);
        prop_assert_eq!(turn.tokens_used(), sum);
        prop_assert!(turn.rounds_used() <= rounds);
    }
}
