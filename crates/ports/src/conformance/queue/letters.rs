//! What could not be applied.

use memfleet_domain::time::Timestamp;

use super::{depth, positions, publish, some, take};
use crate::conformance::samples::{batch, batch_in, home, instant, scope, turn, turn_in};

use crate::queue::{Bounds, DeadLetter, Delivery, Depth, IngestQueue, Place};
use crate::store::StoreError;

pub(super) fn letter(delivery: &Delivery, failed_at: Timestamp) -> DeadLetter {
    DeadLetter {
        acceptance: delivery.acceptance,
        batch: delivery.batch.clone(),
        reason: "POISON: it does not parse".into(),
        failed_at,
        attempts: delivery.attempt,
    }
}

/// Only the turns that failed; the rest counts as applied.
pub async fn dead_letters_leave_the_queue_and_are_listed(queue: &impl IngestQueue) {
    for key in ["k1", "k2", "k3"] {
        publish(queue, key, 3).await;
    }
    let mut letters = Vec::new();
    for delivery in queue.take(100).await.expect("take") {
        let mut letter = letter(&delivery, instant(77));
        letter.batch.turns.truncate(1);
        queue.dead_letter(&letter).await.expect("dead letter");
        assert_eq!(
            queue.buried(&home(), letter.batch.id).await,
            Ok(Some(letter.clone()))
        );
        letters.push(letter);
    }
    let buried = letters[0].batch.id;
    assert_eq!(queue.waiting(&home(), buried).await, Ok(None));
    assert_eq!(queue.place(&home(), buried).await, Ok(Some(Place::Buried)));
    assert_eq!(
        queue
            .buried(&scope("acme", "bob"), letters[0].batch.id)
            .await,
        Ok(None)
    );
    let first = queue
        .dead_letters(&home().tenant, Some(&home().space), 2, None)
        .await
        .expect("dead letters");
    assert_eq!(first.items, letters[..2]);
    let second = queue
        .dead_letters(&home().tenant, Some(&home().space), 2, first.next.as_ref())
        .await
        .expect("dead letters");
    assert_eq!((&second.items[..], second.next), (&letters[2..], None));
    let bob = queue
        .dead_letters(
            &scope("acme", "bob").tenant,
            Some(&scope("acme", "bob").space),
            2,
            None,
        )
        .await
        .expect("dead letters");
    assert_eq!(bob.items, []);
    assert_eq!(
        depth(queue).await.own,
        Depth {
            dead_letters: 3,
            ..Depth::default()
        }
    );
}

/// Page by page, and of no other tenant.
pub async fn dead_letters_of_all_spaces_of_a_tenant_are_listed(queue: &impl IngestQueue) {
    let spaces = [("acme", "ada"), ("acme", "bob"), ("globex", "ada")];
    for (tenant, space) in spaces {
        let scope = scope(tenant, space);
        let told = batch_in(&scope, "k", vec![turn_in(&scope, "s", "a", "x")]);
        let published = queue.publish(&told, instant(0), Bounds::NONE).await;
        published.expect("publish");
    }
    for delivery in queue.take(100).await.expect("take") {
        let letter = letter(&delivery, instant(7));
        queue.dead_letter(&letter).await.expect("dead letter");
    }
    let tenant = home().tenant;
    let mut listed = Vec::new();
    let mut after = None;
    loop {
        let page = queue.dead_letters(&tenant, None, 1, after.as_ref()).await;
        let page = page.expect("dead letters");
        listed.extend(page.items.into_iter().map(|letter| letter.batch.scope));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, [home(), scope("acme", "bob")]);
}

/// None is missed for it.
pub async fn a_page_of_large_dead_letters_ends_before_its_limit(queue: &impl IngestQueue) {
    const LARGE: usize = 900 << 10;
    const LETTERS: usize = 24;
    let mut buried = Vec::new();
    for number in 0..LETTERS {
        let key = format!("k{number}");
        let told = batch(&key, vec![turn(&key, &"x".repeat(LARGE))]);
        let published = queue.publish(&told, instant(0), Bounds::NONE).await;
        published.expect("publish");
        let delivery = queue.take(1).await.expect("take").remove(0);
        let letter = letter(&delivery, instant(1));
        queue.dead_letter(&letter).await.expect("dead letter");
        buried.push(letter.acceptance);
    }
    let tenant = home().tenant;
    for space in [None, Some(home().space)] {
        let (mut listed, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = queue.dead_letters(&tenant, space.as_ref(), 1_000, after.as_ref());
            let page = page.await.expect("dead letters");
            assert!(page.items.len() < LETTERS, "{}", page.items.len());
            listed.extend(page.items.iter().map(|letter| letter.acceptance));
            (after, pages) = (page.next, pages + 1);
            if after.is_none() {
                break;
            }
        }
        assert_eq!((listed, pages), (buried.clone(), 2));
    }
}

/// Each once.
pub async fn spaces_with_dead_letters_are_named(queue: &impl IngestQueue) {
    let named = async || {
        let spaces = queue.buried_spaces(&home().tenant).await.expect("spaces");
        let mut names: Vec<_> = spaces.iter().map(ToString::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(named().await, [""; 0]);
    let told = [
        ("acme", "ada", "k1"),
        ("acme", "ada", "k2"),
        ("acme", "bob", "k1"),
        ("globex", "eve", "k1"),
    ];
    for (tenant, space, key) in told {
        let scope = scope(tenant, space);
        let told = batch_in(&scope, key, vec![turn_in(&scope, "s", "a", "x")]);
        let published = queue.publish(&told, instant(0), Bounds::NONE).await;
        published.expect("publish");
    }
    for delivery in queue.take(100).await.expect("take") {
        let letter = letter(&delivery, instant(1));
        queue.dead_letter(&letter).await.expect("dead letter");
    }
    assert_eq!(named().await, ["ada", "bob"]);
}

/// A turn here, a turn there.
pub async fn a_second_letter_of_a_delivery_loses_nothing_of_the_first(queue: &impl IngestQueue) {
    publish(queue, "k", 2).await;
    let delivery = queue.take(10).await.expect("take").remove(0);
    for turn in &delivery.batch.turns {
        let mut letter = letter(&delivery, instant(1));
        letter.batch.turns = vec![turn.clone()];
        queue.dead_letter(&letter).await.expect("dead letter");
    }
    let letters = queue
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await
        .expect("dead letters")
        .items;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].batch, delivery.batch);
}

/// With fresh attempts.
pub async fn dead_letters_are_replayed_at_their_old_place(queue: &impl IngestQueue) {
    let accepted = [publish(queue, "k1", 3).await, publish(queue, "k2", 1).await];
    let deliveries = queue.take(100).await.expect("take");
    let mut failed = letter(&deliveries[0], instant(1));
    failed.batch.turns.remove(0);
    queue.dead_letter(&failed).await.expect("dead letter");
    queue.release(&[accepted[1]]).await.expect("release");
    let before = depth(queue).await.own.bytes;
    assert_eq!(queue.replay(&home(), &[]).await, Ok(1));
    assert!(depth(queue).await.own.bytes > before, "it waits again");
    assert_eq!(queue.replay(&home(), &[]).await, Ok(0));
    let again = queue.take(100).await.expect("take");
    assert_eq!(positions(&again), accepted);
    assert_eq!((&again[0].batch, again[0].attempt), (&failed.batch, 1));
    assert_eq!(queue.buried(&home(), failed.batch.id).await, Ok(None));
}

/// And not when its turns were recorded: an import keeps those times.
pub async fn a_delivery_says_when_it_was_accepted_also_after_a_replay(queue: &impl IngestQueue) {
    let told = some("k", 2);
    let accepted_at = instant(1_000_000);
    assert_ne!(told.turns[0].recorded_at, accepted_at);
    let published = queue.publish(&told, accepted_at, Bounds::NONE).await;
    published.expect("publish");
    let delivery = queue.take(10).await.expect("take").remove(0);
    assert_eq!(delivery.accepted_at, accepted_at);
    let failed = letter(&delivery, instant(2_000_000));
    queue.dead_letter(&failed).await.expect("dead letter");
    assert_eq!(queue.replay(&home(), &[]).await, Ok(1));
    let again = queue.take(10).await.expect("take").remove(0);
    assert_eq!(again.accepted_at, accepted_at);
}

/// A caller tried again before the replay: nothing of what was acknowledged goes.
pub async fn a_letter_whose_batch_waits_again_stays_until_it_can_be_replayed(
    queue: &impl IngestQueue,
) {
    publish(queue, "k", 2).await;
    let delivery = queue.take(10).await.expect("take").remove(0);
    let failed = letter(&delivery, instant(1));
    queue.dead_letter(&failed).await.expect("dead letter");
    let retried = publish(queue, "k", 2).await;
    assert_eq!(queue.replay(&home(), &[]).await, Ok(0));
    let buried = queue.buried(&home(), failed.batch.id).await;
    assert_eq!(buried, Ok(Some(failed.clone())));
    assert_eq!(take(queue, 10).await, [retried]);
    queue.acknowledge(&[retried]).await.expect("acknowledge");
    assert_eq!(queue.replay(&home(), &[]).await, Ok(1));
    assert_eq!(take(queue, 10).await, [failed.acceptance]);
}

/// Whether it is a letter still, or waits again after a replay.
pub async fn a_batch_that_is_a_letter_with_another_payload_is_a_conflict(queue: &impl IngestQueue) {
    publish(queue, "k", 2).await;
    let delivery = queue.take(10).await.expect("take").remove(0);
    let mut failed = letter(&delivery, instant(1));
    failed.batch.turns.truncate(1);
    queue.dead_letter(&failed).await.expect("dead letter");
    let mut other = delivery.batch.clone();
    other.turns.remove(0);
    let refused = queue.publish(&other, instant(2), Bounds::NONE).await;
    let conflict = |refused| matches!(refused, Err(StoreError::Conflict { .. }));
    assert!(conflict(refused));
    assert_eq!(queue.replay(&home(), &[]).await, Ok(1));
    assert!(conflict(
        queue.publish(&other, instant(2), Bounds::NONE).await
    ));
    let same = queue
        .publish(&delivery.batch, instant(2), Bounds::NONE)
        .await;
    assert!(same.expect("publish").duplicate);
}

/// Other spaces' letters stay where they are.
pub async fn a_replay_names_its_letters_or_means_all_of_the_space(queue: &impl IngestQueue) {
    let bob = scope("acme", "bob");
    let theirs = batch_in(&bob, "k", vec![turn_in(&bob, "s", "a", "x")]);
    queue
        .publish(&theirs, instant(0), Bounds::NONE)
        .await
        .expect("publish");
    for key in ["k1", "k2", "k3"] {
        publish(queue, key, 1).await;
    }
    let deliveries = queue.take(100).await.expect("take");
    for delivery in &deliveries {
        queue
            .dead_letter(&letter(delivery, instant(1)))
            .await
            .expect("dead letter");
    }
    let position = |n: usize| deliveries[n].acceptance;
    assert_eq!(
        queue.replay(&home(), &[position(2), position(0)]).await,
        Ok(1)
    );
    assert_eq!(take(queue, 100).await, [position(2)]);
    assert_eq!(queue.replay(&home(), &[]).await, Ok(2));
    assert_eq!(take(queue, 100).await, [position(1), position(3)]);
    assert_eq!(
        queue
            .dead_letters(&bob.tenant, Some(&bob.space), 10, None)
            .await
            .expect("dead letters")
            .items
            .len(),
        1
    );
}
