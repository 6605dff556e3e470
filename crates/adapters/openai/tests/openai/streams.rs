//! Replies in pieces.

use std::time::Duration;

use futures::StreamExt;
use memfleet_openai::testing::Scripted;
use memfleet_ports::language_model::{LanguageModel, ModelFault, Piece};
use memfleet_ports::usage::UsageLedger;
use tokio::time::Instant;

use crate::setup::{Model, call, clock, options, says, status, tenant};
use memfleet_domain::Clock;

/// The words that came, and how it ended.
async fn read(model: &Model) -> (String, Result<u64, ModelFault>) {
    let mut pieces = match model.model.stream(&tenant(), &call("a")).await {
        Ok(pieces) => pieces,
        Err(fault) => return (String::new(), Err(fault)),
    };
    let mut words = String::new();
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(Piece::Text(text)) => words.push_str(&text),
            Ok(Piece::End { usage, .. }) => {
                assert!(pieces.next().await.is_none());
                return (words, Ok(usage.tokens_out));
            }
            Err(fault) => return (words, Err(fault)),
        }
    }
    panic!("a stream ends with an end or a fault");
}

#[tokio::test(start_paused = true)]
async fn words_arrive_in_order_and_their_cost_at_the_end() {
    let model = Model::playing(options(), &[says("In Lisbon, since March [T2].")]);
    let (words, end) = read(&model).await;
    assert_eq!((&*words, end), ("In Lisbon, since March [T2].", Ok(10)));
    assert_eq!(model.sent()[0]["stream_options"]["include_usage"], true);
    let used = model
        .ledger
        .used(&tenant(), clock().now().date_naive())
        .await;
    assert_eq!(used.unwrap().tokens, 110);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cut_off_never_looks_complete() {
    let script = [
        Scripted::Truncates("one two three four five six".to_owned()),
        Scripted::Body(
            b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n".to_vec(),
        ),
        Scripted::Body(b"data: {\"choices\":[\n\n".to_vec()),
        Scripted::Body(b"{\"choices\":[]}".to_vec()),
        Scripted::Stops("and so on".to_owned(), "length"),
        Scripted::Declines,
    ];
    for scripted in script {
        let model = Model::playing(options(), std::slice::from_ref(&scripted));
        let (_, end) = read(&model).await;
        assert!(end.is_err(), "{scripted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_stands_still_ends() {
    let mut options = options();
    options.idle_timeout = Duration::from_secs(3);
    let drip = Scripted::Drips("never".to_owned(), Duration::from_secs(4));
    let begun = Instant::now();
    let (_, end) = read(&Model::playing(options, &[drip])).await;
    assert_eq!(
        (end, begun.elapsed().as_secs()),
        (Err(ModelFault::TimedOut), 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_at_its_deadline_however_busy_it_is() {
    let drip = Scripted::Drips("word ".repeat(1000), Duration::from_millis(10));
    let begun = Instant::now();
    let (words, end) = read(&Model::playing(options(), &[drip])).await;
    assert_eq!(
        (end, begun.elapsed().as_secs()),
        (Err(ModelFault::TimedOut), 10)
    );
    assert!(words.starts_with("word "));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_does_not_begin_is_opened_again() {
    let model = Model::playing(options(), &[status(503), says("yes")]);
    assert_eq!(read(&model).await, ("yes".to_owned(), Ok(10)));
}

#[tokio::test(start_paused = true)]
async fn a_stream_holds_its_place_until_it_ends_or_is_left() {
    let mut options = options();
    (options.concurrency, options.waiting) = (1, 0);
    let model = Model::playing(options, &[says("yes")]);
    let pieces = model.model.stream(&tenant(), &call("a")).await.unwrap();
    assert_eq!(read(&model).await.1.unwrap_err().cause(), "unavailable");
    drop(pieces);
    assert_eq!(read(&model).await.0, "yes");
}
