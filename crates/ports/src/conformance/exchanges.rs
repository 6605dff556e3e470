//! What every store of exchanges does.

mod conversations;
mod forgetting;

use futures::future::join_all;
use memfleet_domain::ids::{ExchangeName, TenantId};
use memfleet_domain::time::Timestamp;

use super::samples::{TEXTS, home, instant, scope, session, turn};
use crate::exchanges::{Entry, Exchange, Exchanges, Kept, STATE_LIMIT, TURN_LIMIT, Written};
use crate::store::{Result, StoreError};

pub use self::conversations::*;
pub use self::forgetting::*;

/// Runs every case on a store that is also ledger, catalogue and erasure.
#[macro_export]
macro_rules! exchanges_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            exchanges,
            [
                an_exchange_reads_back_as_it_was_written,
                a_write_that_knows_another_version_is_refused,
                of_first_writes_at_the_same_time_one_is_made,
                no_write_is_lost_however_many_there_are,
                the_same_write_sent_again_is_answered_as_before,
                what_has_expired_is_not_there_and_gives_way,
                tokens_of_a_session_are_those_of_what_has_not_expired,
                states_of_a_session_are_told_newest_first,
                only_what_has_expired_is_removed,
                exchanges_beyond_a_number_go_those_that_end_first,
                another_tenant_has_exchanges_of_its_own,
                states_of_any_script_read_back_byte_by_byte,
                an_exchange_has_a_largest_size,
                a_forgotten_turn_takes_the_state_that_names_it,
                a_turn_that_the_state_names_no_more_takes_nothing,
                a_forgotten_space_takes_the_states_that_name_it,
                retention_takes_the_state_as_a_forget_does,
                a_turn_that_waits_may_be_named,
                what_names_a_forgotten_turn_comes_without_its_state,
                a_forget_leaves_no_state_whoever_writes_meanwhile,
                a_conversation_reads_back_as_it_was_heard_last,
                a_conversation_is_found_by_what_names_it,
                a_conversation_is_that_of_one_owner,
                a_conversation_ends_when_it_was_not_heard_of_for_long,
                a_conversation_is_written_with_its_exchange,
                a_conversation_has_a_largest_size,
                an_injection_is_written_with_its_exchange,
                a_forget_takes_what_was_said_in_conversations,
                a_forgotten_space_takes_its_conversations,
                a_space_has_a_secret_as_long_as_it_is_there,
            ]
        );
    };
}

fn acme() -> TenantId {
    home().tenant
}

fn name(text: &str) -> ExchangeName {
    ExchangeName::new(text).expect("a valid sample")
}

fn exchange(called: &str, state: &str) -> Exchange {
    Exchange {
        session: session("s1"),
        name: name(called),
        state: state.to_owned(),
        tally: "what was counted".to_owned(),
        tokens: 7,
        turns: Vec::new(),
        updated_at: instant(1),
        expires_at: instant(100),
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it is compared with what a write came to"
)]
fn written(version: u64) -> Result<Written> {
    let forgotten = false;
    Ok(Written { version, forgotten })
}

fn stale<T>(expected: u64, current: u64) -> Result<T> {
    Err(StoreError::Stale {
        what: "the exchange",
        expected,
        current,
    })
}

async fn put(
    store: &impl Exchanges,
    exchange: &Exchange,
    expected: Option<u64>,
) -> Result<Written> {
    store.keep(&acme(), Entry::of(exchange, expected)).await
}

async fn at(store: &impl Exchanges, called: &str, now: Timestamp) -> Option<Kept> {
    let kept = Exchanges::get(store, &acme(), &session("s1"), &name(called), now).await;
    kept.expect("get")
}

async fn get(store: &impl Exchanges, called: &str) -> Kept {
    at(store, called, instant(1)).await.expect("an exchange")
}

/// Its turns in their order, however often it names them.
pub async fn an_exchange_reads_back_as_it_was_written(store: &impl Exchanges) {
    let turns = ["b", "a", "b"].map(|called| (home().space, turn(called, "x").id));
    let first = Exchange {
        turns: turns.to_vec(),
        tokens: u32::MAX,
        ..exchange("e", "{}")
    };
    assert_eq!(at(store, "e", instant(1)).await, None);
    assert_eq!(put(store, &first, None).await, written(1));
    let kept = Kept {
        exchange: first,
        version: 1,
        forgotten: false,
    };
    assert_eq!(get(store, "e").await, kept);
    let second = exchange("e", "[]");
    assert_eq!(put(store, &second, Some(1)).await, written(2));
    assert_eq!(get(store, "e").await.exchange, second);
    assert_eq!(at(store, "another", instant(1)).await, None);
}

/// And nothing is written.
pub async fn a_write_that_knows_another_version_is_refused(store: &impl Exchanges) {
    let first = exchange("e", "first");
    for expected in [0, 1, u64::MAX] {
        assert_eq!(put(store, &first, Some(expected)).await, stale(expected, 0));
    }
    assert_eq!(put(store, &first, None).await, written(1));
    assert_eq!(
        put(store, &exchange("e", "second"), Some(1)).await,
        written(2)
    );
    let third = exchange("e", "third");
    for (expected, told) in [(None, 0), (Some(1), 1), (Some(3), 3), (Some(0), 0)] {
        assert_eq!(put(store, &third, expected).await, stale(told, 2));
    }
    assert_eq!(get(store, "e").await.exchange.state, "second");
}

/// The others hear of it.
pub async fn of_first_writes_at_the_same_time_one_is_made(store: &impl Exchanges) {
    let states: Vec<_> = (0..10)
        .map(|number| exchange("e", &number.to_string()))
        .collect();
    let outcomes = join_all(states.iter().map(|state| put(store, state, None))).await;
    let won: Vec<_> = outcomes
        .iter()
        .filter(|outcome| **outcome == written(1))
        .collect();
    let lost = outcomes.iter().filter(|outcome| **outcome == stale(0, 1));
    assert_eq!((won.len(), lost.count()), (1, 9), "{outcomes:?}");
}

/// Where each reads again until it is the one that wins.
pub async fn no_write_is_lost_however_many_there_are(store: &impl Exchanges) {
    let start = Exchange {
        tokens: 0,
        ..exchange("e", "x")
    };
    assert_eq!(put(store, &start, None).await, written(1));
    let spend = async |who: usize| {
        let mut spent = 0;
        while spent < 5 {
            let Kept {
                exchange, version, ..
            } = get(store, "e").await;
            let next = Exchange {
                tokens: exchange.tokens + 1,
                state: format!("{who} for the {spent}th time"),
                ..exchange
            };
            match put(store, &next, Some(version)).await {
                Ok(_) => spent += 1,
                Err(StoreError::Stale { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    join_all((0..8).map(spend)).await;
    let kept = get(store, "e").await;
    assert_eq!((kept.exchange.tokens, kept.version), (40, 41));
}

/// As happens where an answer is lost.
pub async fn the_same_write_sent_again_is_answered_as_before(store: &impl Exchanges) {
    let (first, second) = (exchange("e", "first"), exchange("e", "second"));
    for _ in 0..2 {
        assert_eq!(put(store, &first, None).await, written(1));
    }
    for _ in 0..2 {
        assert_eq!(put(store, &second, Some(1)).await, written(2));
    }
    assert_eq!(put(store, &first, None).await, stale(0, 2));
}

/// Its version goes on, so that nobody who knew it takes the next one for it.
pub async fn what_has_expired_is_not_there_and_gives_way(store: &impl Exchanges) {
    assert_eq!(put(store, &exchange("e", "first"), None).await, written(1));
    assert!(at(store, "e", instant(99)).await.is_some());
    assert_eq!(at(store, "e", instant(100)).await, None);
    let next = Exchange {
        updated_at: instant(100),
        expires_at: instant(200),
        ..exchange("e", "next")
    };
    let early = Exchange {
        updated_at: instant(99),
        ..next.clone()
    };
    assert_eq!(put(store, &early, None).await, stale(0, 1));
    assert_eq!(put(store, &next, None).await, written(2));
    assert_eq!(put(store, &next, None).await, written(2));
    assert_eq!(
        at(store, "e", instant(100)).await.map(|kept| kept.version),
        Some(2)
    );
}

/// Of this session.
pub async fn tokens_of_a_session_are_those_of_what_has_not_expired(store: &impl Exchanges) {
    let tokens = async |second| {
        let tokens = store
            .session_tokens(&acme(), &session("s1"), instant(second))
            .await;
        tokens.expect("tokens")
    };
    assert_eq!(tokens(1).await, 0);
    for (called, name, end) in [("s1", "a", 50), ("s1", "b", 100), ("s2", "a", 100)] {
        let exchange = Exchange {
            session: session(called),
            tokens: u32::MAX,
            expires_at: instant(end),
            ..exchange(name, "x")
        };
        assert_eq!(put(store, &exchange, None).await, written(1));
    }
    let most = u64::from(u32::MAX);
    assert_eq!((tokens(1).await, tokens(50).await), (2 * most, most));
    assert_eq!(tokens(100).await, 0);
}

/// As many as are asked for.
pub async fn states_of_a_session_are_told_newest_first(store: &impl Exchanges) {
    let states = async |limit, second| {
        let (tenant, session) = (acme(), session("s1"));
        let states = store.states(&tenant, &session, limit, instant(second));
        states.await.expect("states")
    };
    assert_eq!(states(9, 1).await, [""; 0]);
    for (called, name, at, end) in [
        ("s1", "b", 2, 50),
        ("s1", "a", 3, 100),
        ("s1", "c", 1, 100),
        ("s2", "d", 4, 100),
    ] {
        let exchange = Exchange {
            session: session(called),
            updated_at: instant(at),
            expires_at: instant(end),
            ..exchange(name, name)
        };
        assert_eq!(put(store, &exchange, None).await, written(1));
    }
    assert_eq!(states(9, 4).await, ["a", "b", "c"]);
    assert_eq!(states(2, 4).await, ["a", "b"]);
    assert_eq!(states(9, 50).await, ["a", "c"]);
    let globex = scope("globex", "ada").tenant;
    let theirs = store.states(&globex, &session("s1"), 9, instant(4)).await;
    assert_eq!(theirs, Ok(Vec::new()));
}

/// Of whatever tenant.
pub async fn only_what_has_expired_is_removed(store: &impl Exchanges) {
    for tenant in ["acme", "globex"] {
        for (called, end) in [("a", 50), ("b", 51), ("c", 60)] {
            let exchange = Exchange {
                expires_at: instant(end),
                turns: vec![(home().space, turn("t", "x").id)],
                ..exchange(called, "x")
            };
            let tenant = scope(tenant, "ada").tenant;
            let made = store.keep(&tenant, Entry::of(&exchange, None)).await;
            assert_eq!(made, written(1));
        }
    }
    assert_eq!(Exchanges::expire(store, instant(49)).await, Ok(0));
    assert_eq!(Exchanges::expire(store, instant(51)).await, Ok(4));
    assert_eq!(Exchanges::expire(store, instant(51)).await, Ok(0));
    assert_eq!(at(store, "b", instant(1)).await, None);
    assert_eq!(get(store, "c").await.version, 1);
    assert_eq!(put(store, &exchange("b", "x"), None).await, written(1));
}

/// Of one tenant, and no others.
pub async fn exchanges_beyond_a_number_go_those_that_end_first(store: &impl Exchanges) {
    for number in 0..8 {
        let ending = Exchange {
            expires_at: instant(100 + number * 7 % 8),
            ..exchange(&format!("e{number}"), "{}")
        };
        put(store, &ending, None).await.expect("a write");
    }
    let theirs = exchange("theirs", "{}");
    let other = scope("other", "space").tenant;
    let kept = store.keep(&other, Entry::of(&theirs, None)).await;
    kept.expect("a write");
    assert_eq!(Exchanges::bound(store, &acme(), 8).await, Ok(0));
    assert_eq!(Exchanges::bound(store, &acme(), 3).await, Ok(5));
    assert_eq!(Exchanges::bound(store, &acme(), 3).await, Ok(0));
    for number in 0..8 {
        let is_there = at(store, &format!("e{number}"), instant(1)).await.is_some();
        assert_eq!(is_there, number * 7 % 8 >= 5, "{number}");
    }
    let name = name("theirs");
    let found = Exchanges::get(store, &other, &session("s1"), &name, instant(1)).await;
    assert!(found.expect("get").is_some());
}

/// Of the same session and name.
pub async fn another_tenant_has_exchanges_of_its_own(store: &impl Exchanges) {
    let other = scope("globex", "ada").tenant;
    assert_eq!(put(store, &exchange("e", "ours"), None).await, written(1));
    let theirs =
        async || Exchanges::get(store, &other, &session("s1"), &name("e"), instant(1)).await;
    assert_eq!(theirs().await, Ok(None));
    let tokens = store
        .session_tokens(&other, &session("s1"), instant(1))
        .await;
    assert_eq!(tokens, Ok(0));
    let taken = store
        .keep(&other, Entry::of(&exchange("e", "x"), Some(1)))
        .await;
    assert_eq!(taken, stale(1, 0));
    let made = store
        .keep(&other, Entry::of(&exchange("e", "theirs"), None))
        .await;
    assert_eq!(made, written(1));
    assert_eq!(get(store, "e").await.exchange.state, "ours");
}

/// And are found by names of any script.
pub async fn states_of_any_script_read_back_byte_by_byte(store: &impl Exchanges) {
    let names = ["é", "e\u{301}", "名", "'; --", "E", "e", "👩‍👩‍👧"];
    for (called, text) in names.into_iter().zip(TEXTS) {
        assert_eq!(put(store, &exchange(called, text), None).await, written(1));
    }
    for (called, text) in names.into_iter().zip(TEXTS) {
        assert_eq!(get(store, called).await.exchange.state, text);
    }
}

/// Which it may have.
pub async fn an_exchange_has_a_largest_size(store: &impl Exchanges) {
    let id = turn("t", "x").id;
    let largest = Exchange {
        turns: vec![(home().space, id); TURN_LIMIT],
        tally: "x".repeat(STATE_LIMIT),
        ..exchange("e", &"é".repeat(STATE_LIMIT / 2))
    };
    assert_eq!(put(store, &largest, None).await, written(1));
    assert_eq!(get(store, "e").await.exchange, largest);
    let mut larger = [largest.clone(), largest.clone(), largest];
    larger[0].state.push('x');
    larger[1].turns.push((home().space, id));
    larger[2].tally.push('x');
    for larger in larger {
        let refused = put(store, &larger, Some(1)).await;
        assert!(matches!(refused, Err(StoreError::Oversized { .. })));
    }
}
