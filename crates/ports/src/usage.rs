//! What models may cost a tenant in a day. A call first reserves the most that it can cost, so that calls at the same time cannot
//! pass a limit together; what it really cost takes the place of that when it is known. Of a call that never ends the reserve stays.

use std::fmt;
use std::ops::RangeInclusive;

use async_trait::async_trait;
use chrono::NaiveDate;
use memfleet_domain::ids::TenantId;

use crate::store;

/// An amount of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Requests that were sent.
    pub calls: u64,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money, in millionths of the currency that prices are given in.
    pub micros: u64,
}

impl Amount {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// What is left of it; nothing is the least.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    fn each(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            calls: combine(self.calls, other.calls),
            tokens: combine(self.tokens, other.tokens),
            micros: combine(self.micros, other.micros),
        }
    }
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Requests.
    Calls,
    /// Tokens.
    Tokens,
    /// Money.
    Money,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Calls => "calls",
            Self::Tokens => "tokens",
            Self::Money => "money",
        })
    }
}

/// What a tenant may use in a day; absent is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Requests.
    pub calls: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money, in millionths.
    pub micros: Option<u64>,
}

impl Limits {
    /// The first limit that an amount passes.
    pub fn passed_by(&self, amount: Amount) -> Option<Kind> {
        let limits = [
            (Kind::Calls, self.calls, amount.calls),
            (Kind::Tokens, self.tokens, amount.tokens),
            (Kind::Money, self.micros, amount.micros),
        ];
        let passed = |limit: Option<u64>, amount| limit.is_some_and(|limit| amount > limit);
        let mut limits = limits.into_iter();
        limits
            .find(|(_, limit, amount)| passed(*limit, *amount))
            .map(|(kind, ..)| kind)
    }
}

/// What came of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// It counts from now on.
    Made,
    /// It would pass this limit, and nothing changed.
    Refused(Kind),
}

/// A tenant's use, day by day (UTC).
#[async_trait]
pub trait UsageLedger: Send + Sync {
    /// Counts `most`, unless that together with what counts already passes a limit; one step, whoever else reserves.
    async fn reserve(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        most: Amount,
        limits: &Limits,
    ) -> store::Result<Reservation>;

    /// Counts what was `used` in place of what was `reserved` for it.
    async fn settle(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        reserved: Amount,
        used: Amount,
    ) -> store::Result<()>;

    /// What counts of a day, reservations included.
    async fn used(&self, tenant: &TenantId, day: NaiveDate) -> store::Result<Amount>;

    /// The same of each of these days on which there was something, in order.
    async fn used_between(
        &self,
        tenant: &TenantId,
        days: RangeInclusive<NaiveDate>,
    ) -> store::Result<Vec<(NaiveDate, Amount)>>;
}
