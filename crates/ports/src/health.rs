//! How the parts of a process are that may fail while the rest goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::maintenance::Part;

/// What each part last said of itself; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<BTreeMap<&'static str, Option<String>>>>);

impl Health {
    /// Notes how a part is; without trouble it works.
    pub fn report(&self, part: &'static str, trouble: Option<String>) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.insert(part, trouble);
    }

    /// Every part that has reported, by name.
    pub fn parts(&self) -> Vec<Part> {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = |(name, trouble): (&&'static str, &Option<String>)| Part {
            name: (*name).to_owned(),
            trouble: trouble.clone(),
        };
        parts.iter().map(part).collect()
    }
}
