//! What a commit stores, and where.

use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::{AcceptedTurn, Echo, Media, Role, Trust, Turn};

use super::{commit, listed, texts};
use crate::conformance::samples::{
    TEXTS, batch, batch_in, home, indexed, instant, scope, turn, turn_in,
};

use crate::filter::TurnFilter;
use crate::ledger::Ledger;

/// Every field comes back.
pub async fn a_stored_turn_reads_back_as_it_was_accepted(store: &impl Ledger) {
    let mut told = turn("m1", "Look at this!");
    told.role = Role::Tool;
    told.trust = Trust::Web;
    told.event_time = Some(instant(-500));
    told.metadata = [("mood", "glad"), ("clé", "valeur ☂"), ("empty", "")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    told.content.media = vec![Media {
        uri: "https://example.org/a.jpg?x=1&y='2'".into(),
        mime_type: "image/jpeg".into(),
        caption: "a \"red\" bicycle".into(),
    }];
    told.echoes = vec![Echo {
        start: 5,
        end: 12,
        of: TurnId::from_bytes([3; 16]),
    }];
    let plain = AcceptedTurn {
        external_id: None,
        id: TurnId::from_bytes([7; 16]),
        ..turn("m2", "")
    };
    commit(store, "k", vec![told.clone(), plain.clone()], 1).await;
    let stored = store
        .turns(&home(), &[told.id, plain.id])
        .await
        .expect("turns");
    assert_eq!(stored.len(), 2);
    for (position, (stored, accepted)) in (0..).zip(stored.into_iter().zip([told, plain])) {
        assert_eq!(
            stored,
            Turn {
                accepted,
                position,
                replaced: None
            }
        );
    }
}

/// Composed or not, right to left, with zeros and quotes.
pub async fn texts_of_any_script_read_back_byte_by_byte(store: &impl Ledger) {
    let turns: Vec<_> = (0..)
        .zip(TEXTS)
        .map(|(n, text): (u32, _)| turn(&n.to_string(), text))
        .collect();
    commit(store, "k", turns, 1).await;
    assert_eq!(texts(store, &TurnFilter::default()).await, TEXTS);
}

/// As asked.
pub async fn turns_come_in_the_order_of_the_ids_and_unknown_ids_are_left_out(store: &impl Ledger) {
    let [one, two] = ["1", "2"].map(|name| turn(name, name));
    commit(store, "k", vec![one.clone(), two.clone()], 1).await;
    let ids = [two.id, TurnId::from_bytes([9; 16]), one.id];
    let found = store.turns(&home(), &ids).await.expect("turns");
    let found: Vec<_> = found.iter().map(|turn| turn.accepted.id).collect();
    assert_eq!(found, [two.id, one.id]);
    assert_eq!(
        store.turns(&scope("acme", "nobody"), &ids).await,
        Ok(vec![])
    );
}

/// One call, several batches and spaces.
pub async fn several_batches_are_committed_in_the_order_given(store: &impl Ledger) {
    let other = scope("acme", "bob");
    let batches = vec![
        indexed(batch("k1", vec![turn("a", "one")]), 1),
        indexed(
            batch_in(&other, "k2", vec![turn_in(&other, "s1", "a", "elsewhere")]),
            2,
        ),
        indexed(batch("k3", vec![turn("b", "two")]), 3),
    ];
    let committed = store.commit(batches).await.expect("commit");
    assert_eq!(committed.len(), 3);
    assert!(committed[0].change < committed[2].change);
    assert_eq!(texts(store, &TurnFilter::default()).await, ["one", "two"]);
    assert_eq!(store.commit(vec![]).await, Ok(vec![]));
}

/// Absent before; with change, hash and receipts after.
pub async fn a_batch_has_a_status_from_its_commit_on(store: &impl Ledger) {
    let told = batch("k", vec![turn("a", "one")]);
    assert_eq!(store.batch(&home(), told.id).await, Ok(None));
    let committed = commit(store, "k", told.turns.clone(), 1).await;
    let status = store
        .batch(&home(), told.id)
        .await
        .expect("batch")
        .expect("known");
    assert_eq!(status.change, committed.change);
    assert_eq!(status.payload_hash, Some(told.payload_hash().0));
    assert_eq!(status.turns, committed.turns);
    assert_eq!(store.batch(&scope("acme", "bob"), told.id).await, Ok(None));
}

/// Two workers may finish in the other order.
pub async fn positions_follow_acceptance_whatever_the_order_of_delivery(store: &impl Ledger) {
    commit(store, "k3", vec![turn("e", "4"), turn("f", "5")], 30).await;
    commit(store, "k1", vec![turn("a", "0"), turn("b", "1")], 10).await;
    commit(store, "k2", vec![turn("c", "2"), turn("d", "3")], 20).await;
    commit(store, "k4", vec![turn("g", "6")], 40).await;
    for (position, turn) in (0..).zip(listed(store, &TurnFilter::default()).await) {
        assert_eq!(
            (turn.accepted.content.text, turn.position),
            (position.to_string(), position)
        );
    }
}

/// Unless that is taken, or out of all bounds.
pub async fn a_turn_that_brings_its_place_takes_it(store: &impl Ledger) {
    let places = [Some(2), Some(5), Some(1), None, Some(u32::MAX), None];
    let turns = (0..).zip(places).map(|(n, place): (u32, _)| AcceptedTurn {
        place,
        ..turn(&n.to_string(), "x")
    });
    commit(store, "k", turns.collect(), 1).await;
    let listed = listed(store, &TurnFilter::default()).await;
    let positions: Vec<_> = listed.iter().map(|turn| turn.position).collect();
    assert_eq!(positions, [2, 5, 6, 7, 8, 9]);
    assert!(listed.iter().all(|turn| turn.accepted.place.is_none()));
}

/// Isolation: ids, listings, batches, history.
pub async fn the_same_names_under_another_tenant_or_space_are_other_turns(store: &impl Ledger) {
    let scopes = [
        home(),
        scope("globex", "ada"),
        scope("acme", "bob"),
        scope("acmea", "da"),
    ];
    for scope in &scopes {
        let told = turn_in(scope, "s1", "a", &scope.to_string());
        let batch = batch_in(scope, "k", vec![told]);
        store.commit(vec![indexed(batch, 1)]).await.expect("commit");
    }
    let ids: Vec<_> = scopes
        .iter()
        .map(|scope| turn_in(scope, "s1", "a", "").id)
        .collect();
    for (scope, own) in scopes.iter().zip(&ids) {
        let found = store.turns(scope, &ids).await.expect("turns");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].accepted.content.text, scope.to_string());
        let page = store
            .list(scope, &TurnFilter::default(), 10, None)
            .await
            .expect("list");
        assert_eq!(page.items, found);
        for other in ids.iter().filter(|id| *id != own) {
            assert_eq!(store.history(scope, *other).await, Ok(vec![]));
        }
    }
}
