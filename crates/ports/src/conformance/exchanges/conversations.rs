//! Conversations that are known again.

use futures::future::join_all;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::time::Timestamp;

use super::forgetting::{Forgetful, commit, forget};
use super::{acme, exchange, get, put, stale, written};
use crate::conformance::samples::{conversation, home, instant, scope, session, turn};
use crate::conversations::{Ancestor, Conversation, FOUND, LINEAGE_LIMIT, Owner, Sought};
use crate::erasure::Erasure;
use crate::exchanges::{Entry, Exchange, Exchanges, STATE_LIMIT, Written};
use crate::filter::TurnFilter;
use crate::store::StoreError;

fn ada() -> SpaceId {
    home().space
}

fn told(called: &str, heard: i64) -> Conversation {
    conversation(&ada(), called, heard)
}

async fn hear(store: &impl Exchanges, conversation: &Conversation) {
    let heard = store.keep(&acme(), Entry::heard(conversation)).await;
    assert_eq!(heard, Ok(Written::default()));
}

fn sought(owner: &Owner, opening: &str, keys: &[&str]) -> Sought {
    Sought {
        owner: owner.clone(),
        opening: opening.to_owned(),
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
    }
}

async fn found(store: &impl Exchanges, sought: &Sought, now: Timestamp) -> Vec<Conversation> {
    let found = store.conversations(&acme(), sought, now).await;
    found.expect("conversations")
}

async fn names(store: &impl Exchanges, sought: &Sought) -> Vec<String> {
    let found = found(store, sought, instant(1)).await;
    found.into_iter().map(|it| it.session.into()).collect()
}

/// And takes the place of what was told of it before.
pub async fn a_conversation_reads_back_as_it_was_heard_last(store: &impl Exchanges) {
    let first = told("c", 1);
    let second = Conversation {
        opening: "'; --".into(),
        key: "é名".into(),
        state: "👩‍👩‍👧".into(),
        lineage: [("p", 3), ("q", 0)]
            .map(|(name, shared)| Ancestor {
                session: session(name),
                shared,
            })
            .to_vec(),
        ..told("c", 2)
    };
    for conversation in [first, second.clone(), second] {
        hear(store, &conversation).await;
        let sought = sought(&conversation.owner, "", &[]);
        assert_eq!(found(store, &sought, instant(1)).await, [conversation]);
    }
}

/// However many are heard of later: by the latest of its requests that is known, or by its opening. Others only as long as they are among
/// the latest.
pub async fn a_conversation_is_found_by_what_names_it(store: &impl Exchanges) {
    for number in 0..30 {
        let conversation = Conversation {
            opening: if number < 20 { "hi" } else { "ho" }.into(),
            key: if number < 10 { "first" } else { "second" }.into(),
            ..told(&format!("{number:02}"), number)
        };
        hear(store, &conversation).await;
    }
    let old = Conversation {
        key: "own".into(),
        ..told("old", 0)
    };
    hear(store, &old).await;
    let owner = &old.owner;
    let [by_key, by_opening, latest] = FOUND.map(|most| most as usize);
    let all = |range: std::ops::Range<usize>| range.rev().map(|it| format!("{it:02}"));
    let others: Vec<_> = all(30 - latest..30).collect();
    assert_eq!(names(store, &sought(owner, "", &[])).await, others);
    let by_opening: Vec<_> = all(20 - by_opening..20).collect();
    let expected = [others.clone(), by_opening].concat();
    assert_eq!(names(store, &sought(owner, "hi", &[])).await, expected);
    let by_key: Vec<_> = all(10 - (by_key - 1)..10).collect();
    let expected = [others, by_key, vec!["old".into()]].concat();
    let keys = ["none", "own", "first"];
    assert_eq!(names(store, &sought(owner, "", &keys)).await, expected);
}

/// Whatever they have in common.
pub async fn a_conversation_is_that_of_one_owner(store: &impl Exchanges) {
    let own = told("own", 1);
    hear(store, &own).await;
    let by_bob = Conversation {
        owner: Owner {
            caller: "bob".into(),
            ..own.owner.clone()
        },
        ..told("by bob", 1)
    };
    hear(store, &by_bob).await;
    let elsewhere = conversation(&scope("acme", "bob").space, "elsewhere", 1);
    hear(store, &elsewhere).await;
    let globex = scope("globex", "ada").tenant;
    let heard = store.keep(&globex, Entry::heard(&own)).await;
    assert_eq!(heard, Ok(Written::default()));
    for conversation in [&own, &by_bob, &elsewhere] {
        let sought = sought(&conversation.owner, &own.opening, &[&own.key]);
        assert_eq!(
            found(store, &sought, instant(1)).await,
            std::slice::from_ref(conversation)
        );
    }
}

/// It may begin again under its name.
pub async fn a_conversation_ends_when_it_was_not_heard_of_for_long(store: &impl Exchanges) {
    let [short, long] = [("short", 50), ("long", 60)].map(|(called, end)| Conversation {
        expires_at: instant(end),
        ..told(called, 1)
    });
    for conversation in [&short, &long] {
        hear(store, conversation).await;
    }
    let sought = sought(&short.owner, "", &[]);
    assert_eq!(
        found(store, &sought, instant(50)).await,
        std::slice::from_ref(&long)
    );
    assert_eq!(Exchanges::expire(store, instant(50)).await, Ok(1));
    assert_eq!(
        found(store, &sought, instant(1)).await,
        std::slice::from_ref(&long)
    );
    hear(store, &short).await;
    assert_eq!(found(store, &sought, instant(1)).await, [long, short]);
}

fn with<'e>(
    conversation: &'e Conversation,
    exchange: &'e Exchange,
    expected: Option<u64>,
) -> Entry<'e> {
    Entry {
        conversation: Some(conversation),
        ..Entry::of(exchange, expected)
    }
}

/// Both or none.
pub async fn a_conversation_is_written_with_its_exchange(store: &impl Exchanges) {
    let conversation = told("s1", 1);
    let first = exchange("e", "first");
    for _ in 0..2 {
        let entry = with(&conversation, &first, None);
        assert_eq!(store.keep(&acme(), entry).await, written(1));
    }
    assert_eq!(get(store, "e").await.exchange, first);
    let later = Conversation {
        key: "later".into(),
        ..conversation.clone()
    };
    let second = exchange("e", "second");
    let refused = store.keep(&acme(), with(&later, &second, None)).await;
    assert_eq!(refused, stale(0, 1));
    let large = Exchange {
        state: "x".repeat(STATE_LIMIT + 1),
        ..second
    };
    let refused = store.keep(&acme(), with(&later, &large, Some(1))).await;
    assert!(matches!(refused, Err(StoreError::Oversized { .. })));
    let sought = sought(&conversation.owner, "", &[]);
    assert_eq!(found(store, &sought, instant(1)).await, [conversation]);
    assert_eq!(put(store, &first, Some(1)).await, written(2));
}

/// Which it may have.
pub async fn a_conversation_has_a_largest_size(store: &impl Exchanges) {
    let ancestor = Ancestor {
        session: session("p"),
        shared: 1,
    };
    let largest = Conversation {
        state: "é".repeat(STATE_LIMIT / 2),
        lineage: vec![ancestor.clone(); LINEAGE_LIMIT],
        ..told("c", 1)
    };
    hear(store, &largest).await;
    let mut larger = [largest.clone(), largest.clone()];
    larger[0].state.push('x');
    larger[1].lineage.push(ancestor);
    for larger in larger {
        let refused = store.keep(&acme(), Entry::heard(&larger)).await;
        assert!(matches!(refused, Err(StoreError::Oversized { .. })));
    }
    let sought = sought(&largest.owner, "", &[]);
    assert_eq!(found(store, &sought, instant(1)).await, [largest]);
}

/// Of its space only. It is found as before, and what is heard of it next is kept.
pub async fn a_forget_takes_what_was_said_in_conversations(store: &impl Forgetful) {
    let gone = turn("a", "x");
    commit(store, &home(), "k", vec![gone.clone()]).await;
    let own = told("own", 1);
    let bob = scope("acme", "bob");
    let elsewhere = conversation(&bob.space, "elsewhere", 1);
    for conversation in [&own, &elsewhere] {
        hear(store, conversation).await;
    }
    let plain = Conversation {
        key: "0123456789abcdef".into(),
        ..told("plain", 0)
    };
    hear(store, &plain).await;
    forget(store, &gone).await;
    let by_key = sought(&own.owner, "", &[&own.key]);
    let left = [&own, &plain].map(|heard| Conversation {
        opening: String::new(),
        state: String::new(),
        // Without a secret it would tell whoever guesses.
        key: if heard.key == own.key {
            own.key.clone()
        } else {
            String::new()
        },
        ..heard.clone()
    });
    assert_eq!(found(store, &by_key, instant(1)).await, left);
    let without_key = Conversation {
        opening: String::new(),
        expires_at: instant(1),
        ..plain
    };
    hear(store, &without_key).await;
    hear(store, &own).await;
    assert_eq!(found(store, &by_key, instant(1)).await, [own]);
    let others = sought(&elsewhere.owner, "", &[]);
    assert_eq!(found(store, &others, instant(1)).await, [elsewhere]);
}

/// A space that nobody wrote to may have some.
pub async fn a_forgotten_space_takes_its_conversations(store: &impl Forgetful) {
    commit(store, &home(), "k", vec![turn("a", "x")]).await;
    let bob = scope("acme", "bob");
    let own = told("own", 1);
    let elsewhere = conversation(&bob.space, "elsewhere", 1);
    for conversation in [&own, &elsewhere] {
        hear(store, conversation).await;
    }
    for (scope, left) in [(home(), 1), (bob, 0)] {
        let everything = TurnFilter::default();
        Erasure::erase(store, &scope, &everything)
            .await
            .expect("erase");
        let mut known = 0;
        for owner in [&own.owner, &elsewhere.owner] {
            known += names(store, &sought(owner, "", &[])).await.len();
        }
        assert_eq!(known, left, "{scope:?}");
    }
}

/// Other spaces and tenants have others, and a space that begins again has a new one.
pub async fn a_space_has_a_secret_as_long_as_it_is_there(store: &impl Forgetful) {
    let (acme, globex) = (home().tenant, scope("globex", "ada").tenant);
    let secret = async |tenant: &TenantId, name: Option<&str>| {
        let space = name.map(|name| scope("acme", name).space);
        store
            .secret(tenant, space.as_ref())
            .await
            .expect("a secret")
    };
    let own = secret(&acme, Some("ada")).await;
    assert_eq!(secret(&acme, Some("ada")).await, own);
    let of_tenant = secret(&acme, None).await;
    let others = [
        secret(&acme, Some("bob")).await,
        secret(&globex, Some("ada")).await,
        of_tenant,
    ];
    assert!(!others.contains(&own));
    let together = (0..5).map(|_| secret(&globex, None));
    let made = join_all(together).await;
    assert!(made.iter().all(|secret| *secret == made[0]));
    let everything = TurnFilter::default();
    let erased = Erasure::erase(store, &home(), &everything).await;
    erased.expect("erase");
    assert_ne!(secret(&acme, Some("ada")).await, own);
    assert_eq!(secret(&acme, None).await, of_tenant);
    assert_eq!(secret(&globex, Some("ada")).await, others[1]);
}
