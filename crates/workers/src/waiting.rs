//! How long spaces wait for a stage, as one worker sees it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use memfleet_domain::Scope;
use tokio::time::Instant;

/// The spaces that were seen behind and not worked off since, with when they were first seen so.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<Scope, Instant>>);

impl Waiting {
    /// These spaces are behind, and no other: how long the first of them has been.
    pub(crate) fn behind(&self, spaces: &[Scope], now: Instant) -> Duration {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let behind: HashSet<&Scope> = spaces.iter().collect();
        since.retain(|scope, _| behind.contains(scope));
        for &scope in &behind {
            since.entry(scope.clone()).or_insert(now);
        }
        let oldest = since.values().min();
        oldest.map_or(Duration::ZERO, |since| now - *since)
    }

    /// A space is behind no longer.
    pub(crate) fn done(&self, scope: &Scope) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.remove(scope);
    }
}

#[cfg(test)]
mod tests {
    use memfleet_domain::ids::{SpaceId, TenantId};

    use super::*;

    fn space(name: &str) -> Scope {
        Scope {
            tenant: TenantId::new("t").unwrap(),
            space: SpaceId::new(name).unwrap(),
        }
    }

    #[test]
    fn a_space_waits_from_when_it_was_first_seen_until_it_is_worked_off() {
        let (waiting, begun) = (Waiting::default(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        let (ada, ben) = (space("ada"), space("ben"));
        assert_eq!(
            waiting.behind(std::slice::from_ref(&ada), at(0)),
            Duration::ZERO
        );
        let both = [ada.clone(), ben.clone()];
        assert_eq!(waiting.behind(&both, at(20)), Duration::from_secs(20));
        waiting.done(&ada);
        // New work came for it meanwhile.
        assert_eq!(waiting.behind(&both, at(50)), Duration::from_secs(30));
        assert_eq!(waiting.behind(&[ada], at(60)), Duration::from_secs(10));
        assert_eq!(waiting.behind(&[], at(70)), Duration::ZERO);
    }
}
