//! How the parts of a process are that may fail while the rest goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use memfleet_domain::Fault;
use memfleet_domain::time::Timestamp;

use crate::maintenance::Part;

/// What each part last said of itself; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<BTreeMap<&'static str, Option<Trouble>>>>);

/// What is wrong with a part, and since when anything is.
#[derive(Debug)]
struct Trouble {
    cause: String,
    since: Timestamp,
}

impl Health {
    /// Notes how a part is at this moment; without trouble it works. Callers read the trouble; its
    /// cause goes to the log when it begins.
    pub fn report(&self, part: &'static str, trouble: Option<&Fault>, now: Timestamp) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = parts.entry(part).or_default();
        let since = known.as_ref().map_or(now, |known| known.since);
        if let Some(fault) = trouble.filter(|_| known.is_none()) {
            tracing::warn!(part, reason = %fault.reason, "in trouble: {fault}");
        }
        *known = trouble.map(|fault| Trouble {
            cause: fault.message.clone(),
            since,
        });
    }

    /// Every part that has reported, by name.
    pub fn parts(&self) -> Vec<Part> {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = |(name, trouble): (&&'static str, &Option<Trouble>)| Part {
            name: (*name).to_owned(),
            trouble: trouble.as_ref().map(|trouble| trouble.cause.clone()),
            since: trouble.as_ref().map(|trouble| trouble.since),
        };
        parts.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_as_old_as_its_beginning() {
        let at = |seconds| Timestamp::from_timestamp(seconds, 0).unwrap();
        let health = Health::default();
        let away = Fault::internal("away").because("db:5432");
        health.report("store", Some(&away), at(1));
        health.report("store", Some(&Fault::internal("still away")), at(2));
        let [part] = &health.parts()[..] else {
            panic!("one part");
        };
        assert_eq!(part.since, Some(at(1)));
        assert_eq!(part.trouble.as_deref(), Some("still away"));
        health.report("store", None, at(3));
        assert_eq!(health.parts()[0].since, None);
        health.report("store", Some(&away), at(4));
        assert_eq!(health.parts()[0].since, Some(at(4)));
        assert_eq!(health.parts()[0].trouble.as_deref(), Some("away"));
    }
}
