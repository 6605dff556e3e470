//! How agents follow a space.

use super::{home, moved, store};
use crate::conformance::samples::{batch_in, indexed, instant, scope, turn, turn_in};
use crate::feed::IndexFeed;
use crate::knowledge::{
    Applied, Knowledge, LONGEST_LOST_PAUSE, LOST_PAUSE, Position, Progress, Stage, Work,
};
use crate::ledger::Ledger;

fn to(from: u64, to: u64) -> Work {
    let stage = Stage::Derive;
    Work {
        progress: Some(Progress { stage, from, to }),
        ..Work::default()
    }
}

/// Each stage for itself.
pub async fn work_is_pending_until_the_stage_has_reached_the_head<
    S: Ledger + Knowledge + IndexFeed,
>(
    store: &S,
) {
    assert_eq!(
        store.pending(Stage::Derive, 9).await.expect("an answer"),
        []
    );
    moved(store).await;
    assert_eq!(
        store.pending(Stage::Derive, 9).await.expect("an answer"),
        [home()]
    );
    let head = store.head(&home()).await.expect("an answer");
    let claim = store
        .claim(&home(), Stage::Derive, instant(0), instant(9))
        .await;
    assert_eq!(claim.expect("an answer"), Some(0));
    assert_eq!(
        store.apply(&home(), to(0, head)).await.expect("an answer"),
        Applied::Done(head)
    );
    assert_eq!(
        store.pending(Stage::Derive, 9).await.expect("an answer"),
        []
    );
    for (stage, reached) in [(Stage::Derive, head), (Stage::Judge, 0)] {
        let position = store.position(&home(), stage).await.expect("an answer");
        assert_eq!(position, Some(Position { reached, head }));
    }
    assert_eq!(
        store.pending(Stage::Judge, 9).await.expect("an answer"),
        [home()]
    );
}

/// However many one of them has.
pub async fn spaces_of_a_tenant_are_pending_behind_the_first_of_each_other<
    S: Ledger + Knowledge,
>(
    store: &S,
) {
    let spaces = [("acme", "a"), ("acme", "b"), ("acme", "c"), ("beta", "d")];
    for (number, (tenant, space)) in (1..).zip(spaces) {
        let here = scope(tenant, space);
        let told = batch_in(&here, space, vec![turn_in(&here, "s", "t", "text")]);
        let told = indexed(told, number);
        store.commit(vec![told]).await.expect("a commit");
    }
    let first = store.pending(Stage::Derive, 2).await.expect("an answer");
    let mut tenants: Vec<_> = first.iter().map(|scope| scope.tenant.as_str()).collect();
    tenants.sort_unstable();
    assert_eq!(tenants, ["acme", "beta"]);
    let all = store.pending(Stage::Derive, 9).await.expect("an answer");
    assert_eq!(all.len(), 4);
}

/// Until it gives it back, or its time is over.
pub async fn one_worker_at_a_time_has_a_space<S: Ledger + Knowledge>(store: &S) {
    moved(store).await;
    let claim = |now: i64, until: i64| async move {
        store
            .claim(&home(), Stage::Derive, instant(now), instant(until))
            .await
            .expect("an answer")
    };
    assert_eq!(claim(0, 10).await, Some(0));
    assert_eq!(claim(9, 20).await, None);
    assert_eq!(claim(10, 20).await, Some(0));
    let release = |until: i64| async move {
        let released = store.release(&home(), Stage::Derive, instant(until)).await;
        released.expect("an answer");
    };
    // Whose time was over keeps nobody's place.
    release(10).await;
    assert_eq!(claim(11, 21).await, None);
    release(20).await;
    assert_eq!(claim(11, 21).await, Some(0));
    let nowhere = crate::conformance::samples::scope("acme", "nowhere");
    let claimed = store
        .claim(&nowhere, Stage::Derive, instant(0), instant(1))
        .await;
    assert_eq!(claimed.expect("an answer"), None);
}

/// Lost claims are those that only their instants ended.
pub async fn a_space_whose_claims_are_lost_is_left_alone_for_longer_each_time<
    S: Ledger + Knowledge,
>(
    store: &S,
) {
    moved(store).await;
    let claim = |now: i64| async move {
        let claimed = store
            .claim(&home(), Stage::Derive, instant(now), instant(now + 10))
            .await;
        claimed.expect("an answer").is_some()
    };
    let release = |until: i64| async move {
        let released = store.release(&home(), Stage::Derive, instant(until)).await;
        released.expect("an answer");
    };
    for now in [0, 10, 20] {
        assert!(claim(now).await, "{now}");
    }
    let pause = LOST_PAUSE.num_seconds();
    let longest = LONGEST_LOST_PAUSE.num_seconds();
    let mut end = 30;
    for pause in [pause, 2 * pause, 4 * pause] {
        assert!(!claim(end + pause - 1).await, "{pause}");
        assert!(claim(end + pause).await, "{pause}");
        end += pause + 10;
    }
    for _ in 0..40 {
        end += longest + 10;
        assert!(claim(end - 10).await);
    }
    assert!(!claim(end + longest - 1).await);
    // Work that came to its end forgets what was lost before.
    assert!(claim(end + longest).await);
    release(end + longest + 10).await;
    assert!(claim(end + longest).await);
}

/// Another worker was faster.
pub async fn progress_from_elsewhere_is_stale<S: Ledger + Knowledge>(store_: &S) {
    store(store_, &[&turn("1", "I live in Rome.")]).await;
    store_
        .claim(&home(), Stage::Derive, instant(0), instant(9))
        .await
        .expect("an answer");
    assert_ne!(
        store_.apply(&home(), to(0, 1)).await.expect("an answer"),
        Applied::Stale
    );
    assert_eq!(
        store_.apply(&home(), to(0, 1)).await.expect("an answer"),
        Applied::Stale
    );
}
