//! What every erasure does to what is stored.

mod again;
mod retaining;
mod spaces;
mod turns;

use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::{AcceptedTurn, Role};

use super::samples::{batch, home, indexed, instant, speaker, turn_in};

use crate::erasure::{Erased, Erasure};
use crate::feed::IndexFeed;
use crate::filter::TurnFilter;
use crate::ledger::Ledger;
use crate::spaces::SpaceCatalog;

pub use self::again::*;
pub use self::retaining::*;
pub use self::spaces::*;
pub use self::turns::*;

/// Runs every case on a store that is ledger, feed, catalogue and erasure.
#[macro_export]
macro_rules! erasure_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            erasure,
            [
                a_plan_says_what_an_erase_removes_and_touches_nothing,
                each_way_to_forget_removes_what_it_names,
                every_name_of_a_person_goes_from_one_space_and_no_other,
                what_is_forgotten_is_gone_from_every_read,
                the_feed_says_what_was_forgotten,
                a_batch_says_that_its_turns_were_forgotten,
                a_redelivery_does_not_bring_back_what_was_forgotten,
                a_message_that_was_forgotten_and_is_sent_again_stays_away,
                what_is_told_again_after_its_space_was_forgotten_is_stored_again,
                an_import_brings_back_a_space_and_no_single_turn,
                forgetting_an_edit_forgets_the_versions_it_replaced,
                forgetting_an_old_version_leaves_the_newer_one,
                an_edit_of_a_forgotten_turn_is_stored,
                a_space_knows_what_it_had_to_forget,
                the_batches_of_a_space_go_with_it,
                forgetting_everything_removes_the_space_and_no_other,
                a_space_told_again_goes_on_counting,
                a_filter_that_matches_nothing_removes_nothing,
                positions_and_order_of_what_stays_do_not_change,
                a_session_starts_with_the_first_turn_that_is_left,
                spaces_with_turns_past_their_retention_are_expired,
                the_newest_turns_are_kept,
                retention_goes_step_by_step,
                a_period_and_a_number_mean_the_turns_of_either,
                a_number_counts_replaced_turns,
                a_space_on_hold_forgets_nothing,
                retention_passes_a_space_on_hold_by,
                a_hold_stays_until_it_is_lifted,
                only_a_space_that_is_there_can_be_held,
            ]
        );
    };
}

/// A store that all this can be asked of.
pub trait Store: Ledger + IndexFeed + SpaceCatalog + Erasure {}

impl<S: Ledger + IndexFeed + SpaceCatalog + Erasure> Store for S {}

async fn commit(store: &impl Store, key: &str, turns: Vec<AcceptedTurn>, acceptance: u64) {
    store
        .commit(vec![indexed(batch(key, turns), acceptance)])
        .await
        .expect("commit");
}

/// Turns 0 to 5 in sessions s0 to s2, two each, by Ada and Ben in turn.
async fn conversation(store: &impl Store) -> Vec<AcceptedTurn> {
    let tell = |n: usize| AcceptedTurn {
        speaker: speaker(["Ada", "Ben"][n % 2]),
        role: [Role::User, Role::Assistant][n % 2],
        event_time: Some(instant(n as i64 * 100)),
        metadata: [("n".to_owned(), n.to_string())].into(),
        ..turn_in(
            &home(),
            &format!("s{}", n / 2),
            &n.to_string(),
            &format!("turn number {n} of them all"),
        )
    };
    let turns: Vec<_> = (0..6).map(tell).collect();
    commit(store, "conversation", turns.clone(), 1).await;
    turns
}

async fn left(store: &impl Store) -> Vec<TurnId> {
    let all = TurnFilter {
        include_replaced: true,
        ..TurnFilter::default()
    };
    let page = Ledger::list(store, &home(), &all, 1_000, None)
        .await
        .expect("list");
    page.items
        .into_iter()
        .map(|turn| turn.accepted.id)
        .collect()
}

fn by_turn(turn: &AcceptedTurn) -> TurnFilter {
    TurnFilter {
        turns: vec![turn.id],
        ..TurnFilter::default()
    }
}

async fn erase(store: &impl Store, filter: &TurnFilter) -> Erased {
    store.erase(&home(), filter).await.expect("erase")
}
