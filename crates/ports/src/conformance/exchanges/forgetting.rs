//! Turns that go, and the states that hold their words.

use futures::future::{join, join_all};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TurnId};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::AcceptedTurn;

use super::{acme, exchange, get, put, stale, written};
use crate::conformance::injections::injection;
use crate::conformance::samples::{
    batch_in, home, indexed, instant, scope, session, turn, turn_in,
};
use crate::erasure::Erasure;
use crate::exchanges::{Entry, Exchange, Exchanges, Written};
use crate::filter::TurnFilter;
use crate::injections::{Injection, Injections};
use crate::ledger::Ledger;
use crate::spaces::SpaceCatalog;

/// What the cases of a forget need.
pub trait Forgetful: Exchanges + Injections + Ledger + SpaceCatalog + Erasure {}

impl<T: Exchanges + Injections + Ledger + SpaceCatalog + Erasure> Forgetful for T {}

pub(super) async fn commit(
    store: &impl Ledger,
    scope: &Scope,
    key: &str,
    turns: Vec<AcceptedTurn>,
) {
    let told = indexed(batch_in(scope, key, turns), 1);
    store.commit(vec![told]).await.expect("commit");
}

fn naming(called: &str, turns: &[(SpaceId, TurnId)]) -> Exchange {
    Exchange {
        turns: turns.to_vec(),
        ..exchange(called, "what was said")
    }
}

fn in_home(turn: &AcceptedTurn) -> (SpaceId, TurnId) {
    (home().space, turn.id)
}

pub(super) async fn forget(store: &impl Erasure, turn: &AcceptedTurn) {
    let one = TurnFilter {
        turns: vec![turn.id],
        ..TurnFilter::default()
    };
    store.erase(&home(), &one).await.expect("erase");
}

/// Who knew the version before is told so; what was spent stays spent. A plan takes nothing.
pub async fn a_forgotten_turn_takes_the_state_that_names_it(store: &impl Forgetful) {
    let [gone, other] = ["a", "b"].map(|name| turn(name, "x"));
    commit(store, &home(), "k", vec![gone.clone(), other.clone()]).await;
    let both = naming("both", &[in_home(&other), in_home(&gone)]);
    let elsewhere = (scope("acme", "bob").space, gone.id);
    let rest = [
        naming("other", &[in_home(&other)]),
        naming("elsewhere", &[elsewhere]),
        naming("none", &[]),
    ];
    for exchange in rest.iter().chain([&both]) {
        assert_eq!(put(store, exchange, None).await, written(1));
    }
    let globex = scope("globex", "ada").tenant;
    let theirs = store.keep(&globex, Entry::of(&both, None)).await;
    assert_eq!(theirs, written(1));
    let one = TurnFilter {
        turns: vec![gone.id],
        ..TurnFilter::default()
    };
    let planned = store.plan(&home(), &one).await.expect("plan");
    assert_eq!(planned.dependents.exchanges, 1);
    assert_eq!(get(store, "both").await.exchange, both);
    forget(store, &gone).await;
    let kept = get(store, "both").await;
    let left = Exchange {
        state: String::new(),
        turns: Vec::new(),
        ..both.clone()
    };
    assert_eq!(
        (kept.exchange, kept.forgotten, kept.version),
        (left, true, 2)
    );
    let anew = Exchange {
        updated_at: instant(2),
        ..naming("both", &[])
    };
    assert_eq!(put(store, &anew, Some(1)).await, stale(1, 2));
    assert_eq!(put(store, &anew, Some(2)).await, written(3));
    assert!(!get(store, "both").await.forgotten);
    for exchange in rest {
        let kept = get(store, exchange.name.as_str()).await;
        assert_eq!((kept.exchange, kept.version), (exchange, 1));
    }
    let theirs = Exchanges::get(store, &globex, &session("s1"), &both.name, instant(1)).await;
    assert_eq!(theirs.expect("get").expect("theirs").exchange, both);
}

/// The last write counts.
pub async fn a_turn_that_the_state_names_no_more_takes_nothing(store: &impl Forgetful) {
    let [first, second] = ["a", "b"].map(|name| turn(name, "x"));
    commit(store, &home(), "k", vec![first.clone(), second.clone()]).await;
    let before = naming("e", &[in_home(&first)]);
    assert_eq!(put(store, &before, None).await, written(1));
    let after = naming("e", &[in_home(&second)]);
    assert_eq!(put(store, &after, Some(1)).await, written(2));
    forget(store, &first).await;
    assert_eq!(get(store, "e").await.exchange, after);
    forget(store, &second).await;
    assert!(get(store, "e").await.forgotten);
}

/// Turns that were not stored by then, and those of a space that nobody wrote to, among them.
pub async fn a_forgotten_space_takes_the_states_that_name_it(store: &impl Forgetful) {
    let (told, waiting) = (turn("a", "x"), turn("b", "x"));
    commit(store, &home(), "k", vec![told.clone()]).await;
    let bob = scope("acme", "bob");
    let never = turn_in(&bob, "s1", "a", "x");
    let exchanges = [
        naming("told", &[in_home(&told)]),
        naming("waiting", &[in_home(&waiting)]),
        naming("never", &[(bob.space.clone(), never.id)]),
    ];
    for exchange in &exchanges {
        assert_eq!(put(store, exchange, None).await, written(1));
    }
    let everything = TurnFilter::default();
    store.erase(&home(), &everything).await.expect("erase");
    for (called, forgotten) in [("told", true), ("waiting", true), ("never", false)] {
        let kept = get(store, called).await;
        assert_eq!(kept.forgotten, forgotten, "{called}");
        assert_eq!(kept.exchange.state.is_empty(), forgotten, "{called}");
    }
    store.erase(&bob, &everything).await.expect("erase");
    assert!(get(store, "never").await.forgotten);
}

/// Turn by turn.
pub async fn retention_takes_the_state_as_a_forget_does(store: &impl Forgetful) {
    let turns: Vec<_> = (0..3)
        .map(|number| AcceptedTurn {
            event_time: Some(instant(number)),
            ..turn(&number.to_string(), "x")
        })
        .collect();
    commit(store, &home(), "k", turns.clone()).await;
    for (number, turn) in turns.iter().enumerate() {
        let exchange = naming(&number.to_string(), &[in_home(turn)]);
        assert_eq!(put(store, &exchange, None).await, written(1));
    }
    let settings = SpaceSettings {
        retention_turns: Some(1),
        ..SpaceSettings::default()
    };
    let set = SpaceCatalog::put(store, &home(), &settings, instant(10)).await;
    set.expect("put");
    let expired = Erasure::expire(store, &home(), instant(10), 10).await;
    assert_eq!(expired.expect("expire").turns.len(), 2);
    for (called, forgotten) in [("0", true), ("1", true), ("2", false)] {
        assert_eq!(get(store, called).await.forgotten, forgotten, "{called}");
    }
}

/// The user's message of an exchange is often not stored yet.
pub async fn a_turn_that_waits_may_be_named(store: &impl Forgetful) {
    let waiting = naming("e", &[in_home(&turn("a", "x"))]);
    assert_eq!(put(store, &waiting, None).await, written(1));
    commit(store, &home(), "k", vec![turn("a", "x")]).await;
    assert_eq!(get(store, "e").await.exchange, waiting);
}

/// A gateway may have it in its memory still. Told again after its whole space was forgotten, it may be named.
pub async fn what_names_a_forgotten_turn_comes_without_its_state(store: &impl Forgetful) {
    let [gone, other] = ["a", "b"].map(|name| turn(name, "x"));
    commit(store, &home(), "k", vec![gone.clone(), other.clone()]).await;
    forget(store, &gone).await;
    let late = naming("e", &[in_home(&other), in_home(&gone)]);
    let left_out = Written {
        version: 1,
        forgotten: true,
    };
    for _ in 0..2 {
        assert_eq!(put(store, &late, None).await, Ok(left_out));
    }
    let kept = get(store, "e").await;
    assert!(kept.forgotten && kept.exchange.state.is_empty());
    let everything = TurnFilter::default();
    store.erase(&home(), &everything).await.expect("erase");
    let told = indexed(batch_in(&home(), "anew", vec![gone, other]), 1_000);
    store.commit(vec![told]).await.expect("commit");
    let late = Exchange {
        updated_at: instant(3),
        ..late
    };
    let version = get(store, "e").await.version;
    assert_eq!(put(store, &late, Some(version)).await, written(version + 1));
    assert_eq!(get(store, "e").await.exchange, late);
}

/// It comes before a write or after it.
pub async fn a_forget_leaves_no_state_whoever_writes_meanwhile(store: &impl Forgetful) {
    for round in 0..5 {
        let gone = turn(&format!("a{round}"), "x");
        let kept = turn(&format!("b{round}"), "x");
        let key = format!("k{round}");
        commit(store, &home(), &key, vec![gone.clone(), kept.clone()]).await;
        let named = [in_home(&gone), in_home(&kept)];
        let exchanges: Vec<_> = (0..8)
            .map(|number| naming(&format!("{round}.{number}"), &named))
            .collect();
        let writes = exchanges.iter().map(|exchange| put(store, exchange, None));
        let ((), outcomes) = join(forget(store, &gone), join_all(writes)).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        for exchange in exchanges {
            let kept = get(store, exchange.name.as_str()).await;
            assert!(kept.forgotten && kept.exchange.state.is_empty(), "{kept:?}");
        }
    }
    let tokens = store
        .session_tokens(&acme(), &session("s1"), instant(1))
        .await;
    assert_eq!(tokens, Ok(5 * 8 * 7));
}

/// Both or none, and with words of a forgotten turn neither has any.
pub async fn an_injection_is_written_with_its_exchange(store: &impl Forgetful) {
    let gone = turn("a", "x");
    commit(store, &home(), "k", vec![gone.clone()]).await;
    let named = [in_home(&gone)];
    let write = async |called: &str, number: u8, expected| {
        let exchange = Exchange {
            tokens: number.into(),
            ..naming(called, &named)
        };
        let injection = Injection {
            turns: named.to_vec(),
            ..injection(number)
        };
        let entry = Entry {
            injection: Some(&injection),
            ..Entry::of(&exchange, expected)
        };
        store.keep(&acme(), entry).await
    };
    let added = async |number: u8| {
        let id = injection(number).id;
        Injections::get(store, &acme(), id).await.expect("get")
    };
    for _ in 0..2 {
        assert_eq!(write("e", 1, None).await, written(1));
    }
    assert_eq!(added(1).await.map(|it| it.forgotten), Some(false));
    assert_eq!(write("e", 2, None).await, stale(0, 1));
    assert_eq!(added(2).await, None);
    forget(store, &gone).await;
    let late = write("late", 3, None).await;
    assert!(late.is_ok_and(|written| written.forgotten));
    let late = added(3).await.map(|it| (it.forgotten, it.block));
    assert_eq!(late, Some((true, None)));
}
