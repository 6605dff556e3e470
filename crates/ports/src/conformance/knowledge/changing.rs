//! Changes: made once, on what they rest on, listed and undone.

use memfleet_domain::derivation::{ChangeKind, Derivation, Status};
use memfleet_domain::ids::ChangeId;
use memfleet_domain::time::AsOf;

use super::{all, change, closing, conflict, deriving, fact, home, make, moved};
use crate::conformance::samples::{batch, edit, indexed, instant, turn};
use crate::knowledge::{Applied, ChangeFilter, Knowledge, Question, Revision, Rewrite, Work};
use crate::ledger::Ledger;

fn only(rewrite: Rewrite) -> Work {
    Work {
        rewrites: vec![rewrite],
        ..Work::default()
    }
}

/// As after a redelivery.
pub async fn a_change_that_is_made_twice_is_one<S: Ledger + Knowledge>(store: &S) {
    let (_, _, first, second) = moved(store).await;
    for _ in 0..2 {
        make(store, deriving(&[&first])).await;
        make(store, closing(&first, &second, 30)).await;
    }
    assert_eq!(
        store
            .versions(&home(), first.id)
            .await
            .expect("an answer")
            .len(),
        2
    );
}

/// Two agents decided on the same version: the second reads again.
pub async fn a_version_that_skips_one_is_stale_and_leaves_nothing<S: Ledger + Knowledge>(
    store: &S,
) {
    let (_, _, first, second) = moved(store).await;
    make(store, closing(&first, &second, 30)).await;
    let id = ChangeId::of("test", &[b"late"]);
    let late = Rewrite {
        change: change(id, ChangeKind::Corrected, 40),
        // Decided on the first version, which is not the current one any more.
        revisions: vec![Revision {
            derivation: first.next(id),
            passage: None,
        }],
    };
    let before = all(store, &Question::default()).await;
    let found = Work {
        found: vec![conflict(&first, &second)],
        ..only(late)
    };
    assert_eq!(
        store.apply(&home(), found).await.expect("an answer"),
        Applied::Stale
    );
    assert_eq!(all(store, &Question::default()).await, before);
    assert_eq!(
        store
            .conflicts(&home(), &[], 9, None)
            .await
            .expect("an answer")
            .items,
        []
    );
}

/// It may have been forgotten while the agent thought.
pub async fn a_fact_of_a_turn_that_is_not_there_is_stale<S: Ledger + Knowledge>(store: &S) {
    let (_, _, first, _) = moved(store).await;
    let fact = fact(
        &turn("unknown", "I live in Kyiv."),
        "Ada",
        "Kyiv",
        instant(5),
    );
    let work = only(deriving(&[&fact]));
    assert_eq!(
        store.apply(&home(), work.clone()).await.expect("an answer"),
        Applied::Stale
    );
    let nowhere = crate::conformance::samples::scope("acme", "nowhere");
    assert_eq!(
        store.apply(&nowhere, work).await.expect("an answer"),
        Applied::Stale
    );
    assert_eq!(
        all(
            store,
            &Question {
                ids: vec![first.id],
                ..Question::default()
            }
        )
        .await
        .len(),
        1
    );
}

/// It may have been replaced while the agent thought; what it stated before is withdrawn all the same.
pub async fn a_fact_of_a_turn_that_was_replaced_is_stale<S: Ledger + Knowledge>(store: &S) {
    let (rome, _, first, _) = moved(store).await;
    let edited = edit(&rome, "edited", "Scratch that.");
    let edited = indexed(batch("edited", vec![edited]), 9);
    store.commit(vec![edited]).await.expect("an answer");
    let late = fact(&rome, "Ada", "Kyiv", instant(5));
    let late = deriving(&[&Derivation {
        change: ChangeId::of("late", &[b"x"]),
        ..late
    }]);
    let applied = store.apply(&home(), only(late)).await.expect("an answer");
    assert_eq!(applied, Applied::Stale);
    let withdrawn = ChangeId::of("replaced", &[b"x"]);
    let revision = Revision {
        derivation: first.next(withdrawn).withdrawn(),
        passage: None,
    };
    let rewrite = Rewrite {
        change: change(withdrawn, ChangeKind::Derived, 9),
        revisions: vec![revision],
    };
    let applied = store.apply(&home(), only(rewrite)).await;
    assert!(matches!(applied, Ok(Applied::Done(_))));
}

/// On both axes.
pub async fn the_past_reads_as_it_was_known<S: Ledger + Knowledge>(store: &S) {
    let (_, _, first, second) = moved(store).await;
    make(store, closing(&first, &second, 30)).await;
    let at = |known: Option<i64>, happened: i64| Question {
        as_of: AsOf {
            known_at: known.map(instant),
            happened_by: Some(instant(happened)),
        },
        ..Question::default()
    };
    let texts = |question: Question| async move {
        let facts = all(store, &question).await;
        facts
            .iter()
            .map(|fact| fact.fact().expect("an answer").claim.value.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(at(None, 25)).await, ["oslo"]);
    assert_eq!(texts(at(None, 15)).await, ["rome"]);
    assert_eq!(texts(at(Some(29), 25)).await, ["rome", "oslo"]);
    assert_eq!(texts(at(Some(30), 25)).await, ["oslo"]);
    assert_eq!(texts(at(Some(0), 25)).await, [""; 0]);
    let [known, current] = &store.versions(&home(), first.id).await.expect("an answer")[..] else {
        panic!("there are two versions")
    };
    assert_eq!(
        (known.known.end, current.known.start),
        (Some(instant(30)), Some(instant(30)))
    );
    assert_eq!(
        (current.valid.end, current.succeeded_by),
        (Some(instant(20)), Some(second.id))
    );
}

/// In pages, or of one derivation.
pub async fn changes_are_listed_newest_first_with_what_they_wrote<S: Ledger + Knowledge>(
    store: &S,
) {
    let (_, _, first, second) = moved(store).await;
    make(store, closing(&first, &second, 30)).await;
    let changes = store
        .changes(&home(), &ChangeFilter::default(), 2, None)
        .await
        .expect("an answer");
    let kinds: Vec<_> = changes
        .items
        .iter()
        .map(|recorded| recorded.change.kind)
        .collect();
    assert_eq!(kinds, [ChangeKind::Updated, ChangeKind::Derived]);
    assert_eq!(changes.items[0].wrote[0].version, 2);
    let rest = store
        .changes(&home(), &ChangeFilter::default(), 2, changes.next.as_ref())
        .await
        .expect("an answer");
    assert_eq!((rest.items.len(), rest.items[0].wrote[0].id), (1, first.id));
    let of_second = ChangeFilter {
        derivation: Some(second.id),
        ..ChangeFilter::default()
    };
    let changes = store
        .changes(&home(), &of_second, 9, None)
        .await
        .expect("an answer")
        .items;
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].wrote, [second]);
}

/// And names what undid it.
pub async fn a_change_that_was_undone_says_so<S: Ledger + Knowledge>(store: &S) {
    let (_, _, first, second) = moved(store).await;
    let closing = closing(&first, &second, 30);
    make(store, closing.clone()).await;
    let id = ChangeId::of("reverted", &[closing.change.id.as_bytes()]);
    let mut reopened = closing.revisions[0].derivation.next(id);
    (reopened.valid, reopened.succeeded_by) = (first.valid, None);
    let mut reverting = change(id, ChangeKind::Reverted, 40);
    reverting.reverts = Some(closing.change.id);
    let revisions = vec![Revision {
        derivation: reopened,
        passage: None,
    }];
    make(
        store,
        Rewrite {
            change: reverting,
            revisions,
        },
    )
    .await;
    let filter = ChangeFilter {
        ids: vec![closing.change.id],
        ..ChangeFilter::default()
    };
    let undone = store
        .changes(&home(), &filter, 9, None)
        .await
        .expect("an answer")
        .items;
    assert_eq!(undone[0].reverted_by, Some(id));
    let current = all(
        store,
        &Question {
            ids: vec![first.id],
            ..Question::default()
        },
    )
    .await;
    assert_eq!((current[0].version, current[0].valid), (3, first.valid));
}

/// What a caller dismissed is not brought up again.
pub async fn conflicts_keep_what_became_of_them<S: Ledger + Knowledge>(store: &S) {
    let (_, _, first, second) = moved(store).await;
    let conflict = conflict(&first, &second);
    let found = Work {
        found: vec![conflict.clone()],
        ..Work::default()
    };
    store
        .apply(&home(), found.clone())
        .await
        .expect("an answer");
    let settled = Work {
        settled: vec![(conflict.id, Status::Dismissed)],
        ..Work::default()
    };
    store.apply(&home(), settled).await.expect("an answer");
    // Found again it stays what it is, and who read it before that cannot settle it.
    store.apply(&home(), found).await.expect("an answer");
    let late = Work {
        rewrites: vec![closing(&first, &second, 30)],
        settled: vec![(conflict.id, Status::Settled)],
        ..Work::default()
    };
    let late = store.apply(&home(), late).await;
    assert_eq!(late.expect("an answer"), Applied::Stale);
    let now = all(store, &Question::default()).await;
    assert!(now.iter().all(|fact| fact.version == 1));
    let open = store
        .conflicts(&home(), &[Status::Found, Status::Open], 9, None)
        .await
        .expect("an answer");
    assert_eq!(open.items, []);
    let all = store
        .conflicts(&home(), &[], 9, None)
        .await
        .expect("an answer")
        .items;
    assert_eq!(
        all,
        [memfleet_domain::derivation::Conflict {
            status: Status::Dismissed,
            ..conflict
        }]
    );
}

/// Facts change after a conflict between them was settled.
pub async fn a_conflict_that_is_found_after_it_was_settled_is_found<S: Ledger + Knowledge>(
    store: &S,
) {
    let (_, _, first, second) = moved(store).await;
    let conflict = conflict(&first, &second);
    let found = Work {
        found: vec![conflict.clone()],
        ..Work::default()
    };
    let settled = Work {
        settled: vec![(conflict.id, Status::Settled)],
        ..Work::default()
    };
    for work in [found.clone(), settled, found] {
        store.apply(&home(), work).await.expect("an answer");
    }
    let all = store.conflicts(&home(), &[], 9, None).await;
    assert_eq!(all.expect("an answer").items, [conflict]);
}

/// A conflict that is only possible gives way to one that is found, and not the other way round.
pub async fn a_possible_conflict_gives_way_to_one_that_is_found<S: Ledger + Knowledge>(store: &S) {
    let (_, _, first, second) = moved(store).await;
    let found = conflict(&first, &second);
    let possible = memfleet_domain::derivation::Conflict {
        status: Status::Possible,
        probability: Some(0.5),
        ..found.clone()
    };
    let likelier = memfleet_domain::derivation::Conflict {
        probability: Some(0.625),
        ..possible.clone()
    };
    let settled = Work {
        settled: vec![(found.id, Status::Settled)],
        ..Work::default()
    };
    let note = |conflict: &memfleet_domain::derivation::Conflict| Work {
        found: vec![conflict.clone()],
        ..Work::default()
    };
    let kept = memfleet_domain::derivation::Conflict {
        status: Status::Settled,
        ..found.clone()
    };
    for (work, expected) in [
        (note(&possible), &possible),
        (note(&likelier), &likelier),
        (note(&found), &found),
        (settled, &kept),
        (note(&possible), &kept),
    ] {
        store.apply(&home(), work).await.expect("an answer");
        let all = store.conflicts(&home(), &[], 9, None).await;
        assert_eq!(
            all.expect("an answer").items,
            std::slice::from_ref(expected)
        );
    }
    let possible = store
        .conflicts_of(&home(), &[second.id], &[Status::Possible])
        .await;
    assert_eq!(possible.expect("an answer"), []);
}
