//! Facts are derived from what was stored, on a real store, with an extractor that reads "X is Y" literally.
#![allow(clippy::unwrap_used)]

mod bench;
mod editing_reader;
mod episodes;
mod statements;
mod topics;

use memfleet_domain::derivation::Origin;
use memfleet_domain::turn::{AcceptedTurn, Echo};
use memfleet_ports::conformance::samples::{edit, home, instant, turn};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Question, Stage};

use bench::{Bench, LITERAL};

#[tokio::test]
async fn what_a_turn_states_is_known_once_and_names_its_turn() {
    let bench = Bench::new().await;
    let turn = turn("1", "the door is red. the door is red. the sky is blue.");
    bench.store(vec![turn.clone()]).await;
    assert_eq!(bench.derive().await, ["the door is red", "the sky is blue"]);
    let facts = bench.facts(&Question::default()).await;
    assert_eq!(facts[0].turns, [turn.id]);
    assert_eq!(facts[0].origin, Origin::Extracted(LITERAL.into()));
    assert_eq!(facts[0].valid.start, Some(turn.recorded_at));
    // Nothing is left to do, and doing it again changes nothing.
    assert_eq!(
        bench.knowledge().pending(Stage::Derive, 9).await.unwrap(),
        []
    );
    assert_eq!(bench.derive().await.len(), 2);
}

#[tokio::test]
async fn what_a_turn_copies_from_memory_is_no_fact_of_its_own() {
    let bench = Bench::new().await;
    let first = turn("1", "the door is red.");
    let text = "the door is red. the sky is blue.";
    let copied = AcceptedTurn {
        echoes: vec![Echo {
            start: 0,
            end: "the door is red".len() as u32,
            of: first.id,
        }],
        ..turn("2", text)
    };
    bench.store(vec![first, copied]).await;
    assert_eq!(bench.derive().await, ["the door is red", "the sky is blue"]);
}

#[tokio::test]
async fn a_round_that_was_cut_off_is_done_again() {
    let bench = Bench::new().await;
    bench.store(vec![turn("1", "the door is red.")]).await;
    bench.derive().await;
    bench.begin_again().await;
    assert_eq!(bench.derive().await, ["the door is red"]);
}

#[tokio::test]
async fn a_turn_is_read_in_the_light_of_those_before_it() {
    let bench = Bench::new().await;
    let turns = [turn("1", "Ada is here."), turn("2", "she is a nurse.")];
    bench.store(turns.to_vec()).await;
    assert_eq!(bench.derive().await, ["Ada is here", "Ada is a nurse"]);
    bench.store(vec![turn("3", "she is old.")]).await;
    assert_eq!(bench.derive().await.last().unwrap(), "Ada is old");
    let about = Question {
        turns: vec![turns[0].id],
        ..Question::default()
    };
    assert_eq!(bench.facts(&about).await.len(), 3);
}

#[tokio::test]
async fn what_a_replaced_turn_stated_never_held() {
    let bench = Bench::new().await;
    let first = turn("1", "the door is red.");
    bench.store(vec![first.clone()]).await;
    bench.derive().await;
    let mut second = edit(&first, "2", "the door is green.");
    second.recorded_at = instant(10);
    bench.store(vec![second]).await;
    assert_eq!(bench.derive().await, ["the door is green"]);
    // It is known that it was believed.
    let all = Question {
        withdrawn: true,
        ..Question::default()
    };
    let all = bench.facts(&all).await;
    let withdrawn: Vec<_> = all.iter().filter(|fact| fact.is_withdrawn()).collect();
    assert_eq!(withdrawn[0].version, 2);
}

#[tokio::test]
async fn facts_wait_for_an_embedder_that_is_down_and_turns_do_not() {
    let bench = Bench::new().await;
    bench.embedder.set_down(true);
    bench.store(vec![turn("1", "the door is red.")]).await;
    assert_eq!(bench.derive().await, [""; 0]);
    bench.embedder.set_down(false);
    assert_eq!(bench.derive().await, ["the door is red"]);
}

#[tokio::test]
async fn what_is_forgotten_is_not_derived_again() {
    let bench = Bench::new().await;
    let turns = [turn("1", "the door is red."), turn("2", "the sky is blue.")];
    bench.store(turns.to_vec()).await;
    bench.derive().await;
    let filter = TurnFilter {
        turns: vec![turns[0].id],
        ..TurnFilter::default()
    };
    bench.store.erase(&home(), &filter).await.unwrap();
    assert_eq!(bench.derive().await, ["the sky is blue"]);
}

#[tokio::test]
async fn a_fact_goes_with_the_turn_that_says_one_of_its_words() {
    let bench = Bench::new().await;
    let turns = [
        turn("1", "Zebulonia is here."),
        turn("2", "he is old. they is odd. the sky is blue."),
    ];
    bench.store(turns.to_vec()).await;
    let expected = ["Zebulonia is here", "Zebulonia is old", "the sky is blue"];
    assert_eq!(bench.derive().await, expected);
    let facts = bench.facts(&Question::default()).await;
    assert_eq!(facts[1].turns, [turns[1].id, turns[0].id]);
    let filter = TurnFilter {
        turns: vec![turns[0].id],
        ..TurnFilter::default()
    };
    bench.store.erase(&home(), &filter).await.unwrap();
    assert_eq!(bench.derive().await, ["the sky is blue", "he is old"]);
}

#[tokio::test]
async fn what_other_turns_still_say_is_derived_again_after_a_forget() {
    let bench = Bench::new().await;
    let turns = [
        turn("1", "Ada is here."),
        turn("2", "Ada is there."),
        turn("3", "she is old. the sky is blue."),
    ];
    bench.store(turns.to_vec()).await;
    assert_eq!(bench.derive().await.len(), 4);
    for gone in [0, 1] {
        let filter = TurnFilter {
            turns: vec![turns[gone].id],
            ..TurnFilter::default()
        };
        bench.store.erase(&home(), &filter).await.unwrap();
        let facts = bench.derive().await;
        assert!(facts.iter().any(|fact| fact == "the sky is blue"));
        let is_told = facts.iter().any(|fact| fact == "Ada is old");
        assert_eq!(is_told, gone == 0, "{facts:?}");
    }
}

#[tokio::test]
async fn a_rebuild_takes_what_the_extractor_of_now_finds_and_withdraws_the_rest() {
    let bench = Bench::new().await;
    let turns = [
        turn("1", "the door is red. the door was blue."),
        turn("2", "the sky is blue."),
    ];
    bench.store(turns.to_vec()).await;
    bench.derive().await;
    bench.rebuild("was").await;
    assert_eq!(bench.derive().await, ["the door was blue"]);
    // Nothing is lost: what was known before can be read.
    let withdrawn = Question {
        withdrawn: true,
        ..Question::default()
    };
    assert_eq!(bench.facts(&withdrawn).await.len(), 3);
    assert_eq!(bench.knowledge().rebuilding(&home()).await.unwrap(), None);
}

#[tokio::test]
async fn amp_129_a_rebuild_with_the_same_extractor_changes_nothing() {
    let bench = Bench::new().await;
    bench.store(vec![turn("1", "the door is red.")]).await;
    bench.derive().await;
    let before = bench.facts(&Question::default()).await;
    bench.rebuild("is").await;
    assert_eq!(bench.facts(&Question::default()).await, before);
}
