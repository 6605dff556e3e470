//! What a search index hears of what is derived.

use memfleet_domain::derivation::{ChangeKind, Kind};
use memfleet_domain::ids::ChangeId;

use super::forgetting::forget;
use super::{change, closing, home, make, moved};
use crate::conformance::samples::passages;
use crate::erasure::Erasure;
use crate::feed::{Change, IndexFeed, IndexedDerivation};
use crate::knowledge::{Knowledge, Revision, Rewrite};
use crate::ledger::Ledger;

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
