//! Indexes and token vectors in memory: as new as the store, within their budget, and gone with what is forgotten.

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::Scope;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::{session, turn_in};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::events::Event;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_retrieval::SpaceIndex;
use tokio_util::sync::CancellationToken;

use crate::memory::{Memory, acme};
use crate::told::query;

pub fn turns(scope: &Scope, count: usize) -> Vec<AcceptedTurn> {
    let turn = |n: usize| {
        let words = format!("Letter {n} about the garden of {}", scope.space);
        turn_in(scope, &format!("s{}", n % 3), &n.to_string(), &words)
    };
    (0..count).map(turn).collect()
}

#[tokio::test]
async fn a_search_sees_every_change_that_was_committed_before_it() {
    let memory = Memory::new().await;
    let scope = acme("ada");
    let garden = query("garden", &["ada"]);
    let told = turns(&scope, 9);
    for (n, turn) in told.iter().enumerate() {
        memory.tell(&scope, std::slice::from_ref(turn)).await;
        assert_eq!(memory.found(&garden).await.len(), n + 1);
    }
    let edit = AcceptedTurn {
        replaces: Some(told[0].id),
        ..turn_in(&scope, "s0", "edit", "The garden was sold")
    };
    memory.tell(&scope, &[edit]).await;
    let found = memory.found(&garden).await;
    assert_eq!(found.len(), 9);
    assert!(!found.contains(&told[0].content.text));
    let filter = TurnFilter {
        sessions: vec![session("s1")],
        ..TurnFilter::default()
    };
    memory.store.erase(&scope, &filter).await.unwrap();
    assert_eq!(memory.found(&garden).await.len(), 6);
    assert_eq!(
        memory.builds(),
        1,
        "changes alone brought the index up to date"
    );
}

#[tokio::test]
async fn amp_129_an_index_made_anew_of_the_ledger_finds_what_one_that_followed_it_finds() {
    let mut memory = Memory::new().await;
    let scope = acme("ada");
    let told = turns(&scope, 30);
    let sold = query("Who sold the garden? Letter 7", &["ada"]);
    for turns in told.chunks(7) {
        memory.tell(&scope, turns).await;
        memory.search(&sold).await.unwrap();
    }
    let filter = TurnFilter {
        turns: vec![told[4].id],
        ..TurnFilter::default()
    };
    memory.store.erase(&scope, &filter).await.unwrap();
    let edit = AcceptedTurn {
        replaces: Some(told[0].id),
        ..turn_in(&scope, "s0", "edit", "The garden was sold")
    };
    memory.tell(&scope, &[edit]).await;
    let followed = memory.search(&sold).await.unwrap();
    assert_eq!(memory.builds(), 1);
    assert!(followed.hits.len() > 20);
    for builds in 2..4 {
        // A retriever that knows nothing yet.
        memory.set_budget(1 << 30);
        assert_eq!(memory.search(&sold).await.unwrap(), followed);
        assert_eq!(memory.builds(), builds);
    }
}

#[tokio::test]
async fn a_space_that_was_forgotten_and_told_anew_shows_only_the_new() {
    let memory = Memory::new().await;
    let scope = acme("ada");
    let garden = query("garden", &["ada"]);
    memory.tell(&scope, &turns(&scope, 5)).await;
    assert_eq!(memory.found(&garden).await.len(), 5);
    memory
        .store
        .erase(&scope, &TurnFilter::default())
        .await
        .unwrap();
    assert!(memory.search(&garden).await.is_err(), "the space is gone");
    let anew = turn_in(&scope, "s9", "new", "Another garden");
    memory.tell(&scope, &[anew]).await;
    assert_eq!(memory.found(&garden).await, ["Another garden"]);
}

#[tokio::test]
async fn vectors_that_follow_later_reach_the_index() {
    let memory = Memory::new().await;
    let scope = acme("ada");
    let garden = query("garden", &["ada"]);
    memory.embedder.set_down(true);
    memory.tell(&scope, &turns(&scope, 1)).await;
    memory.embedder.set_down(false);
    assert_eq!(memory.search(&garden).await.unwrap().degraded.len(), 1);
    memory.bring_vectors().await;
    assert_eq!(memory.search(&garden).await.unwrap().degraded, [""; 0]);
}

#[tokio::test]
async fn the_least_recently_read_index_leaves_when_the_budget_is_full() {
    let mut memory = Memory::new().await;
    for space in ["a", "b", "c"] {
        memory.tell(&acme(space), &turns(&acme(space), 50)).await;
    }
    let mut one = SpaceIndex::new();
    one.advance(
        memory
            .store
            .changes_after(&acme("a"), 0, 1_000)
            .await
            .unwrap(),
    );
    memory.set_budget(one.bytes() * 5 / 2);
    for (space, builds) in [
        ("a", 1),
        ("b", 2),
        ("a", 2),
        // Here `b` has to leave, and comes back at the cost of `a`.
        ("c", 3),
        ("a", 3),
        ("c", 3),
        ("b", 4),
        ("c", 4),
        ("a", 5),
    ] {
        assert_eq!(memory.found(&query("garden", &[space])).await.len(), 50);
        assert_eq!(memory.builds(), builds, "{space}");
    }
}

#[tokio::test]
async fn without_any_room_searches_still_answer() {
    let mut memory = Memory::new().await;
    memory.set_budget(0);
    for space in ["a", "b"] {
        memory.tell(&acme(space), &turns(&acme(space), 5)).await;
    }
    for _ in 0..2 {
        let both = query("garden", &["a", "b"]);
        assert_eq!(memory.found(&both).await.len(), 10);
    }
}

#[tokio::test]
async fn token_vectors_are_read_from_the_store_once() {
    let memory = Memory::new().await;
    memory.tell(&acme("ada"), &turns(&acme("ada"), 20)).await;
    let garden = query("garden", &["ada"]);
    memory.found(&garden).await;
    let read = memory.passages_read();
    assert!(read >= 20);
    memory.found(&garden).await;
    assert_eq!(memory.passages_read(), read);
}

#[tokio::test]
async fn what_was_forgotten_leaves_memory_at_once() {
    let memory = Arc::new(Memory::new().await);
    let scope = acme("ada");
    memory.tell(&scope, &turns(&scope, 5)).await;
    let garden = query("garden", &["ada"]);
    memory.found(&garden).await;
    let (builds, read) = (memory.builds(), memory.passages_read());
    let shutdown = CancellationToken::new();
    let following = tokio::spawn({
        let (memory, shutdown) = (memory.clone(), shutdown.clone());
        async move { memory.retriever.follow(&memory.events, shutdown).await }
    });
    // The follower may not listen yet, and announcing twice does no harm.
    let forgotten = async {
        while memory.builds() == builds {
            memory.events.announce(Event::Forgotten {
                scope: scope.clone(),
            });
            memory.found(&garden).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), forgotten)
        .await
        .unwrap();
    assert!(memory.passages_read() > read, "token vectors went too");
    shutdown.cancel();
    following.await.unwrap();
}
