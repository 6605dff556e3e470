//! What a search index hears of what is derived.

use memfleet_domain::derivation::{ChangeKind, Kind};
use memfleet_domain::ids::ChangeId;

use super::forgetting::forget;
use super::{change, closing, deriving, fact, home, make, moved};
use crate::conformance::samples::{embedding_space, instant, passages, turn, vectors};
use crate::erasure::Erasure;
use crate::feed::{Change, IndexFeed, IndexedDerivation};
use crate::knowledge::{Knowledge, Revision, Rewrite};
use crate::ledger::{Ledger, TextOwner, TextVectors};

/// In its present state, once, after its turn; and which turn it stands for.
pub async fn an_index_hears_of_what_is_derived<S: Ledger + Knowledge + IndexFeed>(store: &S) {
    let (_, _, first, second) = moved(store).await;
    make(store, closing(&first, &second, 30)).await;
    let derived = heard(store, 0).await;
    assert_eq!(derived.len(), 2);
    // What was closed came last: its number is that of what it is found by, which stays.
    let closed: &IndexedDerivation = &derived[1];
    assert_eq!((closed.id, closed.kind), (first.id, Kind::Fact));
    assert_eq!(closed.turns, first.turns);
    assert_eq!(closed.entities, ["ada", "rome"]);
    assert_eq!(closed.passage.terms, passages("lives there")[0].terms);
    assert!(closed.passage.sentence.is_some());
    let tokens = store.token_vectors(&home(), None, &[closed.number]).await;
    assert!(tokens.expect("an answer")[0].is_some());
    // One at a time it is the same.
    let (mut reached, mut paged) = (0, Vec::new());
    loop {
        let page = store.changes_after(&home(), reached, 1).await;
        let page = page.expect("an answer");
        paged.extend(page.changes);
        reached = page.reached;
        if !page.more {
            break;
        }
    }
    assert_eq!(only_derived(paged), derived);
}

/// And of what holds at no instant any more, and of nothing derived from what was forgotten.
pub async fn an_index_hears_of_what_is_withdrawn<S: Ledger + Knowledge + IndexFeed + Erasure>(
    store: &S,
) {
    let (_, oslo, first, second) = moved(store).await;
    let head = store.head(&home()).await.expect("an answer");
    let id = ChangeId::of("test", &[b"withdrawn"]);
    let withdrawn = Rewrite {
        change: change(id, ChangeKind::Corrected, 40),
        revisions: vec![Revision {
            derivation: first.next(id).withdrawn(),
            passage: None,
        }],
    };
    make(store, withdrawn).await;
    let after = store.changes_after(&home(), head, 9).await;
    let after = after.expect("an answer").changes;
    assert_eq!(after, [Change::Withdrawn(first.id)]);
    forget(store, oslo.id).await;
    assert!(
        heard(store, 0)
            .await
            .iter()
            .all(|heard| heard.id != second.id)
    );
}

/// The others of the same call come, and an index hears of them.
pub async fn vectors_of_a_version_that_another_followed_are_left_alone<
    S: Ledger + Knowledge + IndexFeed,
>(
    store: &S,
) {
    let (rome, oslo) = (turn("1", "I live in Rome."), turn("2", "I moved to Oslo."));
    super::store(store, &[&rome, &oslo]).await;
    let first = fact(&rome, "Ada", "Rome", instant(10));
    let second = fact(&oslo, "Ada", "Oslo", instant(20));
    for fact in [&first, &second] {
        let mut rewrite = deriving(&[fact]);
        rewrite.revisions[0].passage.as_mut().expect("one").vectors = None;
        make(store, rewrite).await;
    }
    make(store, closing(&first, &second, 30)).await;
    let head = store.head(&home()).await.expect("head");
    let made = |id, version| TextVectors {
        owner: TextOwner::Derivation(id, version),
        vectors: vec![vectors("lives there")],
    };
    let space = embedding_space("1");
    let mut texts = vec![made(first.id, 1), made(second.id, 1)];
    let attached = store.attach_vectors(&home(), &space, &texts).await;
    assert_eq!(attached, Ok(()));
    let waiting = store.derivations_without_vectors(&space, 10).await;
    let waiting = waiting.expect("waiting");
    let versions = waiting.iter().map(|it| &it.derivation);
    let versions: Vec<_> = versions.map(|it| (it.id, it.version)).collect();
    assert_eq!(versions, [(first.id, 2)]);
    texts = vec![made(first.id, 2)];
    let attached = store.attach_vectors(&home(), &space, &texts).await;
    assert_eq!(attached, Ok(()));
    let waiting = store.derivations_without_vectors(&space, 10).await;
    assert_eq!(waiting, Ok(vec![]));
    let heard = heard(store, head).await;
    let ids: Vec<_> = heard.iter().map(|heard| heard.id).collect();
    assert_eq!(ids, [second.id, first.id]);
    assert!(heard.iter().all(|heard| heard.passage.sentence.is_some()));
}

async fn heard<S: IndexFeed>(store: &S, after: u64) -> Vec<IndexedDerivation> {
    let page = store.changes_after(&home(), after, 100).await;
    only_derived(page.expect("an answer").changes)
}

fn only_derived(changes: Vec<Change>) -> Vec<IndexedDerivation> {
    let derived = changes.into_iter().filter_map(|change| match change {
        Change::Derived(derived) => Some(*derived),
        _ => None,
    });
    derived.collect()
}
