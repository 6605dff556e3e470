//! Forgetting what is still on its way.

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::ingestion::TurnState;
use memfleet_domain::{FaultKind, Scope};
use memfleet_ports::conformance::samples::{batch_in, indexed, instant, scope};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::{Bounds, DeadLetter, IngestQueue};
use memfleet_ports::refresher::{ForgetRequest, Refresher};

use crate::bench::{Bench, acme, bench, conversation, everything, home, of_session};

impl Bench {
    async fn accept(&self, scope: &Scope, key: &str) {
        let batch = batch_in(scope, key, conversation(scope));
        self.store
            .publish(&batch, instant(0), Bounds::NONE)
            .await
            .unwrap();
    }

    /// What the constructor does with one batch.
    async fn apply_one(&self) {
        for delivery in self.store.take(1).await.unwrap() {
            let acceptance = delivery.acceptance;
            let batch = indexed(delivery.batch, acceptance);
            self.store.commit(vec![batch]).await.unwrap();
            self.store.acknowledge(&[acceptance]).await.unwrap();
        }
    }

    /// A conversation that was accepted and is a dead letter now.
    async fn bury(&self, scope: &Scope) {
        self.accept(scope, "poison").await;
        for delivery in self.store.take(1).await.unwrap() {
            let letter = DeadLetter {
                acceptance: delivery.acceptance,
                batch: delivery.batch,
                reason: "STORE_REFUSED: x".into(),
                failed_at: instant(1),
                attempts: 5,
            };
            self.store.dead_letter(&letter).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_was_accepted_before_a_forget_is_applied_first_and_does_not_come_back() {
    let bench = Arc::new(bench().await);
    bench.accept(&home(), "first").await;
    let forgetting = tokio::spawn({
        let bench = bench.clone();
        async move { bench.forget(&of_session("s1")).await }
    });
    bench.apply_one().await;
    let receipt = forgetting.await.unwrap().unwrap();
    assert_eq!(receipt.erased.turns.len(), 2);
    assert_eq!(bench.left(&home()).await, ["0", "1", "4", "5"]);
    let batch = batch_in(&home(), "first", vec![]).id;
    let status = bench.store.batch(&home(), batch).await.unwrap().unwrap();
    let forgotten =
        |turn: &&memfleet_domain::ingestion::TurnReceipt| turn.state == TurnState::Forgotten;
    assert_eq!(status.turns.iter().filter(forgotten).count(), 2);
}

#[tokio::test]
async fn a_space_whose_first_write_is_queued_can_be_forgotten() {
    let bench = Arc::new(bench().await);
    bench.accept(&home(), "first").await;
    let forgetting = tokio::spawn({
        let bench = bench.clone();
        async move { bench.forget(&everything()).await }
    });
    // The forget asks for the queue first; only then does the space come to exist.
    tokio::task::yield_now().await;
    bench.apply_one().await;
    let receipt = forgetting.await.unwrap().unwrap();
    assert!(receipt.erased.space);
    assert_eq!(receipt.erased.turns.len(), 6);
    assert_eq!(bench.left(&home()).await, [""; 0]);
}

#[tokio::test]
async fn a_forget_that_cannot_wait_for_the_queue_says_so_and_forgets_nothing() {
    let bench = bench().await;
    bench.commit(&home(), 1, conversation(&home())).await;
    bench.accept(&home(), "stuck").await;
    let brief = acme(Duration::from_millis(50));
    let fault = bench.refresher.forget(&brief, &everything()).await;
    let fault = fault.unwrap_err();
    assert_eq!(fault.kind, FaultKind::DeadlineExceeded);
    let waited_for = "writes that were accepted before the forget";
    assert!(fault.message.contains(waited_for), "{fault}");
    assert_eq!(bench.left(&home()).await.len(), 6);
}

#[tokio::test]
async fn the_queue_of_another_space_holds_nothing_up() {
    let bench = bench().await;
    bench.commit(&home(), 1, conversation(&home())).await;
    for other in [scope("acme", "bob"), scope("globex", "ada")] {
        bench.accept(&other, "waiting").await;
    }
    bench.forget(&everything()).await.unwrap();
    assert_eq!(bench.depth().await.batches, 2);
}

#[tokio::test]
async fn dead_letters_of_a_space_that_never_came_to_be_are_forgotten_and_counted() {
    let bench = bench().await;
    bench.bury(&home()).await;
    let receipt = bench.forget(&of_session("s2")).await.unwrap();
    assert_eq!(receipt.erased.undelivered, 2);
    let letters = bench
        .store
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await
        .unwrap();
    assert_eq!(letters.items[0].batch.turns.len(), 4);
    let none_left = bench.forget(&of_session("s2")).await.unwrap_err();
    assert_eq!(none_left.kind, FaultKind::NotFound);
}

#[tokio::test]
async fn a_space_of_which_only_a_dead_letter_is_left_can_be_forgotten() {
    let bench = bench().await;
    bench.bury(&home()).await;
    for dry_run in [true, false] {
        let request = ForgetRequest {
            dry_run,
            ..everything()
        };
        let receipt = bench.forget(&request).await.unwrap();
        assert_eq!(receipt.erased.undelivered, 6);
        assert!(!receipt.erased.space, "there was none");
    }
    assert_eq!(bench.depth().await.dead_letters, 0);
    let nothing_left = bench.forget(&everything()).await.unwrap_err();
    assert_eq!(nothing_left.kind, FaultKind::NotFound);
}
