//! A ledger of use in memory: for one process, as long as it runs.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use chrono::NaiveDate;
use memfleet_domain::ids::TenantId;
use memfleet_ports::store;
use memfleet_ports::usage::{Amount, Limits, Reservation, UsageLedger};

/// Days that are kept.
const DAYS: usize = 2;

/// What tenants used of late.
#[derive(Debug, Default)]
pub struct MemoryLedger(Mutex<HashMap<NaiveDate, HashMap<TenantId, Amount>>>);

impl MemoryLedger {
    fn days(&self) -> MutexGuard<'_, HashMap<NaiveDate, HashMap<TenantId, Amount>>> {
        self.0.lock().expect("nothing panics with it")
    }
}

#[async_trait]
impl UsageLedger for MemoryLedger {
    async fn reserve(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        most: Amount,
        limits: &Limits,
    ) -> store::Result<Reservation> {
        let mut days = self.days();
        while !days.contains_key(&day) && days.len() >= DAYS {
            let oldest = days.keys().min().copied();
            days.remove(&oldest.expect("there are some"));
        }
        let used = days.entry(day).or_default();
        let used = used.entry(tenant.clone()).or_default();
        let together = used.plus(most);
        Ok(match limits.passed_by(together) {
            Some(kind) => Reservation::Refused(kind),
            None => {
                *used = together;
                Reservation::Made
            }
        })
    }

    async fn settle(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        reserved: Amount,
        used: Amount,
    ) -> store::Result<()> {
        let mut days = self.days();
        let counted = days.get_mut(&day).and_then(|day| day.get_mut(tenant));
        if let Some(counted) = counted {
            *counted = counted.less(reserved).plus(used);
        }
        Ok(())
    }

    async fn used(&self, tenant: &TenantId, day: NaiveDate) -> store::Result<Amount> {
        let days = self.days();
        let used = days.get(&day).and_then(|day| day.get(tenant));
        Ok(used.copied().unwrap_or_default())
    }

    async fn used_between(
        &self,
        tenant: &TenantId,
        asked: RangeInclusive<NaiveDate>,
    ) -> store::Result<Vec<(NaiveDate, Amount)>> {
        let days = self.days();
        let used = days.iter().filter(|(day, _)| asked.contains(day));
        let mut used: Vec<_> = used
            .filter_map(|(day, used)| Some((*day, *used.get(tenant)?)))
            .collect();
        used.sort_by_key(|(day, _)| *day);
        Ok(used)
    }
}
