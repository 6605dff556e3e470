//! Edits: which version shows where.

use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use memfleet_domain::ingestion::TurnState;
use memfleet_domain::turn::{AcceptedTurn, Replacement};

use super::{commit, texts};
use crate::conformance::samples::{batch_in, edit, home, indexed, instant, scope, turn, turn_in};

use crate::filter::TurnFilter;
use crate::ledger::Ledger;

/// It is still there by id, and says what replaced it.
pub async fn a_replaced_turn_leaves_the_default_listing(store: &impl Ledger) {
    let old = turn("a", "old");
    let mut new = edit(&old, "b", "new");
    new.recorded_at = instant(10);
    commit(store, "k", vec![old.clone(), new.clone()], 1).await;
    assert_eq!(texts(store, &TurnFilter::default()).await, ["new"]);
    let all = TurnFilter {
        include_replaced: true,
        ..TurnFilter::default()
    };
    assert_eq!(texts(store, &all).await, ["old", "new"]);
    let found = store.turns(&home(), &[old.id]).await.expect("turns");
    assert_eq!(
        found[0].replaced,
        Some(Replacement {
            by: new.id,
            at: instant(10)
        })
    );
}

/// From any version.
pub async fn history_follows_replacements_both_ways(store: &impl Ledger) {
    let first = turn("a", "1");
    let second = edit(&first, "b", "2");
    let third = edit(&second, "c", "3");
    let unrelated = turn("d", "4");
    let turns = vec![first.clone(), unrelated, second.clone(), third.clone()];
    commit(store, "k", turns, 1).await;
    for version in [&first, &second, &third] {
        let history = store.history(&home(), version.id).await.expect("history");
        let ids: Vec<_> = history.iter().map(|turn| turn.accepted.id).collect();
        assert_eq!(ids, [first.id, second.id, third.id]);
    }
    assert_eq!(
        store.history(&home(), TurnId::from_bytes([1; 16])).await,
        Ok(vec![])
    );
}

/// In their order, no more than asked for.
pub async fn the_turns_before_one_are_those_of_its_session_that_still_stand(store: &impl Ledger) {
    let turns = ["a", "b", "c", "d"].map(|name| turn(name, name));
    let [first, second, third, last] = turns.clone();
    let edited = edit(&second, "e", "edited");
    let elsewhere = turn_in(&home(), "s2", "x", "elsewhere");
    commit(store, "k", vec![first, second, elsewhere, third], 1).await;
    commit(store, "l", vec![last.clone(), edited], 2).await;
    let before = async |limit| {
        let turns = store.preceding(&home(), last.id, limit).await;
        let turns = turns.expect("the turns before");
        let texts = turns.into_iter().map(|turn| turn.accepted.content.text);
        texts.collect::<Vec<_>>()
    };
    assert_eq!(before(9).await, ["a", "c"]);
    assert_eq!(before(1).await, ["c"]);
    let unknown = TurnId::from_bytes([1; 16]);
    assert_eq!(store.preceding(&home(), unknown, 9).await, Ok(vec![]));
}

/// In their order, and of no other session, space or tenant.
pub async fn the_turns_that_a_session_ends_with_still_stand(store: &impl Ledger) {
    let [first, second, third] = ["a", "b", "c"].map(|name| turn(name, name));
    let edited = edit(&third, "d", "edited");
    let elsewhere = turn_in(&home(), "s2", "x", "elsewhere");
    let session = first.session.clone();
    commit(store, "k", vec![first, second, third, elsewhere], 1).await;
    commit(store, "l", vec![edited], 2).await;
    let latest = async |scope: &Scope, limit| {
        let turns = store.latest(scope, &session, limit).await;
        let turns = turns.expect("the last turns");
        let texts = turns.into_iter().map(|turn| turn.accepted.content.text);
        texts.collect::<Vec<_>>()
    };
    assert_eq!(latest(&home(), 2).await, ["b", "edited"]);
    assert_eq!(latest(&home(), 9).await, ["a", "b", "edited"]);
    assert!(latest(&scope("globex", "ada"), 9).await.is_empty());
}

/// Also itself, and a turn of another space.
pub async fn replacing_an_unknown_turn_is_dead_lettered(store: &impl Ledger) {
    let other = scope("acme", "bob");
    let foreign = turn_in(&other, "s1", "f", "foreign");
    store
        .commit(vec![indexed(
            batch_in(&other, "k", vec![foreign.clone()]),
            1,
        )])
        .await
        .expect("commit");
    let mut itself = turn("b", "me");
    itself.replaces = Some(itself.id);
    let turns = vec![
        edit(&turn("a", "never told"), "c", "new"),
        itself,
        edit(&foreign, "d", "theirs"),
    ];
    let committed = commit(store, "k", turns, 2).await;
    for receipt in committed.turns {
        assert_eq!(receipt.state, TurnState::DeadLettered);
        let reason = receipt.reason.unwrap_or_default();
        assert!(reason.starts_with("REPLACED_TURN_UNKNOWN: "), "{reason}");
    }
    assert_eq!(texts(store, &TurnFilter::default()).await, [""; 0]);
}

/// Also where both name the original, in one batch or two.
pub async fn the_later_of_two_replacements_stands(store: &impl Ledger) {
    let old = turn("a", "old");
    let [first, second, third] = ["b", "c", "d"].map(|name| edit(&old, name, name));
    let told = vec![old.clone(), first.clone(), second.clone()];
    commit(store, "k", told, 1).await;
    assert_eq!(texts(store, &TurnFilter::default()).await, ["c"]);
    commit(store, "l", vec![third.clone()], 2).await;
    assert_eq!(texts(store, &TurnFilter::default()).await, ["d"]);
    let versions = [&old, &first, &second, &third];
    assert_eq!(
        replaced(store, &versions).await,
        [Some(first.id), Some(second.id), Some(third.id), None]
    );
}

/// A worker may be quicker with the later one.
pub async fn versions_are_in_the_order_of_acceptance_whatever_is_stored_first(store: &impl Ledger) {
    let old = turn("a", "old");
    let [first, second] = ["b", "c"].map(|name| edit(&old, name, name));
    let mut last = edit(&old, "d", "d");
    last.recorded_at = instant(9);
    commit(store, "k", vec![old.clone()], 1).await;
    commit(store, "n", vec![last.clone()], 4).await;
    commit(store, "m", vec![second.clone()], 3).await;
    commit(store, "l", vec![first.clone()], 2).await;
    assert_eq!(texts(store, &TurnFilter::default()).await, ["d"]);
    let versions = [&old, &first, &second, &last];
    assert_eq!(
        replaced(store, &versions).await,
        [Some(first.id), Some(second.id), Some(last.id), None]
    );
    let found = store.turns(&home(), &[second.id]).await.expect("turns");
    let at = found[0].replaced.map(|replaced| replaced.at);
    assert_eq!(at, Some(instant(9)));
}

/// What replaced each of these turns.
async fn replaced(store: &impl Ledger, turns: &[&AcceptedTurn]) -> Vec<Option<TurnId>> {
    let ids: Vec<_> = turns.iter().map(|turn| turn.id).collect();
    let turns = store.turns(&home(), &ids).await.expect("turns");
    let by = turns.iter().map(|turn| turn.replaced.map(|one| one.by));
    by.collect()
}
