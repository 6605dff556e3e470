//! A change of the embedding model, in every store: there, back, and the vectors that searches do
//! not use dropped.

use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};

use super::samples::{batch, embedding_space, home, indexed, turn, vectors, without_vectors};
use crate::feed::{Change, IndexFeed};
use crate::ledger::{Ledger, TextVectors};
use crate::model_switch::{
    ModelSwitches, NextStep, OrderGiver, SpaceComparison, SwitchGoal, SwitchOrder, SwitchStep,
};
use crate::spaces::SpaceCatalog;

/// Runs every case on a store, but for those that look into it.
#[macro_export]
macro_rules! model_switch_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            model_switch,
            [
                a_change_of_the_model_goes_there_and_back,
                a_third_model_takes_the_place_of_the_first,
                a_turn_without_vectors_gets_those_of_both_models,
                a_busy_space_is_compared_while_its_last_turns_wait,
                a_roll_back_removes_what_is_half_built,
                an_unlike_model_is_served_when_it_is_forced,
                a_space_follows_its_language_whatever_is_ordered,
            ]
        );
    };
}

/// A store with all that a change of the model takes.
pub trait SwitchingStore: Ledger + IndexFeed + SpaceCatalog + ModelSwitches {}

impl<S: Ledger + IndexFeed + SpaceCatalog + ModelSwitches> SwitchingStore for S {}

fn new_model() -> EmbeddingSpace {
    embedding_space("2")
}

fn order(goal: SwitchGoal, drops: bool) -> SwitchOrder {
    SwitchOrder {
        target: new_model(),
        goal,
        drops,
        forced: false,
        every_language: false,
        giver: OrderGiver::Operator,
    }
}

/// Vectors that no other model makes.
fn of_new(text: &str) -> PassageVectors {
    let mut vectors = vectors(text);
    vectors.sentence.reverse();
    vectors
        .tokens
        .pieces
        .iter_mut()
        .for_each(|piece| *piece += 100_000);
    vectors
}

/// How many turns the feed has, how many of them with vectors of an embedding space; none of them
/// of another one.
async fn embedded(store: &impl SwitchingStore, space: &EmbeddingSpace) -> (usize, usize) {
    let changes = store.changes_in(&home(), Some(space), 0, 1_000).await;
    let (mut turns, mut with) = (0, 0);
    for change in changes.expect("changes").changes {
        let Change::Stored(turn) = change else {
            continue;
        };
        turns += 1;
        let passages = (turn.first_passage..).zip(&turn.passages);
        let numbers: Vec<u32> = passages.clone().map(|(number, _)| number).collect();
        let tokens = store.token_vectors(&home(), Some(space), &numbers).await;
        let tokens = tokens.expect("token vectors");
        with += usize::from(tokens.iter().all(Option::is_some));
        for ((_, passage), tokens) in passages.zip(tokens) {
            assert_eq!(passage.sentence.is_some(), tokens.is_some());
            let pieces = tokens.iter().flat_map(|tokens| &tokens.pieces);
            let mut pieces = pieces.chain(&passage.pieces);
            assert!(pieces.all(|piece| (*piece >= 100_000) == (*space == new_model())));
        }
    }
    (turns, with)
}

/// Brings what an embedding space lacks.
async fn fill(store: &impl SwitchingStore, space: &EmbeddingSpace) -> usize {
    let filled = fill_first(store, space, 100).await;
    // A look without anything to do takes the note off.
    let left = store.without_vectors(space, 100).await.expect("waiting");
    assert_eq!(left, []);
    filled
}

/// Brings what the first turns that lack an embedding space lack.
async fn fill_first(store: &impl SwitchingStore, space: &EmbeddingSpace, most: u32) -> usize {
    let waiting = store.without_vectors(space, most).await.expect("waiting");
    let made = waiting.iter().map(|turn| {
        let text = &turn.turn.accepted.content.text;
        let made = turn.ranges.iter().map(|&(start, end)| {
            let passage = &text[start as usize..end as usize];
            match *space == new_model() {
                true => of_new(passage),
                false => vectors(passage),
            }
        });
        TextVectors::of_turn(turn.turn.accepted.id, made.collect())
    });
    let made: Vec<_> = made.collect();
    let attached = store.attach_vectors(&home(), space, &made).await;
    attached.expect("attach");
    waiting.len()
}

async fn step(store: &impl SwitchingStore, order: &SwitchOrder, expected: SwitchStep) {
    store.set_order(order).await.expect("order");
    let steps = store.steps(Some(order), 10).await.expect("steps");
    let steps: Vec<_> = steps.iter().map(|next| (&next.scope, next.step)).collect();
    assert_eq!(steps, [(&home(), expected)]);
    let comparison = SpaceComparison {
        queries: 2,
        overlap: 0.5,
        correlation: 0.25,
    };
    take(store, order, expected, comparison).await;
}

async fn take(
    store: &impl SwitchingStore,
    order: &SwitchOrder,
    step: SwitchStep,
    comparison: SpaceComparison,
) {
    let next = NextStep {
        scope: home(),
        order: order.clone(),
        is_for_language: false,
        step,
    };
    store.take(&next, comparison).await.expect("take");
}

async fn serves(store: &impl SwitchingStore) -> (Option<EmbeddingSpace>, Option<EmbeddingSpace>) {
    let held = store.embeddings(&home()).await.expect("embeddings");
    (held.served, held.other.map(|other| other.space))
}

async fn tell(store: &impl SwitchingStore, number: u64) {
    let id = number.to_string();
    let told = indexed(
        batch(&id, vec![turn(&id, "a text of more than twenty bytes")]),
        number,
    );
    store.commit(vec![told]).await.expect("commit");
}

/// An order takes the place of the one that its giver knew, and of no other.
async fn replace_orders(store: &impl SwitchingStore, last: &SwitchOrder) {
    let configured = SwitchOrder::beside(new_model());
    let orders = [(None, &configured, true), (None, last, false)];
    let next = [(Some(last), last, false), (Some(&configured), last, true)];
    for (known, order, is_taken) in orders.into_iter().chain(next) {
        assert_eq!(store.replace_order(known, order).await, Ok(is_taken));
    }
}

/// At each step the feed of an embedding space has vectors of that one alone.
pub async fn a_change_of_the_model_goes_there_and_back(store: &impl SwitchingStore) {
    let (old, new) = (embedding_space("1"), new_model());
    for number in 1..=3 {
        tell(store, number).await;
    }
    assert_eq!(store.order().await, Ok(None));
    let serve = order(SwitchGoal::Serve, false);
    replace_orders(store, &serve).await;
    assert_eq!(store.order().await, Ok(Some(serve.clone())));
    step(store, &serve, SwitchStep::Build).await;
    assert_eq!(serves(store).await, (Some(old.clone()), Some(new.clone())));
    let head = store.head(&home()).await.expect("head");
    // While it is built nothing is there for searches, and new turns get both.
    assert_eq!(store.steps(Some(&serve), 10).await, Ok(vec![]));
    tell(store, 4).await;
    assert_eq!(fill(store, &new).await, 4);
    assert_eq!(
        store.head(&home()).await,
        Ok(head + 1),
        "no index follows what is built"
    );
    assert_eq!(embedded(store, &old).await, (4, 4));
    assert_eq!(embedded(store, &new).await, (4, 4));
    // A process that still has another order changes nothing.
    let back = order(SwitchGoal::RollBack, true);
    store.set_order(&back).await.expect("order");
    let comparison = SpaceComparison::default();
    take(store, &serve, SwitchStep::Compare, comparison).await;
    store.set_order(&serve).await.expect("order");
    step(store, &serve, SwitchStep::Compare).await;
    let progress = store.progress(&serve).await.expect("progress");
    assert_eq!(
        (progress.turns, progress.done, progress.compared),
        (4, 4, 1)
    );
    assert_eq!(
        (progress.comparison.queries, progress.comparison.overlap),
        (2, 0.5)
    );
    step(store, &serve, SwitchStep::Serve).await;
    assert_eq!(serves(store).await, (Some(new.clone()), Some(old.clone())));
    // Turns of before are complete in both; new ones come with the new vectors, and the old follow.
    let mut fifth = indexed(batch("5", vec![turn("5", "five")]), 5);
    fifth.embedding_space = Some(new.clone());
    fifth.passages[0][0].vectors = Some(of_new("five"));
    store.commit(vec![fifth]).await.expect("commit");
    assert_eq!(embedded(store, &new).await, (5, 5));
    assert_eq!(fill(store, &old).await, 1);
    assert_eq!(embedded(store, &old).await, (5, 5));
    let back = order(SwitchGoal::RollBack, false);
    step(store, &back, SwitchStep::RollBack).await;
    assert_eq!(serves(store).await, (Some(old.clone()), Some(new.clone())));
    step(store, &serve, SwitchStep::Serve).await;
    let drops = order(SwitchGoal::Serve, true);
    step(store, &drops, SwitchStep::Drop).await;
    assert_eq!(store.steps(Some(&drops), 10).await, Ok(vec![]));
    assert_eq!(serves(store).await, (Some(new.clone()), None));
    assert_eq!(embedded(store, &old).await, (5, 0));
    assert_eq!(embedded(store, &new).await, (5, 5));
}

/// The place that a dropped model left is the next one's.
pub async fn a_third_model_takes_the_place_of_the_first(store: &impl SwitchingStore) {
    a_change_of_the_model_goes_there_and_back(store).await;
    let third = SwitchOrder {
        target: embedding_space("1"),
        goal: SwitchGoal::Serve,
        drops: false,
        forced: false,
        every_language: false,
        giver: OrderGiver::Operator,
    };
    step(store, &third, SwitchStep::Build).await;
    assert_eq!(fill(store, &third.target).await, 5);
    step(store, &third, SwitchStep::Compare).await;
    step(store, &third, SwitchStep::Serve).await;
    assert_eq!(embedded(store, &third.target).await, (5, 5));
    assert_eq!(embedded(store, &new_model()).await, (5, 5));
    let back = SwitchOrder {
        goal: SwitchGoal::RollBack,
        drops: true,
        ..third
    };
    step(store, &back, SwitchStep::RollBack).await;
    step(store, &back, SwitchStep::Drop).await;
    assert_eq!(serves(store).await, (Some(new_model()), None));
}

/// A turn that waits for its vectors waits in both.
pub async fn a_turn_without_vectors_gets_those_of_both_models(store: &impl SwitchingStore) {
    tell(store, 1).await;
    let serve = order(SwitchGoal::Serve, false);
    store.set_order(&serve).await.expect("order");
    step(store, &serve, SwitchStep::Build).await;
    let bare = without_vectors(indexed(batch("2", vec![turn("2", "two")]), 2));
    store.commit(vec![bare]).await.expect("commit");
    assert_eq!(fill(store, &new_model()).await, 2);
    assert_eq!(fill(store, &embedding_space("1")).await, 1);
    assert_eq!(embedded(store, &embedding_space("1")).await, (2, 2));
    assert_eq!(embedded(store, &new_model()).await, (2, 2));
}

/// `named` counts the turns whose row names an embedding space: versions before take such a turn
/// for one that has vectors in the only place that they know.
pub async fn turns_name_an_embedding_space_that_searches_use<S: SwitchingStore>(
    store: &S,
    named: impl AsyncFn() -> i64,
) {
    let bare = without_vectors(indexed(batch("1", vec![turn("1", "one")]), 1));
    store.commit(vec![bare]).await.expect("commit");
    assert_eq!(fill(store, &embedding_space("1")).await, 1);
    assert_eq!(named().await, 1);
    step(store, &order(SwitchGoal::Serve, false), SwitchStep::Build).await;
    let bare = without_vectors(indexed(batch("2", vec![turn("2", "two")]), 2));
    store.commit(vec![bare]).await.expect("commit");
    assert_eq!(fill(store, &new_model()).await, 2);
    assert_eq!(named().await, 1, "no search uses these vectors");
    assert_eq!(fill(store, &embedding_space("1")).await, 1);
    assert_eq!(named().await, 2);
}

/// Turns that wait for their vectors, few beside those that are there, do not hold a space up.
pub async fn a_busy_space_is_compared_while_its_last_turns_wait(store: &impl SwitchingStore) {
    for number in 1..=12 {
        let turns = (0..100).map(|place| turn(&format!("{number} {place}"), "a text"));
        let told = indexed(batch(&number.to_string(), turns.collect()), number);
        store.commit(vec![told]).await.expect("commit");
    }
    let serve = order(SwitchGoal::Serve, false);
    step(store, &serve, SwitchStep::Build).await;
    assert_eq!(store.steps(Some(&serve), 10).await, Ok(vec![]));
    assert_eq!(fill_first(store, &new_model(), 2_000).await, 1_200);
    for number in 13..=14 {
        tell(store, number).await;
    }
    let left = store.without_vectors(&new_model(), 2_000).await;
    assert_eq!(left.expect("waiting").len(), 2);
    step(store, &serve, SwitchStep::Compare).await;
    step(store, &serve, SwitchStep::Serve).await;
    assert_eq!(serves(store).await.0, Some(new_model()));
}

/// Vectors that a change left in the middle of its first step go with the change.
pub async fn a_roll_back_removes_what_is_half_built(store: &impl SwitchingStore) {
    let old = embedding_space("1");
    for number in 1..=3 {
        tell(store, number).await;
    }
    step(store, &order(SwitchGoal::Serve, false), SwitchStep::Build).await;
    assert_eq!(fill_first(store, &new_model(), 2).await, 2);
    let back = order(SwitchGoal::RollBack, false);
    step(store, &back, SwitchStep::Drop).await;
    assert_eq!(store.steps(Some(&back), 10).await, Ok(vec![]));
    assert_eq!(serves(store).await, (Some(old.clone()), None));
    assert_eq!(embedded(store, &old).await, (3, 3));
    let left = store.without_vectors(&new_model(), 10).await;
    assert_eq!(left, Ok(vec![]));
}

/// Searches change to a model that finds nothing alike at the operator's word alone.
pub async fn an_unlike_model_is_served_when_it_is_forced(store: &impl SwitchingStore) {
    tell(store, 1).await;
    let serve = order(SwitchGoal::Serve, false);
    step(store, &serve, SwitchStep::Build).await;
    assert_eq!(fill(store, &new_model()).await, 1);
    let unlike = SpaceComparison {
        queries: 2,
        overlap: 0.09,
        correlation: 0.0,
    };
    take(store, &serve, SwitchStep::Compare, unlike).await;
    assert_eq!(store.steps(Some(&serve), 10).await, Ok(vec![]));
    take(store, &serve, SwitchStep::Serve, unlike).await;
    assert_eq!(serves(store).await.0, Some(embedding_space("1")));
    let forced = SwitchOrder {
        forced: true,
        ..serve
    };
    step(store, &forced, SwitchStep::Serve).await;
    assert_eq!(serves(store).await.0, Some(new_model()));
}

/// No operator's order moves it then, but one for every language.
pub async fn a_space_follows_its_language_whatever_is_ordered(store: &impl SwitchingStore) {
    let old = embedding_space("1");
    let comparison = SpaceComparison::default();
    for number in 1..=2 {
        tell(store, number).await;
    }
    // The operator wants the model that is there.
    let operator = SwitchOrder {
        target: old.clone(),
        ..order(SwitchGoal::Serve, false)
    };
    store.set_order(&operator).await.expect("order");
    assert_eq!(store.steps(None, 10).await, Ok(vec![]));
    for is_new in [true, false] {
        let noted = store.follow_language(&home(), &new_model()).await;
        assert_eq!(noted, Ok(is_new));
    }
    for (orders, expected) in [
        (Some(&operator), SwitchStep::Build),
        (None, SwitchStep::Compare),
        (Some(&operator), SwitchStep::Serve),
        (None, SwitchStep::Drop),
    ] {
        let steps = store.steps(orders, 10).await.expect("steps");
        let [next] = &steps[..] else {
            panic!("{expected:?}: {steps:?}");
        };
        assert_eq!((&next.scope, next.step), (&home(), expected));
        assert_eq!(next.order, SwitchOrder::for_language(new_model()));
        assert!(next.is_for_language);
        // A step under the operator's order changes nothing here.
        let other = NextStep {
            order: operator.clone(),
            is_for_language: false,
            ..next.clone()
        };
        store.take(&other, comparison).await.expect("take");
        assert_eq!(store.steps(orders, 10).await.as_ref(), Ok(&steps));
        store.take(next, comparison).await.expect("take");
        if expected == SwitchStep::Build {
            assert_eq!(fill(store, &new_model()).await, 2);
        }
    }
    assert_eq!(serves(store).await, (Some(new_model()), None));
    assert_eq!(embedded(store, &new_model()).await, (2, 2));
    assert_eq!(store.steps(Some(&operator), 10).await, Ok(vec![]));
    let progress = store.progress(&operator).await.expect("progress");
    assert_eq!((progress.spaces, progress.serving), (0, 0));
    // An order for every language is for this space, too.
    let every = SwitchOrder {
        every_language: true,
        ..operator
    };
    step(store, &every, SwitchStep::Build).await;
    assert_eq!(fill(store, &old).await, 2);
    step(store, &every, SwitchStep::Compare).await;
    step(store, &every, SwitchStep::Serve).await;
    assert_eq!(serves(store).await.0, Some(old));
    assert_eq!(store.steps(None, 10).await, Ok(vec![]));
}
