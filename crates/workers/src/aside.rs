//! Spaces that one worker leaves alone for a while, so that those whose work fails keep no time from the others.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memfleet_domain::Scope;
use tokio::time::Instant;

/// Pause after the second failure in a row; twice as long after each further one …
const PAUSE: Duration = Duration::from_secs(20);
/// … and this long at most.
const LONGEST: Duration = Duration::from_mins(2);
/// How long a space is left to the worker that has it.
const TAKEN: Duration = Duration::from_secs(5);

/// The spaces left alone, with until when.
#[derive(Debug, Default)]
pub(crate) struct Aside(Mutex<HashMap<Scope, Pause>>);

#[derive(Debug)]
struct Pause {
    failures: u32,
    until: Instant,
}

impl Aside {
    fn pauses(&self) -> MutexGuard<'_, HashMap<Scope, Pause>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps those of these spaces that may be worked on now.
    pub(crate) fn keep_due(&self, spaces: &mut Vec<Scope>) {
        let now = Instant::now();
        let mut pauses = self.pauses();
        // Spaces that were not seen for long are gone.
        pauses.retain(|_, pause| pause.until + LONGEST > now);
        spaces.retain(|scope| pauses.get(scope).is_none_or(|pause| pause.until <= now));
    }

    /// The work on a space failed. After the first time it may be tried again at once: most failures pass.
    pub(crate) fn failed(&self, scope: &Scope) {
        let now = Instant::now();
        let mut pauses = self.pauses();
        let pause = pauses.entry(scope.clone()).or_insert(Pause {
            failures: 0,
            until: now,
        });
        let doubled = pause.failures.checked_sub(1).map(|times| times.min(16));
        pause.failures = pause.failures.saturating_add(1);
        pause.until = now
            + doubled.map_or(Duration::ZERO, |times| {
                (PAUSE * 2_u32.pow(times)).min(LONGEST)
            });
    }

    /// Another worker has the space.
    pub(crate) fn taken(&self, scope: &Scope) {
        let until = Instant::now() + TAKEN;
        let failures = 0;
        self.pauses()
            .insert(scope.clone(), Pause { failures, until });
    }

    /// A space was worked on.
    pub(crate) fn worked(&self, scope: &Scope) {
        self.pauses().remove(scope);
    }
}

/// The spaces with those of each tenant one after the other: the first of each, then the second of each.
pub(crate) fn in_turn(spaces: Vec<Scope>) -> Vec<Scope> {
    let mut seen = HashMap::new();
    let mut placed: Vec<(u32, Scope)> = Vec::with_capacity(spaces.len());
    for scope in spaces {
        let place = seen.entry(scope.tenant.clone()).or_insert(0);
        placed.push((*place, scope));
        *place += 1;
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, scope)| scope).collect()
}

#[cfg(test)]
mod tests {
    use memfleet_domain::ids::{SpaceId, TenantId};

    use super::*;

    fn space(tenant: &str, name: &str) -> Scope {
        Scope {
            tenant: TenantId::new(tenant).unwrap(),
            space: SpaceId::new(name).unwrap(),
        }
    }

    fn is_due(aside: &Aside, scope: &Scope) -> bool {
        let mut spaces = vec![scope.clone()];
        aside.keep_due(&mut spaces);
        !spaces.is_empty()
    }

    #[tokio::test(start_paused = true)]
    async fn a_space_that_fails_is_left_alone_for_longer_each_time_until_it_works() {
        let (aside, scope) = (Aside::default(), space("acme", "bad"));
        aside.failed(&scope);
        assert!(is_due(&aside, &scope));
        for seconds in [20, 40, 80, 120, 120] {
            aside.failed(&scope);
            tokio::time::advance(Duration::from_secs(seconds - 1)).await;
            assert!(!is_due(&aside, &scope), "{seconds}");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(is_due(&aside, &scope), "{seconds}");
        }
        aside.worked(&scope);
        aside.failed(&scope);
        assert!(is_due(&aside, &scope));
        aside.taken(&scope);
        assert!(!is_due(&aside, &scope));
        tokio::time::advance(LONGEST * 2).await;
        assert!(is_due(&aside, &scope));
        assert!(aside.pauses().is_empty());
    }

    #[test]
    fn tenants_have_their_turns() {
        let [a, b, c] = ["1", "2", "3"].map(|name| space("acme", name));
        let d = space("beta", "4");
        let given = vec![a.clone(), b.clone(), c.clone(), d.clone()];
        assert_eq!(in_turn(given), [a, d, b, c]);
    }
}
