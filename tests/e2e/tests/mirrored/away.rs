//! While Qdrant is away the store answers, and a forget says that it is not finished.

use memfleet_ports::candidates::Candidates;
use memfleet_ports::conformance::samples::{batch, embedding_space, home, indexed, turn, vectors};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::store::StoreError;
use memfleet_servers::free_port;

use crate::mirrored;

#[tokio::test(flavor = "multi_thread")]
async fn the_store_answers_and_a_forget_is_to_be_repeated() {
    let nobody = format!("http://127.0.0.1:{}", free_port().unwrap());
    let (store, _, database) = mirrored(&nobody).await;
    let turns = vec![turn("a", "the red door"), turn("b", "a rose")];
    store
        .commit(vec![indexed(batch("k", turns), 1)])
        .await
        .unwrap();
    let query = vectors("the red door").sentence;
    let among = (0..10).collect();
    let model = embedding_space("1");
    let found = store
        .nearest(&home(), Some(&model), &query, &among, 10)
        .await;
    let alone = database.store().await;
    assert_eq!(
        found,
        alone
            .nearest(&home(), Some(&model), &query, &among, 10)
            .await
    );
    assert!(!found.unwrap().is_empty());

    let filter = TurnFilter {
        turns: vec![turn("a", "").id],
        ..TurnFilter::default()
    };
    let refused = store.erase(&home(), &filter).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Unavailable(cause) if cause.contains("Qdrant")),
        "{refused}"
    );
    let left = alone.turns(&home(), &[turn("a", "").id]).await.unwrap();
    assert_eq!(left, [], "no read finds it any more");
}
