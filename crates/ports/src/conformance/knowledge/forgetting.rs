//! What is derived goes with the turns that it comes from.

use memfleet_domain::derivation::ChangeKind;
use memfleet_domain::ids::{ChangeId, TurnId};

use super::restoring::undoing;
use super::{all, change, closing, conflict, deriving, fact, home, make, moved, store};
use crate::conformance::samples::{instant, turn};
use crate::erasure::{DependentCounts, Erasure};
use crate::feed::{Change, IndexFeed};
use crate::filter::TurnFilter;
use crate::knowledge::{
    ChangeFilter, Knowledge, Progress, Question, Revision, Rewrite, Stage, WINDOW, Work,
};
use crate::ledger::Ledger;

pub(super) async fn forget(erasure: &impl Erasure, turn: TurnId) {
    let filter = TurnFilter {
        turns: vec![turn],
        ..TurnFilter::default()
    };
    erasure.erase(&home(), &filter).await.expect("an answer");
}

/// With its history.
pub async fn what_a_forgotten_turn_stated_is_gone<S: Ledger + Knowledge + Erasure>(store: &S) {
    let (rome, _, first, second) = moved(store).await;
    forget(store, rome.id).await;
    assert_eq!(all(store, &Question::default()).await, [second]);
    assert_eq!(
        store.versions(&home(), first.id).await.expect("an answer"),
        []
    );
    let changes = store
        .changes(&home(), &ChangeFilter::default(), 9, None)
        .await
        .expect("an answer");
    assert_eq!(changes.items.len(), 1);
}

/// The same in a plan and in the deed.
pub async fn a_forget_counts_what_is_made_from_its_turns<S: Ledger + Knowledge + Erasure>(
    store: &S,
) {
    let (rome, ..) = moved(store).await;
    let one = TurnFilter {
        turns: vec![rome.id],
        ..TurnFilter::default()
    };
    for (filter, facts) in [(one, 1), (TurnFilter::default(), 1)] {
        let planned = store.plan(&home(), &filter).await.expect("a plan");
        let expected = DependentCounts {
            facts,
            ..DependentCounts::default()
        };
        assert_eq!(planned.dependents, expected);
        let erased = store.erase(&home(), &filter).await.expect("an answer");
        assert_eq!(erased, planned);
    }
}

/// Who follows has seen the turns of the last version alone.
pub async fn what_drew_on_a_forgotten_turn_in_an_earlier_version_is_withdrawn<
    S: Ledger + Knowledge + Erasure + IndexFeed,
>(
    store: &S,
) {
    let (rome, oslo, first, second) = moved(store).await;
    let id = ChangeId::of("test", &[b"again"]);
    let mut again = first.next(id);
    again.turns = vec![oslo.id];
    again.known.start = Some(instant(30));
    let revision = Revision {
        derivation: again,
        passage: None,
    };
    make(
        store,
        Rewrite {
            change: change(id, ChangeKind::Corrected, 30),
            revisions: vec![revision],
        },
    )
    .await;
    let head = store.head(&home()).await.expect("an answer");
    forget(store, rome.id).await;
    assert_eq!(all(store, &Question::default()).await, [second]);
    let after = store.changes_after(&home(), head, 9).await;
    let after = after.expect("an answer");
    // The turn after it is read again.
    let [
        Change::Withdrawn(gone),
        Change::Stored(near),
        Change::Forgotten(turn),
    ] = &after.changes[..]
    else {
        panic!("{:?} was not expected", after.changes);
    };
    assert_eq!((*gone, near.id, *turn), (first.id, oslo.id, rome.id));
    assert_eq!(store.head(&home()).await.expect("an answer"), after.reached);
}

/// Else its end would tell of what is forgotten.
pub async fn forgetting_the_newer_fact_opens_the_older_again<S: Ledger + Knowledge + Erasure>(
    store: &S,
) {
    let (_, oslo, first, second) = moved(store).await;
    let found = Work {
        found: vec![conflict(&first, &second)],
        ..Work::default()
    };
    store.apply(&home(), found).await.expect("an answer");
    make(store, closing(&first, &second, 30)).await;
    forget(store, oslo.id).await;
    // Not even the date of what was said is left.
    assert_eq!(
        all(store, &Question::default()).await,
        std::slice::from_ref(&first)
    );
    assert_eq!(
        store.versions(&home(), first.id).await.expect("an answer"),
        [first]
    );
    assert_eq!(
        store
            .conflicts(&home(), &[], 9, None)
            .await
            .expect("an answer")
            .items,
        []
    );
    let changes = store
        .changes(&home(), &ChangeFilter::default(), 9, None)
        .await
        .expect("an answer");
    assert_eq!(changes.items.len(), 1);
}

/// A caller had undone the closing before.
pub async fn forgetting_the_newer_fact_leaves_no_time_at_which_the_older_was_unknown<S>(store: &S)
where
    S: Ledger + Knowledge + Erasure,
{
    let (_, oslo, first, second) = moved(store).await;
    let settling = closing(&first, &second, 30);
    make(store, settling.clone()).await;
    make(store, undoing(&settling, &first, 40)).await;
    forget(store, oslo.id).await;
    let versions = store.versions(&home(), first.id).await.expect("an answer");
    let known = versions.iter().map(|it| (it.version, it.known.end));
    assert_eq!(
        known.collect::<Vec<_>>(),
        [(1, Some(instant(40))), (3, None)]
    );
}

/// However small the pages are in which it is read.
pub async fn every_fact_that_a_forget_opens_is_a_change_of_its_own<
    S: Ledger + Knowledge + Erasure + IndexFeed,
>(
    store_: &S,
) {
    let rome: Vec<_> = (0..7)
        .map(|n| turn(&format!("rome {n}"), "I live in Rome."))
        .collect();
    let oslo = turn("oslo", "We moved to Oslo.");
    let turns: Vec<_> = rome.iter().chain([&oslo]).collect();
    store(store_, &turns).await;
    let newer = fact(&oslo, "We", "Oslo", instant(20));
    make(store_, deriving(&[&newer])).await;
    let mut older = Vec::new();
    for (turn, number) in rome.iter().zip(0..) {
        let fact = fact(turn, &format!("Ada {number}"), "Rome", instant(10));
        make(store_, deriving(&[&fact])).await;
        make(store_, closing(&fact, &newer, 30)).await;
        older.push(fact.id);
    }
    let head = store_.head(&home()).await.expect("an answer");
    forget(store_, oslo.id).await;
    for limit in 1..10 {
        let (mut reached, mut opened) = (head, Vec::new());
        loop {
            let page = store_.changes_after(&home(), reached, limit).await;
            let page = page.expect("an answer");
            let derived = page.changes.iter().filter_map(|change| match change {
                Change::Derived(derived) => Some(derived.id),
                _ => None,
            });
            opened.extend(derived);
            assert!(page.reached > reached && page.changes.len() <= limit as usize);
            reached = page.reached;
            if !page.more {
                break;
            }
        }
        assert_eq!(opened, older, "in pages of {limit}");
        assert_eq!(reached, store_.head(&home()).await.expect("an answer"));
    }
}

/// Told anew, it begins anew.
pub async fn forgetting_a_space_leaves_nothing_derived<S: Ledger + Knowledge + Erasure>(
    store_: &S,
) {
    let (rome, _, first, _) = moved(store_).await;
    store_
        .claim(&home(), Stage::Derive, instant(0), instant(9))
        .await
        .expect("an answer");
    store_
        .erase(&home(), &TurnFilter::default())
        .await
        .expect("an answer");
    assert_eq!(
        store_.pending(Stage::Derive, 9).await.expect("an answer"),
        []
    );
    // Who would work on it finds nothing to work on.
    let scope = home();
    let claimed = store_.claim(&scope, Stage::Derive, instant(0), instant(9));
    assert_eq!(claimed.await.expect("an answer"), None);
    // Told anew, the space begins anew.
    let mut again = crate::conformance::samples::batch("again", vec![rome.clone()]);
    again.turns[0].recorded_at = instant(50);
    let again = crate::conformance::samples::indexed(again, 9);
    store_.commit(vec![again]).await.expect("an answer");
    assert_eq!(
        all(
            store_,
            &Question {
                withdrawn: true,
                ..Question::default()
            }
        )
        .await,
        []
    );
    make(
        store_,
        deriving(&[&fact(&rome, "Ada", "Rome", instant(10))]),
    )
    .await;
    assert_eq!(
        store_
            .versions(&home(), first.id)
            .await
            .expect("an answer")
            .len(),
        1
    );
}

/// However long the session is; where every stage stands stays.
pub async fn a_forget_has_a_bounded_part_of_the_session_read_again<
    S: Ledger + Knowledge + Erasure + IndexFeed,
>(
    store_: &S,
) {
    let turns: Vec<_> = (0..40)
        .map(|number| turn(&number.to_string(), "It was said."))
        .collect();
    store(store_, &turns.iter().collect::<Vec<_>>()).await;
    // One fact a turn; that of turn 30 took words from turn 10.
    for (number, said) in turns.iter().enumerate() {
        let mut fact = fact(said, &format!("Ada {number}"), "Rome", instant(10));
        if number == 30 {
            fact.turns.push(turns[10].id);
        }
        make(store_, deriving(&[&fact])).await;
    }
    let rebuilding = store_.begin_rebuild(&home()).await.expect("an answer");
    assert!(rebuilding.is_some());
    let to = store_.head(&home()).await.expect("an answer");
    let stages = [Stage::Derive, Stage::Episodes, Stage::Judge];
    for stage in stages {
        let claimed = store_.claim(&home(), stage, instant(0), instant(9)).await;
        let from = claimed.expect("an answer").expect("it is free");
        let work = Work {
            progress: Some(Progress { stage, from, to }),
            ..Work::default()
        };
        store_.apply(&home(), work).await.expect("an answer");
    }
    forget(store_, turns[10].id).await;
    for stage in stages {
        let position = store_.position(&home(), stage).await.expect("an answer");
        assert_eq!(position.expect("a position").reached, to);
    }
    let page = store_.changes_after(&home(), to, 100).await;
    let changes = page.expect("an answer").changes;
    let read: Vec<_> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Stored(turn) => Some(turn.id),
            _ => None,
        })
        .collect();
    let window = 11..11 + WINDOW as usize;
    let mut expected: Vec<_> = window.chain([30]).map(|number| turns[number].id).collect();
    let mut sorted = read.clone();
    expected.sort();
    sorted.sort();
    assert_eq!(sorted, expected);
    // A rebuild has not read them yet.
    let rebuilding = store_.rebuilding(&home()).await.expect("an answer");
    let after_goal = store_
        .changes_after(&home(), rebuilding.expect("a rebuild").goal, 100)
        .await
        .expect("an answer");
    let is_stored = |change: &Change| matches!(change, Change::Stored(_));
    assert!(!after_goal.changes.iter().any(is_stored));
}

/// A fact that took words from a forgotten turn goes; its own turn is read again without them.
pub async fn turns_beside_forgotten_ones_are_pending_again<
    S: Ledger + Knowledge + Erasure + IndexFeed,
>(
    store_: &S,
) {
    let (rome, oslo) = (turn("1", "Ada is here."), turn("2", "She lives in Oslo."));
    store(store_, &[&rome, &oslo]).await;
    let mut fact = fact(&oslo, "Ada", "Oslo", instant(20));
    fact.turns.push(rome.id);
    make(store_, deriving(&[&fact])).await;
    store_
        .claim(&home(), Stage::Derive, instant(0), instant(9))
        .await
        .expect("an answer");
    let (stage, to) = (
        Stage::Derive,
        store_.head(&home()).await.expect("an answer"),
    );
    let progress = Some(Progress { stage, from: 0, to });
    store_
        .apply(
            &home(),
            Work {
                progress,
                ..Work::default()
            },
        )
        .await
        .expect("an answer");
    forget(store_, rome.id).await;
    assert_eq!(all(store_, &Question::default()).await, []);
    let released = store_.release(&home(), stage, instant(9)).await;
    released.expect("an answer");
    let reached = store_
        .claim(&home(), stage, instant(0), instant(9))
        .await
        .expect("an answer")
        .expect("an answer");
    let after = store_
        .changes_after(&home(), reached, 9)
        .await
        .expect("an answer")
        .changes;
    let is_oslo = |change: &Change| matches!(change, Change::Stored(turn) if turn.id == oslo.id);
    assert!(after.iter().any(is_oslo));
}
