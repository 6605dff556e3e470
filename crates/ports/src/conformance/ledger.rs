//! What every ledger does.

mod committing;
mod embedding;
mod listing;
mod repeating;
mod versions;

use memfleet_domain::ingestion::TurnState;
use memfleet_domain::turn::{AcceptedTurn, Turn};

use super::samples::{batch, home, indexed};

use crate::filter::TurnFilter;
use crate::ledger::{Committed, Ledger};

pub use self::committing::*;
pub use self::embedding::*;
pub use self::listing::*;
pub use self::repeating::*;
pub use self::versions::*;

/// Runs every case on a ledger.
#[macro_export]
macro_rules! ledger_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            ledger,
            [
                a_stored_turn_reads_back_as_it_was_accepted,
                texts_of_any_script_read_back_byte_by_byte,
                turns_come_in_the_order_of_the_ids_and_unknown_ids_are_left_out,
                a_batch_delivered_again_changes_nothing,
                a_turn_that_is_there_already_is_left_alone,
                an_external_id_with_other_content_is_dead_lettered_and_the_rest_is_stored,
                a_turn_named_twice_in_a_batch_is_stored_once,
                a_dead_lettered_turn_is_tried_again_when_its_batch_comes_back,
                several_batches_are_committed_in_the_order_given,
                a_batch_has_a_status_from_its_commit_on,
                positions_follow_acceptance_whatever_the_order_of_delivery,
                a_turn_that_brings_its_place_takes_it,
                the_same_names_under_another_tenant_or_space_are_other_turns,
                a_replaced_turn_leaves_the_default_listing,
                history_follows_replacements_both_ways,
                replacing_an_unknown_turn_is_dead_lettered,
                the_turns_before_one_are_those_of_its_session_that_still_stand,
                the_turns_that_a_session_ends_with_still_stand,
                the_later_of_two_replacements_stands,
                versions_are_in_the_order_of_acceptance_whatever_is_stored_first,
                each_filter_narrows_the_listing,
                a_listing_as_of_the_past_shows_what_was_known_and_had_happened,
                a_listing_is_ordered_by_session_start_then_position,
                the_order_of_acceptance_runs_across_sessions,
                pages_bring_every_turn_once_while_writes_go_on,
                a_foreign_page_token_is_refused,
                turns_without_vectors_are_found_and_completed,
                vectors_of_another_embedding_space_have_no_place,
                vectors_for_a_turn_that_is_gone_are_left_alone,
                vectors_of_many_turns_come_at_once,
                vectors_for_other_passages_are_refused,
            ]
        );
    };
}

async fn commit(
    store: &impl Ledger,
    key: &str,
    turns: Vec<AcceptedTurn>,
    acceptance: u64,
) -> Committed {
    let committed = store
        .commit(vec![indexed(batch(key, turns), acceptance)])
        .await;
    committed
        .expect("commit")
        .pop()
        .expect("one answer a batch")
}

async fn listed(store: &impl Ledger, filter: &TurnFilter) -> Vec<Turn> {
    let page = store
        .list(&home(), filter, 1_000, None)
        .await
        .expect("list");
    assert_eq!(page.next, None, "everything fits on the page");
    page.items
}

async fn texts(store: &impl Ledger, filter: &TurnFilter) -> Vec<String> {
    let turns = listed(store, filter).await;
    turns
        .into_iter()
        .map(|turn| turn.accepted.content.text)
        .collect()
}

fn states(committed: &Committed) -> Vec<TurnState> {
    committed
        .turns
        .iter()
        .map(|receipt| receipt.state)
        .collect()
}
