//! What limits come to.

use super::*;
use proptest::prelude::*;

fn budget(limits: Limits) -> (u64, Limit) {
    match limits.effective() {
        Ok(Verdict::Budget(effective)) => (effective.tokens, effective.limited_by),
        other => panic!("{other:?}"),
    }
}

fn nothing(limits: Limits) -> &'static str {
    match limits.effective() {
        Ok(Verdict::Nothing(reason)) => reason.code(),
        other => panic!("{other:?}"),
    }
}

fn window(window: u64) -> Limits {
    Limits {
        window: Some(window),
        ..Limits::default()
    }
}

#[test]
fn amp_065_the_least_of_what_is_given_holds() {
    assert_eq!(budget(Limits::default()), (8_000, Limit::MaxTokens));
    assert_eq!(budget(window(200_000)), (8_000, Limit::MaxTokens));
    assert_eq!(budget(window(32_000)), (3_200, Limit::PercentOfWindow));
    let both = Limits {
        max_tokens: Some(3_000),
        percent_of_window: Some(2.55),
        ..window(100_001)
    };
    assert_eq!(budget(both), (2_550, Limit::PercentOfWindow));
    let absolute = Limits {
        max_tokens: Some(9_000),
        ..window(32_000)
    };
    assert_eq!(budget(absolute), (9_000, Limit::MaxTokens));
    let full = Limits {
        prompt_tokens: 27_000,
        ..absolute
    };
    assert_eq!(budget(full), (1_000, Limit::Headroom));
}

#[test]
fn amp_066_a_percentage_needs_a_window() {
    let limits = Limits {
        percent_of_window: Some(10.0),
        ..Limits::default()
    };
    assert_eq!(limits.effective().unwrap_err().field, "percent_of_window");
}

#[test]
fn amp_067_zero_asks_for_nothing_and_unset_does_not() {
    let tokens = Limits {
        max_tokens: Some(0),
        ..Limits::default()
    };
    let percent = Limits {
        percent_of_window: Some(0.0),
        ..window(1_000_000)
    };
    assert_eq!(nothing(tokens), "BUDGET_ZERO");
    assert_eq!(nothing(percent), "BUDGET_ZERO");
}

#[test]
fn amp_068_limits_that_make_no_sense_are_refused_by_name() {
    let refused = |limits: Limits| limits.effective().unwrap_err().to_string();
    for percent in [-0.1, 100.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let limits = Limits {
            percent_of_window: Some(percent),
            ..window(1_000)
        };
        assert!(
            refused(limits).starts_with("percent_of_window"),
            "{percent}"
        );
    }
    for tokens in [-1, i64::MIN, 1_001] {
        let limits = Limits {
            max_tokens: Some(tokens),
            ..window(1_000)
        };
        assert!(refused(limits).starts_with("max_tokens"), "{tokens}");
    }
}

#[test]
fn amp_069_a_prompt_that_fills_the_window_leaves_no_headroom() {
    let limits = Limits {
        prompt_tokens: 28_000,
        ..window(32_000)
    };
    assert_eq!(nothing(limits), "NO_HEADROOM");
    assert_eq!(nothing(window(3_000)), "NO_HEADROOM");
}

#[test]
fn amp_070_a_budget_below_the_fixed_cost_and_the_least_useful_is_too_small() {
    let limits = |max_tokens| Limits {
        max_tokens: Some(max_tokens),
        overhead: 20,
        ..Limits::default()
    };
    assert_eq!(nothing(limits(43)), "BUDGET_TOO_SMALL");
    assert_eq!(budget(limits(44)), (44, Limit::MaxTokens));
}

#[test]
fn amp_071_an_item_has_a_default_limit_and_zero_means_none() {
    assert_eq!(per_item_tokens(None), Some(512));
    assert_eq!(per_item_tokens(Some(0)), None);
    assert_eq!(per_item_tokens(Some(100)), Some(100));
}

#[test]
fn amp_081_a_turn_and_a_session_have_what_is_left_of_theirs() {
    let limits = Limits {
        turn_remainder: Some(600),
        session_remainder: Some(500),
        ..Limits::default()
    };
    assert_eq!(budget(limits), (500, Limit::Session));
    let spent = Limits {
        turn_remainder: Some(0),
        ..limits
    };
    assert_eq!(nothing(spent), "TURN_BUDGET_SPENT");
}

proptest! {
    #[test]
    fn amp_065_no_limit_is_ever_exceeded(
        max_tokens in prop::option::of(any::<i64>()),
        percent in prop::option::of(any::<f64>()),
        window in prop::option::of(any::<u64>()),
        prompt_tokens in any::<u64>(),
        turn_remainder in prop::option::of(any::<u64>()),
    ) {
        let limits = Limits { max_tokens, percent_of_window: percent, window, prompt_tokens, turn_remainder, ..Limits::default() };
        if let Ok(Verdict::Budget(Effective { tokens, .. })) = limits.effective() {
            prop_assert!(max_tokens.is_none_or(|most| i128::from(tokens) <= i128::from(most)));
            prop_assert!(window.is_none_or(|window| u128::from(tokens) + u128::from(prompt_tokens) + 4_000 <= u128::from(window)));
            prop_assert!(turn_remainder.is_none_or(|most| tokens <= most));
        }
    }
}
