//! Finding derivations.

use memfleet_domain::derivation::Kind;
use memfleet_domain::ids::DerivationId;
use memfleet_domain::time::AsOf;

use super::{all, deriving, fact, fragment, make, moved, store};
use crate::conformance::samples::{instant, scope, turn};
use crate::knowledge::{Knowledge, Question};
use crate::ledger::Ledger;

/// In any script.
pub async fn a_fact_reads_back_as_it_was_written<S: Ledger + Knowledge>(store_: &S) {
    let turn = turn("1", "Zoë lebt in 東京.");
    store(store_, &[&turn]).await;
    let fact = fact(&turn, "Zoë", "東京 'quoted' \\ %", instant(10));
    make(store_, deriving(&[&fact])).await;
    assert_eq!(all(store_, &Question::default()).await, [fact]);
}

/// Each condition alone.
pub async fn facts_are_found_by_claim_by_turn_and_by_what_held_when<S: Ledger + Knowledge>(
    store_: &S,
) {
    let (_, oslo, first, second) = moved(store_).await;
    let of = |question: Question| async move { all(store_, &question).await };
    let by_subject = Question {
        subject: Some("ada".into()),
        ..Question::default()
    };
    assert_eq!(of(by_subject).await, [first.clone(), second.clone()]);
    let by_attribute = Question {
        attribute: Some("employer".into()),
        ..Question::default()
    };
    assert_eq!(of(by_attribute).await, []);
    let by_turn = Question {
        turns: vec![oslo.id],
        ..Question::default()
    };
    assert_eq!(of(by_turn).await, std::slice::from_ref(&second));
    let by_id = Question {
        ids: vec![second.id],
        ..Question::default()
    };
    assert_eq!(of(by_id).await, std::slice::from_ref(&second));
    let episodes = Question {
        kind: Some(Kind::Episode),
        ..Question::default()
    };
    assert_eq!(of(episodes).await, []);
    let held = AsOf {
        happened_by: Some(instant(15)),
        known_at: None,
    };
    let by_time = Question {
        as_of: held,
        ..Question::default()
    };
    assert_eq!(of(by_time).await, [first]);
}

/// And by nothing that is only called so.
pub async fn fragments_are_found_by_their_narrative<S: Ledger + Knowledge>(store_: &S) {
    let (garden, boat) = (turn("1", "The garden."), turn("2", "The boat."));
    store(store_, &[&garden, &boat]).await;
    let [one, other] = [&garden, &boat].map(|turn| DerivationId::of_narrative(turn.id));
    let (first, second) = (fragment(&garden, one), fragment(&boat, other));
    let namesake = fact(&boat, &one.to_string(), "Rome", instant(10));
    make(store_, deriving(&[&first])).await;
    make(store_, deriving(&[&second, &namesake])).await;
    let question = Question {
        narrative: Some(one),
        ..Question::default()
    };
    assert_eq!(all(store_, &question).await, [first]);
}

/// One by one.
pub async fn pages_bring_every_derivation_once<S: Ledger + Knowledge>(store_: &S) {
    let (_, _, first, second) = moved(store_).await;
    let home = super::home();
    let question = Question::default();
    let page = store_
        .derivations(&home, &question, 1, None)
        .await
        .expect("an answer");
    assert_eq!(page.items, [first]);
    let next = page.next.expect("there is more");
    let page = store_
        .derivations(&home, &question, 1, Some(&next))
        .await
        .expect("an answer");
    assert_eq!((page.items, page.next), (vec![second], None));
}

/// Also under the same names.
pub async fn another_space_has_facts_of_its_own<S: Ledger + Knowledge>(store_: &S) {
    let (_, _, first, _) = moved(store_).await;
    for other in [scope("acme", "ben"), scope("umbrella", "ada")] {
        let question = Question {
            ids: vec![first.id],
            ..Question::default()
        };
        let page = store_
            .derivations(&other, &question, 9, None)
            .await
            .expect("an answer");
        assert_eq!(page.items, []);
        assert_eq!(
            store_.versions(&other, first.id).await.expect("an answer"),
            []
        );
    }
}
