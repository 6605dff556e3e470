//! Conformance suites: what every adapter of a storage port must do, one test a case, each on a fresh store.
//!
//! An adapter's test file names a function `async fn fresh() -> (Store, Guard)` (the guard keeps the store's place alive)
//! and calls `memfleet_ports::ledger_conformance!(fresh);` and so on; its tests need `tokio` with `macros`.

pub mod candidates;
pub mod erasure;
pub mod exchanges;
pub mod feed;
pub mod graph;
pub mod injections;
pub mod keys;
pub mod knowledge;
pub mod ledger;
pub mod model_switch;
pub mod queue;
pub mod samples;
pub mod settings;
pub mod spaces;
pub mod undelivered;
pub mod usage;

/// One `#[tokio::test]` a case, in a module of the suite's name. Called by the suites' own macros.
#[macro_export]
macro_rules! conformance_cases {
    ($fresh:ident, $suite:ident, [$($case:ident),* $(,)?]) => {
        mod $suite {
            $(
                #[tokio::test]
                async fn $case() {
                    let (store, _guard) = super::$fresh().await;
                    $crate::conformance::$suite::$case(&store).await;
                }
            )*
        }
    };
}
