//! Changes of the embedding model.

use memfleet_ports::conformance::model_switch as cases;

use crate::database::Database;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_model_goes_there_and_back() {
    let database = Database::migrated().await;
    cases::a_change_of_the_model_goes_there_and_back(&database.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_model_takes_the_place_of_the_first() {
    let database = Database::migrated().await;
    cases::a_third_model_takes_the_place_of_the_first(&database.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_space_is_compared_while_its_last_turns_wait() {
    let database = Database::migrated().await;
    cases::a_busy_space_is_compared_while_its_last_turns_wait(&database.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_roll_back_removes_what_is_half_built() {
    let database = Database::migrated().await;
    cases::a_roll_back_removes_what_is_half_built(&database.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unlike_model_is_served_when_it_is_forced() {
    let database = Database::migrated().await;
    cases::an_unlike_model_is_served_when_it_is_forced(&database.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_without_vectors_gets_those_of_both_models() {
    let database = Database::migrated().await;
    cases::a_turn_without_vectors_gets_those_of_both_models(&database.store().await).await;
}
