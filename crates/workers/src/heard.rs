//! What a language model had no words for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::DerivationId;

/// How many are remembered.
const MOST: usize = 1_024;

/// Versions of derivations that a model said nothing of use about, the last ones: of a process, as another one may ask once more.
#[derive(Debug, Clone, Default)]
pub struct Heard(Arc<Mutex<VecDeque<(DerivationId, u32)>>>);

impl Heard {
    /// Whether it was asked about this version, to no avail.
    pub fn has(&self, derivation: &Derivation) -> bool {
        self.list().contains(&(derivation.id, derivation.version))
    }

    /// It was.
    pub fn note(&self, derivation: &Derivation) {
        let mut heard = self.list();
        heard.truncate(MOST - 1);
        heard.push_front((derivation.id, derivation.version));
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<(DerivationId, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
