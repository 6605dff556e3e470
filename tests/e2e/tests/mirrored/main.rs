//! Vectors mirrored in Qdrant, with the store in PostgreSQL: the store's own conformance suite where `MEMFLEET_TEST_QDRANT_URL` names
//! a server (`cargo test --test mirrored -- --ignored`), and what goes on while there is none.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../crates/adapters/postgres/tests/postgres/database.rs"]
#[expect(dead_code, reason = "the adapter's own tests ask for more of it")]
mod database;

#[path = "../../../../crates/adapters/postgres/tests/postgres/conformance/whole.rs"]
#[expect(dead_code, reason = "nothing waits here")]
mod whole;

mod away;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use memfleet_ports::testing::NothingWaits;
use memfleet_qdrant::{Mirror, MirroredCandidates, MirroredErasure, Options};

use crate::database::Database;
use crate::whole::Whole;

/// Where tests that need a server find it: its gRPC address.
const SERVER: &str = "MEMFLEET_TEST_QDRANT_URL";

/// A store whose searches by vector all go to this server.
async fn mirrored(url: &str) -> (Whole<NothingWaits>, Arc<Mirror>, Database) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let database = Database::migrated().await;
    let store = database.store().await;
    let options = Options {
        url: url.to_owned(),
        // Tests share the server.
        prefix: format!(
            "memfleet_test_{}_{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ),
        timeout: Duration::from_secs(5),
        compared: 0,
        ..Options::default()
    };
    let mirror = Arc::new(Mirror::new(Arc::new(store.clone()), &options).unwrap());
    let whole = Whole::new(store, NothingWaits).behind(
        |store| Arc::new(MirroredCandidates::new(Arc::new(store), mirror.clone(), 0)),
        |erasure| Arc::new(MirroredErasure::new(erasure, mirror.clone())),
    );
    (whole, mirror, database)
}

/// The suite on a server. One test, because a suite's cases cannot be marked one by one.
mod on_a_server {
    use super::{SERVER, mirrored};
    use memfleet_ports::conformance::candidates as cases;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a Qdrant at MEMFLEET_TEST_QDRANT_URL"]
    async fn the_mirror_is_a_store_s_equal() {
        let url = std::env::var(SERVER).unwrap();
        macro_rules! run {
            ($($case:ident),*) => {$(
                let (store, _, _database) = mirrored(&url).await;
                cases::$case(&store).await;
            )*};
        }
        run!(
            the_extent_counts_passages_and_turns_without_vectors,
            an_outline_is_the_feed_without_words_and_vectors,
            postings_name_the_passages_of_each_term_as_they_are_now,
            the_nearest_come_first_and_only_of_those_asked_for,
            passages_come_in_the_order_asked,
            nothing_is_found_of_another_space_or_tenant
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a Qdrant at MEMFLEET_TEST_QDRANT_URL"]
    async fn what_is_forgotten_leaves_the_mirror_and_a_rebuild_makes_it_whole() {
        use memfleet_ports::conformance::samples::{batch, embedding_space, home, indexed, turn};
        use memfleet_ports::erasure::Erasure;
        use memfleet_ports::filter::TurnFilter;
        use memfleet_ports::ledger::Ledger;

        let url = std::env::var(SERVER).unwrap();
        let (store, mirror, _database) = mirrored(&url).await;
        let turns = vec![turn("a", "the red door"), turn("b", "a rose")];
        store
            .commit(vec![indexed(batch("k", turns), 1)])
            .await
            .unwrap();
        mirror.follow(&home(), &embedding_space("1")).await.unwrap();
        let filter = TurnFilter {
            turns: vec![turn("a", "").id],
            ..TurnFilter::default()
        };
        store.erase(&home(), &filter).await.unwrap();
        for _ in 0..2 {
            let found = mirror.verify(&home(), &embedding_space("1")).await.unwrap();
            assert!(found.stored > 0, "{found:?}");
            assert_eq!((found.missing, found.extra), (0, 0), "{found:?}");
            mirror
                .rebuild(&home(), &embedding_space("1"))
                .await
                .unwrap();
        }
    }
}
