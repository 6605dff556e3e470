//! Turns that go, and all that hangs on them.

use std::collections::HashSet;

use memfleet_domain::Scope;
use memfleet_domain::ingestion::TurnState;
use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::{AcceptedTurn, Role};

use super::{Store, by_turn, commit, conversation, erase, left};
use crate::conformance::samples::{
    batch, batch_in, edit, home, indexed, instant, scope, session, speaker, turn, turn_in,
};

use crate::erasure::Erased;
use crate::feed::Change;
use crate::filter::TurnFilter;
use crate::ledger::Ledger;
use crate::subject::Subject;

/// A dry run.
pub async fn a_plan_says_what_an_erase_removes_and_touches_nothing(store: &impl Store) {
    let turns = conversation(store).await;
    let filter = TurnFilter {
        speakers: vec![speaker("Ben")],
        ..TurnFilter::default()
    };
    let head = store.head(&home()).await;
    let planned = store.plan(&home(), &filter).await.expect("plan");
    assert_eq!(store.head(&home()).await, head);
    assert_eq!(left(store).await.len(), turns.len());
    assert_eq!(erase(store, &filter).await, planned);
    assert_eq!(planned.turns.len(), 3);
    assert_eq!(planned.passages, 6);
    assert_eq!(
        (
            planned.emptied_sessions.len(),
            planned.undelivered,
            planned.space
        ),
        (0, 0, false)
    );
}

/// By turn, session, speaker, role, time, label.
pub async fn each_way_to_forget_removes_what_it_names(store: &impl Store) {
    let turns = conversation(store).await;
    let none = TurnFilter::default;
    let mut expected: Vec<usize> = (0..6).collect();
    for (filter, gone, emptied) in [
        (by_turn(&turns[5]), vec![5], vec![]),
        (
            TurnFilter {
                sessions: vec![session("s1")],
                ..none()
            },
            vec![2, 3],
            vec!["s1"],
        ),
        (
            TurnFilter {
                metadata: vec![("n".into(), "0".into())],
                ..none()
            },
            vec![0],
            vec![],
        ),
        (
            TurnFilter {
                time: TimeRange {
                    start: Some(instant(400)),
                    end: Some(instant(401)),
                },
                ..none()
            },
            vec![4],
            vec!["s2"],
        ),
        (
            TurnFilter {
                roles: vec![Role::Assistant],
                speakers: vec![speaker("Ben")],
                ..none()
            },
            vec![1],
            vec!["s0"],
        ),
    ] {
        let erased = erase(store, &filter).await;
        let ids: Vec<_> = gone.iter().map(|n: &usize| turns[*n].id).collect();
        assert_eq!(erased.turns, ids, "{filter:?}");
        assert_eq!(
            erased.emptied_sessions,
            emptied.into_iter().map(session).collect::<Vec<_>>()
        );
        expected.retain(|n| !gone.contains(n));
        let ids: Vec<_> = expected.iter().map(|n| turns[*n].id).collect();
        assert_eq!(left(store).await, ids, "{filter:?}");
    }
}

/// Exactly the names that are given, whatever replaced the turn. A second time nothing is left to
/// go.
pub async fn every_name_of_a_person_goes_from_one_space_and_no_other(store: &impl Store) {
    let said = |scope: &Scope, name: &str, text: &str| AcceptedTurn {
        speaker: speaker(name),
        ..turn_in(scope, "s1", text, text)
    };
    let other = scope("acme", "bob");
    let old = said(&home(), "A. Lovelace", "one");
    let new = AcceptedTurn {
        speaker: speaker("Ada"),
        ..edit(&old, "two", "two")
    };
    let rest = ["Bob", "ada", "Ada L"].map(|name| said(&home(), name, name));
    let told = [vec![old.clone(), new.clone()], rest.to_vec()].concat();
    commit(store, "k", told, 1).await;
    let elsewhere = batch_in(&other, "k", vec![said(&other, "Ada", "three")]);
    let stored = store.commit(vec![indexed(elsewhere, 2)]).await;
    stored.expect("commit");
    let person = Subject {
        name: speaker("Ada"),
        aliases: vec![speaker("A. Lovelace")],
    };
    let erased = erase(store, &person.filter()).await;
    let gone: HashSet<_> = erased.turns.iter().copied().collect();
    assert_eq!(gone, [old.id, new.id].into());
    assert_eq!(left(store).await, rest.map(|turn| turn.id));
    assert_eq!(erase(store, &person.filter()).await, Erased::default());
    let page = Ledger::list(store, &other, &person.filter(), 10, None).await;
    assert_eq!(page.expect("list").items.len(), 1);
}

/// Turn, history, labels, vectors, sessions, counts.
pub async fn what_is_forgotten_is_gone_from_every_read(store: &impl Store) {
    let turns = conversation(store).await;
    let changes = store
        .changes_after(&home(), 0, 100)
        .await
        .expect("changes")
        .changes;
    let passage = changes.iter().find_map(|change| match change {
        Change::Stored(turn) if turn.id == turns[3].id => Some(turn.first_passage),
        _ => None,
    });
    let passage = passage.expect("the feed brings every turn");
    erase(
        store,
        &TurnFilter {
            sessions: vec![session("s1")],
            ..TurnFilter::default()
        },
    )
    .await;
    let id = turns[3].id;
    assert_eq!(store.turns(&home(), &[id]).await, Ok(vec![]));
    assert_eq!(store.history(&home(), id).await, Ok(vec![]));
    assert_eq!(
        store
            .with_metadata(&home(), &[("n".into(), "3".into())])
            .await,
        Ok(vec![])
    );
    let vectors = store
        .token_vectors(&home(), None, &[passage, passage + 1])
        .await;
    assert_eq!(vectors, Ok(vec![None, None]));
    let sessions = store
        .sessions(&home(), 10, None)
        .await
        .expect("sessions")
        .items;
    assert_eq!(
        sessions
            .iter()
            .map(|session| session.turns)
            .collect::<Vec<_>>(),
        [2, 2]
    );
    let space = store
        .get(&home())
        .await
        .expect("get")
        .expect("the space stays");
    assert_eq!((space.sessions, space.turns), (2, 4));
}

/// An index that had it lets go of it, one that had not learns nothing of it.
pub async fn the_feed_says_what_was_forgotten(store: &impl Store) {
    let turns = conversation(store).await;
    let before = store.head(&home()).await.expect("head");
    erase(
        store,
        &TurnFilter {
            sessions: vec![session("s0")],
            ..TurnFilter::default()
        },
    )
    .await;
    let changes = store
        .changes_after(&home(), before, 100)
        .await
        .expect("changes");
    let mut forgotten: Vec<_> = changes
        .changes
        .iter()
        .map(|change| match change {
            Change::Forgotten(id) => *id,
            other => panic!("{other:?} was not expected"),
        })
        .collect();
    forgotten.sort();
    let mut expected = [turns[0].id, turns[1].id];
    expected.sort();
    assert_eq!(forgotten, expected);
    assert_eq!(changes.reached, store.head(&home()).await.expect("head"));
    for limit in 1..8 {
        assert_eq!(count_from_0(store, limit).await, (4, 2), "{limit} a page");
    }
}

/// How many turns were stored and forgotten, read in pages.
async fn count_from_0(store: &impl Store, limit: u32) -> (usize, usize) {
    let (mut reached, mut stored, mut forgotten) = (0, 0, 0);
    loop {
        let page = store
            .changes_after(&home(), reached, limit)
            .await
            .expect("changes");
        for change in page.changes {
            match change {
                Change::Stored(_) => stored += 1,
                Change::Forgotten(_) => forgotten += 1,
                other => panic!("{other:?} was not expected"),
            }
        }
        reached = page.reached;
        if !page.more {
            return (stored, forgotten);
        }
    }
}

/// Without the hash of what they said.
pub async fn a_batch_says_that_its_turns_were_forgotten(store: &impl Store) {
    let turns = conversation(store).await;
    erase(store, &by_turn(&turns[2])).await;
    let id = batch("conversation", vec![]).id;
    let status = store
        .batch(&home(), id)
        .await
        .expect("batch")
        .expect("known");
    assert_eq!(status.payload_hash, None);
    for (receipt, turn) in status.turns.iter().zip(&turns) {
        let forgotten = turn.id == turns[2].id;
        assert_eq!(
            receipt.state,
            if forgotten {
                TurnState::Forgotten
            } else {
                TurnState::Stored
            }
        );
    }
}

/// Nor does it move the head.
pub async fn a_filter_that_matches_nothing_removes_nothing(store: &impl Store) {
    let nowhere = TurnFilter {
        sessions: vec![session("nowhere")],
        ..TurnFilter::default()
    };
    assert_eq!(erase(store, &nowhere).await, Erased::default());
    conversation(store).await;
    let head = store.head(&home()).await;
    assert_eq!(erase(store, &nowhere).await, Erased::default());
    let bob = scope("acme", "bob");
    assert_eq!(
        store.erase(&bob, &TurnFilter::default()).await,
        Ok(Erased::default())
    );
    assert_eq!(store.head(&home()).await, head);
    assert_eq!(left(store).await.len(), 6);
}

/// Gaps stay gaps.
pub async fn positions_and_order_of_what_stays_do_not_change(store: &impl Store) {
    let turns: Vec<_> = (0..5)
        .map(|n| turn(&n.to_string(), &n.to_string()))
        .collect();
    commit(store, "k", turns.clone(), 1).await;
    erase(
        store,
        &TurnFilter {
            turns: vec![turns[0].id, turns[2].id],
            ..TurnFilter::default()
        },
    )
    .await;
    commit(store, "k2", vec![turn("5", "5")], 2).await;
    let page = Ledger::list(store, &home(), &TurnFilter::default(), 10, None)
        .await
        .expect("list");
    for turn in &page.items {
        assert_eq!(turn.position.to_string(), turn.accepted.content.text);
    }
    assert_eq!(page.items.len(), 4);
}
