//! Turns that go, and the blocks that hold their words; and injections whose own time is over.

use futures::future::{join, join_all};
use memfleet_domain::Scope;
use memfleet_domain::space::{LegalHold, SpaceSettings};
use memfleet_domain::turn::AcceptedTurn;

use super::{acme, append, get, in_home, injection, listed};
use crate::conformance::samples::{batch_in, home, indexed, instant, scope, turn};
use crate::erasure::Erasure;
use crate::filter::TurnFilter;
use crate::injections::{Injection, InjectionFilter, Injections};
use crate::ledger::Ledger;
use crate::spaces::SpaceCatalog;
use crate::store::StoreError;

/// What the cases of a forget need.
pub trait Store: Injections + Ledger + SpaceCatalog + Erasure {}

impl<T: Injections + Ledger + SpaceCatalog + Erasure> Store for T {}

async fn commit(store: &impl Ledger, key: &str, turns: Vec<AcceptedTurn>) {
    let told = indexed(batch_in(&home(), key, turns), 1);
    store.commit(vec![told]).await.expect("commit");
}

async fn forget(store: &impl Erasure, scope: &Scope, turns: &[AcceptedTurn]) {
    let filter = TurnFilter {
        turns: turns.iter().map(|turn| turn.id).collect(),
        ..TurnFilter::default()
    };
    store.erase(scope, &filter).await.expect("erase");
}

/// What is left says that there was one. A plan takes nothing, and retention takes as much as a forget.
pub async fn a_forgotten_turn_takes_the_blocks_that_name_it(store: &impl Store) {
    let turns: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .zip(1..)
        .map(|(called, second)| AcceptedTurn {
            event_time: Some(instant(second)),
            ..turn(called, "x")
        })
        .collect();
    commit(store, "k", turns.clone()).await;
    let both = Injection {
        turns: vec![in_home("b"), in_home("a")],
        ..injection(1)
    };
    let other = Injection {
        turns: vec![in_home("b")],
        ..injection(2)
    };
    let elsewhere = Injection {
        turns: vec![(scope("acme", "bob").space, in_home("a").1)],
        ..injection(3)
    };
    let redacted = Injection {
        block: None,
        ..injection(4)
    };
    let last = Injection {
        turns: vec![in_home("c")],
        ..injection(5)
    };
    let all = [both, other, elsewhere, redacted, last];
    append(store, &all).await;
    let filter = TurnFilter {
        turns: vec![turns[0].id],
        ..TurnFilter::default()
    };
    let planned = store.plan(&home(), &filter).await.expect("plan");
    assert_eq!(get(store, 1).await, all[0]);
    let erased = store.erase(&home(), &filter).await.expect("erase");
    assert_eq!(erased, planned);
    assert_eq!(erased.dependents.blocks, 2);
    for (number, injection) in (1..).zip(&all) {
        let expected = match number {
            1 | 4 => injection.clone().tombstone(),
            _ => injection.clone(),
        };
        assert_eq!(get(store, number).await, expected);
    }
    // Added again, it comes back no more; and it is found as before.
    append(store, &all).await;
    assert_eq!(get(store, 1).await, all[0].clone().tombstone());
    let by_turn = InjectionFilter {
        turn: Some(in_home("a")),
        ..InjectionFilter::default()
    };
    assert_eq!(listed(store, &by_turn).await, [all[3].id, all[0].id]);
    let settings = SpaceSettings {
        retention_turns: Some(1),
        ..SpaceSettings::default()
    };
    let set = SpaceCatalog::put(store, &home(), &settings, instant(10)).await;
    set.expect("put");
    let expired = Erasure::expire(store, &home(), instant(10), 10).await;
    assert_eq!(expired.expect("expire").turns, [turns[1].id]);
    assert!(get(store, 2).await.forgotten);
    assert_eq!(get(store, 5).await, all[4]);
}

/// Whether by a turn or as one that was asked, and though nobody wrote to it.
pub async fn a_forgotten_space_takes_the_blocks_that_name_it(store: &impl Store) {
    commit(store, "k", vec![turn("a", "x")]).await;
    let (ada, bob) = (home(), scope("acme", "bob"));
    let by_turn = Injection {
        spaces: vec![bob.space.clone()],
        ..injection(1)
    };
    let asked = Injection {
        spaces: vec![ada.space.clone()],
        turns: Vec::new(),
        ..injection(2)
    };
    let of_bob = Injection {
        spaces: vec![bob.space.clone()],
        turns: Vec::new(),
        ..injection(3)
    };
    append(store, &[by_turn.clone(), asked.clone(), of_bob.clone()]).await;
    let theirs = scope("globex", "ada").tenant;
    let added = Injections::append(store, &theirs, std::slice::from_ref(&asked)).await;
    assert_eq!(added, Ok(()));
    forget(store, &ada, &[]).await;
    assert_eq!(get(store, 1).await, by_turn.tombstone());
    assert_eq!(get(store, 2).await, asked.clone().tombstone());
    assert_eq!(get(store, 3).await, of_bob);
    forget(store, &bob, &[]).await;
    assert_eq!(get(store, 3).await, of_bob.tombstone());
    let found = Injections::get(store, &theirs, asked.id).await;
    assert_eq!(found, Ok(Some(asked)));
}

/// The audit may come later than the forget. Told again after its whole space was forgotten, a turn is as any other.
pub async fn what_is_added_after_a_forget_comes_without_its_block(store: &impl Store) {
    let gone = turn("a", "x");
    commit(store, "k", vec![gone.clone()]).await;
    forget(store, &home(), std::slice::from_ref(&gone)).await;
    append(store, &[injection(1)]).await;
    assert_eq!(get(store, 1).await, injection(1).tombstone());
    forget(store, &home(), &[]).await;
    let told = indexed(batch_in(&home(), "anew", vec![gone]), 1_000);
    store.commit(vec![told]).await.expect("commit");
    append(store, &[injection(2)]).await;
    assert_eq!(get(store, 2).await, injection(2));
}

/// It comes before an injection or after it.
pub async fn a_forget_leaves_no_block_whoever_adds_meanwhile(store: &impl Store) {
    for round in 0..5_u8 {
        let gone = turn(&format!("gone {round}"), "x");
        let stays = turn(&format!("stays {round}"), "x");
        commit(store, &format!("k{round}"), vec![gone.clone(), stays]).await;
        let numbers = round * 8..round * 8 + 8;
        let injections: Vec<_> = numbers
            .map(|number| Injection {
                turns: vec![(home().space, gone.id)],
                ..injection(number)
            })
            .collect();
        let adding = injections
            .iter()
            .map(|it| append(store, std::slice::from_ref(it)));
        join(forget(store, &home(), &[gone]), join_all(adding)).await;
        for injection in injections {
            let found = Injections::get(store, &acme(), injection.id).await;
            assert_eq!(found, Ok(Some(injection.tombstone())));
        }
    }
}

/// Of whatever tenant; those without a time stay for ever.
pub async fn only_injections_past_their_time_are_removed(store: &impl Store) {
    let ends = [Some(50), Some(51), Some(60), None];
    for tenant in ["acme", "globex"] {
        let injections = (1..).zip(ends).map(|(number, end)| Injection {
            expires_at: end.map(instant),
            ..injection(number)
        });
        let injections: Vec<_> = injections.collect();
        let tenant = scope(tenant, "ada").tenant;
        let added = Injections::append(store, &tenant, &injections).await;
        assert_eq!(added, Ok(()));
    }
    assert_eq!(Injections::expire(store, instant(49)).await, Ok(0));
    assert_eq!(Injections::expire(store, instant(51)).await, Ok(4));
    assert_eq!(Injections::expire(store, instant(51)).await, Ok(0));
    for filter in [
        InjectionFilter::default(),
        InjectionFilter {
            turn: Some(in_home("a")),
            ..InjectionFilter::default()
        },
    ] {
        let left = listed(store, &filter).await;
        assert_eq!(left, [injection(4).id, injection(3).id]);
    }
}

/// Whatever other spaces it names; and a forget of the space is refused, with its blocks as they were.
pub async fn an_injection_of_a_space_on_hold_is_kept_until_that_is_lifted(store: &impl Store) {
    commit(store, "k", vec![turn("a", "x")]).await;
    let hold = LegalHold {
        since: instant(1),
        reason: "a case".into(),
    };
    let held = store.hold(&home(), Some(&hold)).await.expect("hold");
    assert!(held.is_some());
    let bob = scope("acme", "bob").space;
    let of_bob = Injection {
        spaces: vec![bob.clone()],
        turns: vec![(bob, in_home("a").1)],
        ..injection(2)
    };
    append(store, &[injection(1), of_bob]).await;
    let refused = store.erase(&home(), &TurnFilter::default()).await;
    assert_eq!(refused, Err(StoreError::Held { since: instant(1) }));
    assert_eq!(Injections::bound(store, &acme(), 1).await, Ok(0));
    assert_eq!(Injections::expire(store, instant(5_000)).await, Ok(1));
    assert_eq!(get(store, 1).await, injection(1));
    store.hold(&home(), None).await.expect("lift");
    assert_eq!(Injections::expire(store, instant(5_000)).await, Ok(1));
    assert_eq!(listed(store, &InjectionFilter::default()).await, []);
}
