//! What every ingestion queue does.

mod delivery;
mod letters;
mod watching;

use memfleet_domain::ingestion::Batch;

use super::samples::{TEXTS, batch, batch_in, home, instant, scope, turn, turn_in};

use crate::queue::{Bounds, Delivery, Depths, IngestQueue};

pub use self::delivery::*;
pub use self::letters::*;
pub use self::watching::*;

/// Runs every case on a queue.
#[macro_export]
macro_rules! queue_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            queue,
            [
                batches_come_back_as_published_in_the_order_of_acceptance,
                a_delivery_says_when_it_was_accepted_also_after_a_replay,
                a_batch_that_waits_is_not_added_again,
                the_same_batch_with_another_payload_is_a_conflict,
                the_same_key_in_another_space_is_another_batch,
                taking_stops_at_the_bound_and_brings_one_batch_at_least,
                long_turns_count_by_their_size,
                tenants_are_served_in_turn,
                a_large_batch_of_one_tenant_holds_up_another_for_one_round_only,
                a_backlog_of_one_space_holds_up_another_of_its_tenant_for_one_round_only,
                what_is_held_is_not_handed_out_again,
                what_is_given_back_comes_again_first,
                what_is_given_back_untried_counts_no_attempt,
                what_is_postponed_comes_again_after_a_moment,
                what_is_acknowledged_is_gone_and_its_position_is_not_given_out_again,
                dead_letters_leave_the_queue_and_are_listed,
                dead_letters_of_all_spaces_of_a_tenant_are_listed,
                a_page_of_large_dead_letters_ends_before_its_limit,
                spaces_with_dead_letters_are_named,
                a_second_letter_of_a_delivery_loses_nothing_of_the_first,
                dead_letters_are_replayed_at_their_old_place,
                a_letter_whose_batch_waits_again_stays_until_it_can_be_replayed,
                a_batch_that_is_a_letter_with_another_payload_is_a_conflict,
                a_replay_names_its_letters_or_means_all_of_the_space,
                a_batch_that_waits_is_found,
                the_span_of_a_space_covers_what_waits_and_what_is_held,
                spaces_with_waiting_batches_are_listed_by_their_youngest,
                the_depth_counts_batches_turns_bytes_and_the_oldest,
                the_depth_of_a_tenant_is_its_own,
                the_depth_of_what_waits_counts_no_dead_letters,
                a_tenant_has_its_share_of_the_queue,
                publishing_wakes_whoever_waits,
                giving_back_wakes_whoever_waits,
                publishing_at_the_same_time_loses_and_doubles_nothing,
            ]
        );
    };
}

async fn publish(queue: &impl IngestQueue, key: &str, turns: u32) -> u64 {
    let published = queue
        .publish(&some(key, turns), instant(0), Bounds::NONE)
        .await
        .expect("publish");
    assert!(!published.duplicate);
    published.acceptance
}

fn some(key: &str, turns: u32) -> Batch {
    let turns = (0..turns).map(|n| turn(&format!("{key} {n}"), TEXTS[n as usize % TEXTS.len()]));
    batch(key, turns.collect())
}

/// A batch of `turns` turns of a tenant.
fn of(tenant: &str, key: &str, turns: u32) -> Batch {
    let scope = scope(tenant, "ada");
    let turns = (0..turns).map(|n| turn_in(&scope, "s", &format!("{key} {n}"), "x"));
    batch_in(&scope, key, turns.collect())
}

async fn depth(queue: &impl IngestQueue) -> Depths {
    queue.depth(Some(&home().tenant)).await.expect("depth")
}

async fn take(queue: &impl IngestQueue, turns: u32) -> Vec<u64> {
    positions(&queue.take(turns).await.expect("take"))
}

fn positions(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries
        .iter()
        .map(|delivery| delivery.acceptance)
        .collect()
}
