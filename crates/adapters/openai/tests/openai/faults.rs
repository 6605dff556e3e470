//! Endpoints that are down, slow, busy, or answer what is no answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memfleet_openai::Options;
use memfleet_openai::testing::Scripted;
use memfleet_ports::language_model::ModelFault;
use tokio::time::Instant;

use crate::setup::{Model, options, says, status};

async fn fault(script: &[Scripted]) -> ModelFault {
    Model::playing(options(), script)
        .ask("a")
        .await
        .unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_bad_moment_is_outlasted() {
    for bad in [status(500), status(429), status(503), Scripted::Breaks] {
        let model = Model::playing(options(), &[bad.clone(), bad, says("{}")]);
        assert_eq!(model.ask("a").await.unwrap().text, "{}");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_are_bounded() {
    let model = Model::playing(options(), &[status(500)]);
    let fault = model.ask("a").await.unwrap_err();
    assert_eq!((fault.cause(), model.sent().len()), ("unavailable", 3));
}

#[tokio::test(start_paused = true)]
async fn a_busy_endpoint_is_left_alone_for_as_long_as_it_says() {
    let busy = Scripted::Status(429, String::new(), Some(Duration::from_secs(4)));
    let model = Model::playing(options(), &[busy, says("{}")]);
    let begun = Instant::now();
    model.ask("a").await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_deadline_is_not_waited() {
    let wait = Duration::from_mins(1);
    let busy = Scripted::Status(429, String::new(), Some(wait));
    let model = Model::playing(options(), &[busy]);
    let begun = Instant::now();
    let fault = model.ask("a").await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(1));
    let ModelFault::Unavailable { retry_after, .. } = fault else {
        panic!("{fault}");
    };
    assert_eq!(retry_after, Some(wait));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_beyond_the_deadline() {
    let drip = Scripted::Drips("{\"a\": 1}".to_owned(), Duration::from_secs(1));
    for slow in [Scripted::Hangs, drip] {
        let begun = Instant::now();
        assert_eq!(fault(&[slow]).await, ModelFault::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_model_will_not_do_is_not_asked_again() {
    let filtered = Scripted::Stops("x".to_owned(), "content_filter");
    for refusal in [Scripted::Declines, filtered, status(418)] {
        let model = Model::playing(options(), &[refusal]);
        let fault = model.ask("a").await.unwrap_err();
        assert_eq!((fault.cause(), fault.may_pass()), ("refused", false));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_reply_is_garbage() {
    for body in [
        "",
        "<html>",
        "[]",
        "null",
        "{\"choices\": 1}",
        "{\"choices\": []}",
        "{\"choices\": [{\"message\": {\"content\": \" \"}}]}",
    ] {
        let fault = fault(&[Scripted::Body(body.into())]).await;
        assert_eq!(fault.cause(), "garbage", "{body}");
    }
    let long = Scripted::Stops("{\"a\":".to_owned(), "length");
    assert_eq!(fault(&[long]).await.cause(), "garbage");
}

#[tokio::test(start_paused = true)]
async fn a_huge_body_is_cut_off() {
    let mut options = options();
    options.reply_limit = 1000;
    let model = Model::playing(options, &[says(&"x".repeat(2000))]);
    assert_eq!(model.ask("a").await.unwrap_err().cause(), "garbage");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_breaks_off_is_asked_for_again() {
    let half = Scripted::Truncates("{\"a\": 1}".to_owned());
    let model = Model::playing(options(), &[half, says("{}")]);
    assert_eq!(model.ask("a").await.unwrap().text, "{}");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_refused_is_told_without_showing_it() {
    let mut options = options();
    options.key = Some("sk-secret".into());
    let leak = Scripted::Status(401, "wrong key sk-secret".to_owned(), None);
    let model = Model::playing(options, &[leak]);
    let fault = model.ask("a").await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the model is not available: the endpoint refuses the key: see `language_model.key`"
    );
    assert_eq!(model.sent().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_keeps_failing_is_left_alone_and_tried_again_once() {
    let mut options = options();
    options.retries = 0;
    let down = vec![status(500); 6];
    let model = Model::playing(options, &[down, vec![says("{}")]].concat());
    for _ in 0..5 {
        model.ask("a").await.unwrap_err();
    }
    // Open: nothing is sent.
    let begun = Instant::now();
    let fault = model.ask("a").await.unwrap_err();
    assert!(fault.may_pass());
    assert_eq!((model.sent().len(), begun.elapsed()), (5, Duration::ZERO));
    // One probe, which fails; then twice the pause.
    tokio::time::advance(Duration::from_secs(10)).await;
    model.ask("a").await.unwrap_err();
    model.ask("a").await.unwrap_err();
    assert_eq!(model.sent().len(), 6);
    tokio::time::advance(Duration::from_secs(11)).await;
    model.ask("a").await.unwrap_err();
    assert_eq!(model.sent().len(), 6);
    tokio::time::advance(Duration::from_secs(10)).await;
    // What failed as the probe lets others try.
    model.ask("a").await.unwrap_err();
    assert_eq!(model.sent().len(), 6);
    assert_eq!(model.ask("b").await.unwrap().text, "{}");
    assert_eq!(model.ask("a").await.unwrap().text, "{}");
}

/// An endpoint that fails on one input, and how often it was sent that.
fn allergic(options: Options) -> (Model, impl Fn() -> usize) {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let model = Model::new(options, move |_, body| {
        if body.to_string().contains("poison") {
            count.fetch_add(1, Ordering::SeqCst);
            return status(500);
        }
        says("{}")
    });
    (model, move || sent.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn an_input_that_always_fails_while_others_are_served_is_refused_after_a_while() {
    let mut options = options();
    (options.retries, options.cache) = (0, 0);
    let (model, sent) = allergic(options);
    for _ in 0..3 {
        assert!(model.ask("poison").await.unwrap_err().may_pass());
        assert_eq!(model.ask("a").await.unwrap().text, "{}");
    }
    assert_eq!(model.ask("poison").await.unwrap_err().cause(), "refused");
    assert_eq!(sent(), 3);
}

#[tokio::test(start_paused = true)]
async fn where_all_fail_no_input_is_at_fault() {
    let mut options = options();
    (options.retries, options.breaker.failures) = (0, u32::MAX);
    let model = Model::playing(options, &vec![status(500); 9]);
    for _ in 0..9 {
        assert!(model.ask("a").await.unwrap_err().may_pass());
    }
    assert_eq!(model.sent().len(), 9);
}

#[tokio::test(start_paused = true)]
async fn an_input_that_always_fails_does_not_close_the_endpoint_to_others() {
    let mut options = options();
    (options.retries, options.cache) = (0, 0);
    let (model, _) = allergic(options);
    for _ in 0..5 {
        model.ask("poison").await.unwrap_err();
    }
    assert!(model.ask("a").await.unwrap_err().may_pass(), "open");
    tokio::time::advance(Duration::from_secs(11)).await;
    // It may be the probe once, and then it is another's turn.
    model.ask("poison").await.unwrap_err();
    tokio::time::advance(Duration::from_secs(21)).await;
    model.ask("poison").await.unwrap_err();
    assert_eq!(model.ask("a").await.unwrap().text, "{}");
    for _ in 0..2 {
        assert!(model.ask("poison").await.unwrap_err().may_pass());
    }
    assert_eq!(model.ask("poison").await.unwrap_err().cause(), "refused");
    assert_eq!(model.ask("a").await.unwrap().text, "{}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_caller_left_makes_way_for_another() {
    let mut options = options();
    options.retries = 0;
    options.breaker.failures = 1;
    let script = [status(500), Scripted::Hangs, says("{}")];
    let model = Model::playing(options, &script);
    model.ask("a").await.unwrap_err();
    tokio::time::advance(Duration::from_secs(10)).await;
    let left = tokio::time::timeout(Duration::from_secs(1), model.ask("a")).await;
    assert!(left.is_err());
    assert_eq!(model.ask("a").await.unwrap().text, "{}");
}

#[tokio::test(start_paused = true)]
async fn short_deadlines_do_not_speak_against_an_endpoint() {
    let mut options = options();
    options.agents.judge.timeout = Duration::from_secs(1);
    let model = Model::playing(options, &[Scripted::Hangs]);
    for _ in 0..7 {
        assert_eq!(model.ask("a").await, Err(ModelFault::TimedOut));
    }
    assert_eq!(model.sent().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_those_that_may_wait_are_refused_at_once() {
    let mut options = options();
    (options.concurrency, options.waiting) = (1, 1);
    let slow = Scripted::Drips("{}".to_owned(), Duration::from_millis(10));
    let model = Model::playing(options, &[slow]);
    let (first, second, third) = tokio::join!(model.ask("a"), model.ask("b"), model.ask("c"));
    assert_eq!(first.unwrap().text, "{}");
    assert_eq!(second.unwrap().text, "{}");
    assert_eq!(third.unwrap_err().cause(), "unavailable");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gets_no_place_within_its_deadline_ends() {
    let mut options = options();
    options.concurrency = 1;
    options.agents.judge.timeout = Duration::from_secs(3);
    let model = Model::playing(options, &[Scripted::Hangs]);
    let begun = Instant::now();
    let (first, second) = tokio::join!(model.ask("a"), model.ask("b"));
    assert_eq!(first, Err(ModelFault::TimedOut));
    assert!(second.is_err());
    assert_eq!(begun.elapsed().as_secs(), 3);
}
