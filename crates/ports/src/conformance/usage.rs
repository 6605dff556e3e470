//! What every ledger of use does.

use chrono::NaiveDate;
use futures::future::join_all;
use memfleet_domain::ids::TenantId;

use crate::usage::{Amount, Kind, Limits, Reservation, UsageLedger};

/// Runs every case on a ledger of use.
#[macro_export]
macro_rules! usage_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            usage,
            [
                a_reservation_counts_until_it_is_settled,
                a_reservation_beyond_a_limit_changes_nothing,
                a_limit_can_be_reached_and_not_passed,
                reservations_at_the_same_time_stay_within_the_limit,
                another_tenant_and_another_day_count_for_themselves,
                what_cost_more_than_was_reserved_counts_in_full,
                days_are_told_in_order_without_those_of_nothing,
            ]
        );
    };
}

const NONE: Limits = Limits {
    calls: None,
    tokens: None,
    micros: None,
};

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("a valid sample")
}

fn day(ordinal: u32) -> NaiveDate {
    NaiveDate::from_yo_opt(2026, ordinal).expect("a valid sample")
}

fn amount(calls: u64, tokens: u64, micros: u64) -> Amount {
    Amount {
        calls,
        tokens,
        micros,
    }
}

async fn reserve(store: &impl UsageLedger, most: Amount, limits: &Limits) -> Reservation {
    let made = store.reserve(&tenant("acme"), day(1), most, limits).await;
    made.expect("reserve")
}

async fn used(store: &impl UsageLedger) -> Amount {
    store.used(&tenant("acme"), day(1)).await.expect("used")
}

/// And then what was used counts.
pub async fn a_reservation_counts_until_it_is_settled(store: &impl UsageLedger) {
    assert_eq!(used(store).await, Amount::default());
    let (most, real) = (amount(1, 900, 50), amount(1, 120, 7));
    for _ in 0..2 {
        assert_eq!(reserve(store, most, &NONE).await, Reservation::Made);
    }
    assert_eq!(used(store).await, most.plus(most));
    let settled = store.settle(&tenant("acme"), day(1), most, real).await;
    assert_eq!((settled, used(store).await), (Ok(()), most.plus(real)));
}

/// Whichever limit it is.
pub async fn a_reservation_beyond_a_limit_changes_nothing(store: &impl UsageLedger) {
    let most = amount(2, 200, 20);
    for (limits, kind) in [
        (
            Limits {
                calls: Some(1),
                ..NONE
            },
            Kind::Calls,
        ),
        (
            Limits {
                tokens: Some(199),
                ..NONE
            },
            Kind::Tokens,
        ),
        (
            Limits {
                micros: Some(0),
                ..NONE
            },
            Kind::Money,
        ),
    ] {
        let made = reserve(store, most, &limits).await;
        assert_eq!(made, Reservation::Refused(kind));
        assert_eq!(used(store).await, Amount::default());
    }
}

/// To the last token.
pub async fn a_limit_can_be_reached_and_not_passed(store: &impl UsageLedger) {
    let limits = Limits {
        tokens: Some(100),
        ..NONE
    };
    let made = reserve(store, amount(1, 100, 0), &limits).await;
    assert_eq!(made, Reservation::Made);
    let made = reserve(store, amount(1, 1, 0), &limits).await;
    assert_eq!(made, Reservation::Refused(Kind::Tokens));
}

/// However many there are.
pub async fn reservations_at_the_same_time_stay_within_the_limit(store: &impl UsageLedger) {
    let limits = Limits {
        calls: Some(5),
        ..NONE
    };
    let calls = (0..20).map(|_| reserve(store, amount(1, 10, 1), &limits));
    let made = join_all(calls).await;
    let granted = made.iter().filter(|made| **made == Reservation::Made);
    assert_eq!(granted.count(), 5);
    assert_eq!(used(store).await, amount(5, 50, 5));
}

/// Their limits too.
pub async fn another_tenant_and_another_day_count_for_themselves(store: &impl UsageLedger) {
    let limits = Limits {
        calls: Some(1),
        ..NONE
    };
    for (name, ordinal) in [("acme", 1), ("acme", 2), ("other", 1)] {
        let (tenant, most) = (tenant(name), amount(1, 1, 1));
        let made = store.reserve(&tenant, day(ordinal), most, &limits).await;
        assert_eq!(made, Ok(Reservation::Made), "{name} {ordinal}");
    }
    assert_eq!(used(store).await, amount(1, 1, 1));
}

/// A server need not keep to the limit that it was given.
pub async fn what_cost_more_than_was_reserved_counts_in_full(store: &impl UsageLedger) {
    let (most, real) = (amount(1, 10, 1), amount(1, 500, 60));
    reserve(store, most, &NONE).await;
    let settled = store.settle(&tenant("acme"), day(1), most, real).await;
    assert_eq!((settled, used(store).await), (Ok(()), real));
}

/// The first and the last that were asked for included, and of this tenant alone.
pub async fn days_are_told_in_order_without_those_of_nothing(store: &impl UsageLedger) {
    for (name, ordinal) in [("acme", 4), ("acme", 1), ("other", 2), ("acme", 3)] {
        let most = amount(1, u64::from(ordinal), 1);
        let made = store
            .reserve(&tenant(name), day(ordinal), most, &NONE)
            .await;
        assert_eq!(made, Ok(Reservation::Made), "{name} {ordinal}");
    }
    let between = async |first, last| {
        let days = day(first)..=day(last);
        let used = store.used_between(&tenant("acme"), days).await;
        let used = used.expect("used").into_iter();
        used.map(|(day, used)| (day, used.tokens))
            .collect::<Vec<_>>()
    };
    assert_eq!(between(3, 4).await, [(day(3), 3), (day(4), 4)]);
    assert_eq!(between(2, 3).await, [(day(3), 3)]);
    assert_eq!(between(5, 1).await, []);
}
