//! Finding derivations.

use memfleet_domain::derivation::{Body, Kind, Origin, Status};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::time::{AsOf, TimeRange};

use super::{
    all, closing, conflict, deriving, fact, fragment, home, make, moved, statement, store,
};
use crate::conformance::samples::{instant, scope, turn};
use crate::knowledge::{Chronicle, Knowledge, Question, Work};
use crate::ledger::Ledger;

/// In any script.
pub async fn a_fact_reads_back_as_it_was_written<S: Ledger + Knowledge>(store_: &S) {
    let turn = turn("1", "Zoë lebt in 東京.");
    store(store_, &[&turn]).await;
    let fact = fact(&turn, "Zoë", "東京 'quoted' \\ %", instant(10));
    let statement = statement(&turn, "Zoë lebt in 東京.", instant(10));
    make(store_, deriving(&[&fact, &statement])).await;
    assert_eq!(all(store_, &Question::default()).await, [fact, statement]);
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
    let home = home();
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

/// Whatever was written first, page by page; what has no beginning stands where memory learned of it.
pub async fn a_chronicle_is_in_the_order_of_time<S: Ledger + Knowledge>(store_: &S) {
    let turns = ["1", "2", "3"].map(|number| turn(number, "I live there."));
    store(store_, &turns.each_ref()).await;
    let [late, timeless, early] = &turns;
    let late = fact(late, "Ada", "Oslo", instant(20));
    let mut timeless = fact(timeless, "Ada", "Bergen", instant(30));
    timeless.valid = TimeRange::default();
    let early = fact(early, "Ada", "Rome", instant(10));
    for fact in [&late, &timeless, &early] {
        make(store_, deriving(&[fact])).await;
    }
    assert_eq!(timeless.known.start, Some(instant(1)));
    let (mut read, mut after) = (Vec::new(), None);
    loop {
        let page = store_
            .chronicle(&home(), &Chronicle::default(), 1, after.as_ref())
            .await
            .expect("an answer");
        read.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(read, [timeless, early, late]);
}

/// Each condition alone.
pub async fn a_chronicle_is_of_what_is_asked_for<S: Ledger + Knowledge>(store_: &S) {
    let (_, oslo, first, second) = moved(store_).await;
    make(store_, closing(&first, &second, 30)).await;
    let closed = store_.versions(&home(), first.id).await;
    let closed = closed.expect("an answer").pop().expect("a version");
    let all = Chronicle::default();
    let cases = [
        (all.clone(), vec![closed.clone(), second.clone()]),
        (
            Chronicle {
                kinds: vec![Kind::Episode],
                ..all.clone()
            },
            vec![],
        ),
        (
            Chronicle {
                subjects: vec!["ben".into(), "ada".into()],
                ..all.clone()
            },
            vec![closed.clone(), second.clone()],
        ),
        (
            Chronicle {
                subjects: vec!["ben".into()],
                ..all.clone()
            },
            vec![],
        ),
        (
            Chronicle {
                turns: vec![oslo.id],
                ..all.clone()
            },
            vec![second.clone()],
        ),
        (
            Chronicle {
                begins: TimeRange {
                    start: Some(instant(10)),
                    end: Some(instant(20)),
                },
                ..all.clone()
            },
            vec![closed],
        ),
        (
            Chronicle {
                as_of: AsOf {
                    happened_by: Some(instant(25)),
                    known_at: None,
                },
                ..all
            },
            vec![second],
        ),
    ];
    for (chronicle, expected) in cases {
        let page = store_.chronicle(&home(), &chronicle, 9, None).await;
        let page = page.expect("an answer");
        assert_eq!(page.items, expected, "{chronicle:?}");
    }
}

/// Facts of callers, then statements by what their reader says, with a clause or without; equal
/// ones by time, then by id.
pub async fn the_worthiest_facts_come_first_and_rules_have_none<S: Ledger + Knowledge>(store_: &S) {
    let text = "I paint. I swim. I sing. I read \"keep\":1 \u{0}. I ski. I live in Rome.";
    let turn = turn("1", text);
    store(store_, &[&turn]).await;
    let worth = |words: &str, keep: f32, second: i64| {
        let mut fact = statement(&turn, words, instant(second));
        if let Body::Fact(draft) = &mut fact.body
            && let Some(labels) = &mut draft.statement
        {
            labels.keep = keep;
        }
        fact
    };
    let zero = worth("I read \"keep\":1 \u{0}.", 1e-7, 10);
    let early = worth("I paint.", 0.6, 10);
    let late = worth("I swim.", 0.6, 20);
    let mut best = worth("I sing.", 0.9, 30);
    let later = worth("I ski.", 0.95, 90);
    let by_rules = fact(&turn, "Ada", "Rome", instant(5));
    if let Body::Fact(draft) = &mut best.body {
        draft.clause = by_rules.fact().and_then(|fact| fact.clause.clone());
    }
    let mut of_caller = fact(&turn, "Ada", "Oslo", instant(40));
    of_caller.origin = Origin::Corrected;
    let of_other = fact(&turn, "Ben", "Oslo", instant(40));
    let all = [
        &late, &best, &zero, &early, &by_rules, &of_caller, &later, &of_other,
    ];
    make(store_, deriving(&all)).await;
    let at = |second| AsOf {
        happened_by: Some(instant(second)),
        known_at: None,
    };
    let found = async |subject: &str, as_of: AsOf, limit: u32| {
        let found = store_.worthiest(&home(), subject, as_of, limit).await;
        found.expect("an answer")
    };
    let expected = [&of_caller, &best, &early, &late, &zero].map(Clone::clone);
    assert_eq!(found("ada", at(50), 9).await, expected);
    assert_eq!(found("ada", at(50), 2).await, expected[..2]);
    assert_eq!(found("ada", at(25), 9).await, expected[2..]);
    assert_eq!(found("ada", AsOf::default(), 2).await, [of_caller, later]);
    assert_eq!(found("ben", at(50), 9).await, []);
    let elsewhere = scope("acme", "ben");
    let none = store_.worthiest(&elsewhere, "ada", at(50), 9).await;
    assert_eq!(none.expect("an answer"), []);
}

/// Whichever of the two facts it is, and with which status.
pub async fn conflicts_are_found_by_their_facts<S: Ledger + Knowledge>(store_: &S) {
    let (_, _, first, second) = moved(store_).await;
    let found = conflict(&first, &second);
    let work = Work {
        found: vec![found.clone()],
        ..Work::default()
    };
    store_.apply(&home(), work).await.expect("an answer");
    let other = DerivationId::from_bytes([9; 16]);
    for (facts, statuses, expected) in [
        (vec![first.id], vec![], vec![found.clone()]),
        (
            vec![other, second.id],
            vec![Status::Found],
            vec![found.clone()],
        ),
        (vec![first.id, second.id], vec![], vec![found]),
        (vec![first.id], vec![Status::Settled], vec![]),
        (vec![other], vec![], vec![]),
        (vec![], vec![], vec![]),
    ] {
        let conflicts = store_.conflicts_of(&home(), &facts, &statuses).await;
        assert_eq!(conflicts.expect("an answer"), expected, "{statuses:?}");
    }
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
