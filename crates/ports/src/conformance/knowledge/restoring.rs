//! Decisions of callers, as an export carries them and an import puts them back.

use memfleet_domain::Scope;
use memfleet_domain::derivation::{ChangeKind, DecidedMemory, Derivation, Origin, Status};
use memfleet_domain::ids::ChangeId;
use memfleet_domain::space::LegalHold;
use memfleet_domain::turn::AcceptedTurn;

use super::forgetting::forget;
use super::{all, change, closing, conflict, deriving, fact, home, make, moved, store};
use crate::conformance::samples::{batch_in, indexed, instant, passages, scope, turn};
use crate::erasure::Erasure;
use crate::feed::{Change, IndexFeed};
use crate::knowledge::{
    Applied, ChangeFilter, Knowledge, Question, RestoredHistory, Revision, Rewrite, Work,
};
use crate::ledger::Ledger;
use crate::spaces::SpaceCatalog;
use crate::store::StoreError;

/// Another space, in which the same turns are.
fn there() -> Scope {
    scope("acme", "copy")
}

/// A caller's correction of a fact as it is now.
fn correcting(fact: &Derivation, seconds: i64) -> Rewrite {
    let id = ChangeId::of(
        "corrected",
        &[fact.id.as_bytes(), &fact.version.to_be_bytes()],
    );
    let mut corrected = fact.next(id);
    corrected.origin = Origin::Corrected;
    corrected.known.start = Some(instant(seconds));
    Rewrite {
        change: change(id, ChangeKind::Corrected, seconds),
        revisions: vec![Revision {
            derivation: corrected,
            passage: passages("was corrected").pop(),
        }],
    }
}

/// A caller's undoing of a change of one fact.
pub(super) fn undoing(corrected: &Rewrite, before: &Derivation, seconds: i64) -> Rewrite {
    let id = ChangeId::of("reverted", &[corrected.change.id.as_bytes()]);
    let mut undone = before.clone();
    undone.version = corrected.revisions[0].derivation.version + 1;
    undone.change = id;
    undone.known.start = Some(instant(seconds));
    let mut change = change(id, ChangeKind::Reverted, seconds);
    change.reverts = Some(corrected.change.id);
    Rewrite {
        change,
        revisions: vec![Revision {
            derivation: undone,
            passage: passages("lives there").pop(),
        }],
    }
}

/// Two facts: one was closed, and the closing was dismissed by a correction that was undone; the
/// other one was never touched.
async fn decided<S: Ledger + Knowledge>(store: &S) -> (Derivation, Derivation) {
    let (_, _, first, second) = moved(store).await;
    let found = conflict(&first, &second);
    let work = Work {
        found: vec![found.clone()],
        settled: vec![(found.id, Status::Dismissed)],
        ..Work::default()
    };
    store.apply(&home(), work).await.expect("an answer");
    let correction = correcting(&first, 30);
    make(store, correction.clone()).await;
    make(store, undoing(&correction, &first, 40)).await;
    (first, second)
}

async fn history(store: &impl Knowledge, scope: &Scope, fact: &Derivation) -> DecidedMemory {
    store
        .decided_memory(scope, fact.id)
        .await
        .expect("a history")
}

/// For a history whose versions are all found by other words.
fn restoration(memory: DecidedMemory, instead_of: u32) -> RestoredHistory {
    let found_by = memory
        .versions
        .iter()
        .map(|_| passages("lives there").pop());
    RestoredHistory {
        passages: found_by.collect(),
        memory,
        instead_of,
    }
}

/// Restores a history in place of a version.
async fn put_back(store: &impl Knowledge, scope: &Scope, memory: &DecidedMemory, instead_of: u32) {
    let history = restoration(memory.clone(), instead_of);
    let restored = store.restore(scope, history).await;
    assert_ne!(restored.expect("an answer"), Applied::Stale);
}

/// With its conflicts, and nothing that agents wrote alone.
pub async fn what_callers_decided_is_listed_with_its_history<S: Ledger + Knowledge>(store: &S) {
    let (first, _) = decided(store).await;
    let ids = store.decided(&home(), 9, None).await.expect("an answer");
    assert_eq!(ids, [first.id], "what agents wrote alone is not listed");
    let behind = store.decided(&home(), 9, Some(first.id)).await;
    assert_eq!(behind.expect("an answer"), []);
    let memory = history(store, &home(), &first).await;
    assert_eq!(memory.problem(), None);
    let versions: Vec<_> = memory
        .versions
        .iter()
        .map(|version| (version.derivation.version, version.change.kind))
        .collect();
    let expected = [
        (1, ChangeKind::Derived),
        (2, ChangeKind::Corrected),
        (3, ChangeKind::Reverted),
    ];
    assert_eq!(versions, expected);
    let statuses: Vec<_> = memory.conflicts.iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Status::Dismissed]);
}

/// Agents derived both facts before the history came, at other times, and closed the first one.
pub async fn a_history_takes_the_place_of_what_was_derived<S: Ledger + Knowledge + IndexFeed>(
    store: &S,
) {
    let (first, second) = decided(store).await;
    let memory = history(store, &home(), &first).await;
    let turns = vec![turn("1", "I live in Rome."), turn("2", "I moved to Oslo.")];
    copy(store, &there(), turns).await;
    let mut late = deriving(&[&first]);
    late.change.at = instant(60);
    late.revisions[0].derivation.known.start = Some(instant(60));
    let found = conflict(&first, &second);
    let work = Work {
        rewrites: vec![late, deriving(&[&second]), closing(&first, &second, 70)],
        found: vec![found.clone()],
        settled: vec![(found.id, Status::Settled)],
        ..Work::default()
    };
    store.apply(&there(), work).await.expect("an answer");
    let before = store.head(&there()).await.expect("an answer");
    put_back(store, &there(), &memory, 2).await;
    assert_eq!(history(store, &there(), &first).await, memory);
    assert_eq!(
        store.decided(&there(), 9, None).await.expect("an answer"),
        [first.id]
    );
    // The other fact stays as it was.
    let untouched = history(store, &there(), &second).await;
    assert_eq!(untouched.versions.len(), 1);
    // Who undid what is listed, and followers hear of the turn and of each version.
    let filter = ChangeFilter::default();
    let listed = store.changes(&there(), &filter, 9, None).await;
    let listed = listed.expect("an answer").items;
    let undone = listed.iter().find(|it| it.reverted_by.is_some());
    let correction = &memory.versions[1].change;
    assert_eq!(undone.map(|it| it.change.id), Some(correction.id));
    let after = store.changes_after(&there(), before, 99).await;
    let after = after.expect("an answer");
    let heard = |is_it: fn(&Change) -> bool| after.changes.iter().filter(|it| is_it(it)).count();
    assert_eq!(heard(|change| matches!(change, Change::Stored(_))), 1);
    assert_eq!(heard(|change| matches!(change, Change::Derived(..))), 1);
    assert_eq!(
        after.reached,
        store.head(&there()).await.expect("an answer")
    );
    let found = all(store, &Question::default()).await;
    assert_eq!(found.len(), 2, "the space that it comes from is as it was");
}

/// Conflict of this space that the judge has found and nobody has settled yet.
pub async fn a_history_takes_the_place_of_a_conflict_that_was_found<S: Ledger + Knowledge>(
    store: &S,
) {
    let (first, second) = decided(store).await;
    let memory = history(store, &home(), &first).await;
    let turns = vec![turn("1", "I live in Rome."), turn("2", "I moved to Oslo.")];
    copy(store, &there(), turns).await;
    let work = Work {
        rewrites: vec![deriving(&[&first]), deriving(&[&second])],
        found: vec![conflict(&first, &second)],
        ..Work::default()
    };
    store.apply(&there(), work).await.expect("an answer");
    put_back(store, &there(), &memory, 1).await;
    assert_eq!(history(store, &there(), &first).await, memory);
}

/// Then nothing changes.
pub async fn a_history_without_its_turns_or_of_another_state_is_stale<S: Ledger + Knowledge>(
    store: &S,
) {
    let (first, _) = decided(store).await;
    let memory = history(store, &home(), &first).await;
    let other = vec![turn("2", "I moved to Oslo.")];
    copy(store, &there(), other).await;
    for (scope, instead_of) in [(there(), 0), (home(), 2), (scope("acme", "none"), 0)] {
        let restored = store
            .restore(&scope, restoration(memory.clone(), instead_of))
            .await;
        assert_eq!(restored.expect("an answer"), Applied::Stale);
    }
    assert_eq!(history(store, &home(), &first).await, memory);
    let fresh = fact(&turn("2", "I moved to Oslo."), "Ada", "Oslo", instant(20));
    let nothing = store.decided_memory(&there(), fresh.id).await;
    assert_eq!(nothing.expect("an answer").id(), None);
}

/// Stores turns in another space under the ids that they have at home.
async fn copy(ledger: &impl Ledger, scope: &Scope, turns: Vec<AcceptedTurn>) {
    let copied = indexed(batch_in(scope, "c", turns), 2);
    ledger.commit(vec![copied]).await.expect("an answer");
}

/// Makes changes in another space.
async fn make_in(knowledge: &impl Knowledge, scope: &Scope, rewrites: Vec<Rewrite>) {
    let work = Work {
        rewrites,
        ..Work::default()
    };
    let applied = knowledge.apply(scope, work).await.expect("an answer");
    assert_ne!(applied, Applied::Stale);
}

/// A conflict closed the older fact, a caller undid that, and the newer fact was forgotten: with it
/// went the version that it had caused.
pub async fn a_history_that_lacks_a_version_comes_back_equal<S>(store: &S)
where
    S: Ledger + Knowledge + Erasure,
{
    let (rome, oslo, first, second) = moved(store).await;
    let settling = closing(&first, &second, 30);
    make(store, settling.clone()).await;
    make(store, undoing(&settling, &first, 40)).await;
    forget(store, oslo.id).await;
    let mut memory = history(store, &home(), &first).await;
    let versions = memory.versions.iter();
    let versions: Vec<u32> = versions.map(|it| it.derivation.version).collect();
    assert_eq!((versions, memory.problem()), (vec![1, 3], None));
    // Forgets of earlier versions of memfleet left a gap between the times, too.
    memory.versions[0].derivation.known.end = Some(instant(30));
    copy(store, &there(), vec![rome]).await;
    put_back(store, &there(), &memory, 0).await;
    assert_eq!(history(store, &there(), &first).await, memory);
}

/// Two facts of one turn, which one change wrote at home and one there, later.
async fn shared<S: Ledger + Knowledge>(store_: &S) -> (Derivation, Derivation) {
    let told = turn("1", "I live in Rome and Bob lives in Oslo.");
    store(store_, &[&told]).await;
    let one = fact(&told, "Ada", "Rome", instant(10));
    let other = fact(&told, "Bob", "Oslo", instant(10));
    make(store_, deriving(&[&one, &other])).await;
    make(store_, correcting(&one, 30)).await;
    copy(store_, &there(), vec![told]).await;
    let mut late = deriving(&[&one, &other]);
    late.change.at = instant(60);
    for revision in &mut late.revisions {
        revision.derivation.known.start = Some(instant(60));
    }
    make_in(store_, &there(), vec![late]).await;
    (one, other)
}

/// The other fact keeps its time, and its history can be restored elsewhere.
pub async fn a_change_that_wrote_two_facts_comes_with_one<S: Ledger + Knowledge>(store: &S) {
    let (one, other) = shared(store).await;
    let memory = history(store, &home(), &one).await;
    put_back(store, &there(), &memory, 1).await;
    assert_eq!(history(store, &there(), &one).await, memory);
    let filter = ChangeFilter {
        ids: vec![one.change],
        ..ChangeFilter::default()
    };
    let listed = store.changes(&there(), &filter, 9, None).await;
    let listed = listed.expect("an answer").items;
    assert_eq!((listed.len(), listed[0].wrote.len()), (1, 2));
    make_in(store, &there(), vec![correcting(&other, 70)]).await;
    let second = history(store, &there(), &other).await;
    assert_eq!(second.problem(), None);
    assert_eq!(second.versions[0].derivation.known.start, Some(instant(60)));
    let third = scope("acme", "third");
    copy(
        store,
        &third,
        vec![turn("1", "I live in Rome and Bob lives in Oslo.")],
    )
    .await;
    put_back(store, &third, &second, 0).await;
    assert_eq!(history(store, &third, &other).await, second);
}

/// The change wrote a fact too that was corrected there.
pub async fn a_change_that_callers_built_on_stays_as_it_is<S: Ledger + Knowledge>(store: &S) {
    let (one, other) = shared(store).await;
    make_in(store, &there(), vec![correcting(&other, 70)]).await;
    let before = history(store, &there(), &other).await;
    let memory = history(store, &home(), &one).await;
    put_back(store, &there(), &memory, 1).await;
    assert_eq!(history(store, &there(), &other).await, before);
    let after = history(store, &there(), &one).await;
    assert_eq!(after.decisions(), memory.decisions());
    assert_eq!(after.versions[0].change.at, instant(60));
    assert_eq!(after.versions[0].derivation.known.start, Some(instant(1)));
    assert_eq!(after.problem(), None);
}

/// A hold on the other space from a second on.
async fn held<S: SpaceCatalog>(store: &S, seconds: i64) {
    let hold = LegalHold {
        since: instant(seconds),
        reason: "case 7".into(),
    };
    let space = store.hold(&there(), Some(&hold)).await.expect("hold");
    assert!(space.is_some_and(|space| space.hold.is_some()));
}

/// The versions, their change and their times stay, and so does what the change says of others.
pub async fn a_history_replaces_nothing_that_was_known_when_a_hold_began<S>(store: &S)
where
    S: Ledger + Knowledge + SpaceCatalog,
{
    let (one, other) = shared(store).await;
    held(store, 61).await;
    let before = [
        history(store, &there(), &one).await,
        history(store, &there(), &other).await,
    ];
    let memory = history(store, &home(), &one).await;
    let refused = store.restore(&there(), restoration(memory, 1)).await;
    let since = instant(61);
    assert_eq!(refused, Err(StoreError::Held { since }));
    // One of which nothing is known comes in beside it, and leaves the change as it is.
    let bergen = fact(&turn("1", ""), "Eve", "Bergen", instant(10));
    let mut beside = history(store, &home(), &one).await;
    for version in &mut beside.versions {
        version.derivation.id = bergen.id;
    }
    put_back(store, &there(), &beside, 0).await;
    let after = [
        history(store, &there(), &one).await,
        history(store, &there(), &other).await,
    ];
    assert_eq!(after, before);
}

/// An export of a space on hold arrives whole, though agents read its turns before its decisions
/// came: the hold is as old as at home.
pub async fn a_history_replaces_what_was_derived_since_a_hold_began<S>(store: &S)
where
    S: Ledger + Knowledge + SpaceCatalog,
{
    let (one, _) = shared(store).await;
    held(store, 50).await;
    let memory = history(store, &home(), &one).await;
    put_back(store, &there(), &memory, 1).await;
    assert_eq!(history(store, &there(), &one).await, memory);
}
