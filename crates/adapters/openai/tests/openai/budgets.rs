//! Budgets that hold before anything is sent.

use memfleet_domain::Clock;
use memfleet_openai::MemoryLedger;
use memfleet_openai::testing::Scripted;
use memfleet_ports::language_model::ModelFault;
use memfleet_ports::usage::{Amount, Kind, Limits, UsageLedger};

use crate::setup::{Model, clock, options, says, status, tenant};

async fn fresh() -> (MemoryLedger, ()) {
    (MemoryLedger::default(), ())
}

memfleet_ports::usage_conformance!(fresh);

async fn used(model: &Model) -> Amount {
    let day = clock().now().date_naive();
    model.ledger.used(&tenant(), day).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_pass_a_limit_is_not_sent() {
    for (limits, kind) in [
        (
            Limits {
                calls: Some(0),
                ..Limits::default()
            },
            Kind::Calls,
        ),
        (
            Limits {
                tokens: Some(2100),
                ..Limits::default()
            },
            Kind::Tokens,
        ),
        (
            Limits {
                micros: Some(2000),
                ..Limits::default()
            },
            Kind::Money,
        ),
    ] {
        let mut options = options();
        options.budget = limits;
        options.agents.judge.price_out = 1.0;
        let model = Model::playing(options, &[says("{}")]);
        assert_eq!(model.ask("a").await, Err(ModelFault::OverBudget(kind)));
        assert_eq!(
            (model.sent().len(), used(&model).await),
            (0, Amount::default())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_call_cost_takes_the_place_of_what_it_may_have() {
    let model = Model::playing(options(), &[says("{}")]);
    model.ask("a").await.unwrap();
    model.ask("a").await.unwrap();
    let cost = Amount {
        calls: 1,
        tokens: 110,
        micros: 0,
    };
    assert_eq!(used(&model).await, cost);
}

#[tokio::test(start_paused = true)]
async fn what_failed_with_a_status_cost_nothing() {
    let model = Model::playing(options(), &[status(500), status(429), status(403)]);
    model.ask("a").await.unwrap_err();
    assert_eq!(used(&model).await, Amount::default());
}

#[tokio::test(start_paused = true)]
async fn of_what_nobody_knows_the_cost_the_most_counts() {
    let uncounted = Scripted::SaysUncounted("{}".to_owned());
    for unknown in [Scripted::Hangs, uncounted] {
        let model = Model::playing(options(), &[unknown]);
        let _reply = model.ask("a").await;
        let used = used(&model).await;
        assert_eq!(used.calls, 1);
        assert!(used.tokens > 2048, "{used:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_of_no_use_counts_too() {
    let long = Scripted::Stops("{".to_owned(), "length");
    let model = Model::playing(options(), &[long]);
    model.ask("a").await.unwrap_err();
    assert_eq!(used(&model).await.tokens, 110);
}
