//! How many dead letters there are, and whether there is any.

use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use memfleet_ports::store::Result;

use crate::admission::{Admission, MOMENT};
use crate::shared::Shared;

/// What is known of dead letters.
#[derive(Debug, Default)]
pub struct Letters {
    /// When there was none at all.
    none_at: Option<Instant>,
    /// How many this process buried.
    buried: u64,
}

impl Admission {
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Whether there is no dead letter at all, as is usual: then nobody who publishes has to look for one. What this process
    /// buries is known at once, what others bury after a moment.
    pub async fn has_no_letters(&self) -> Result<bool> {
        let buried = {
            let letters = self.admission.letters();
            if letters.none_at.is_some_and(|at| at.elapsed() < MOMENT) {
                return Ok(true);
            }
            letters.buried
        };
        let asked_at = Instant::now();
        let info = self.link.stream(&self.names.letters).await?;
        let is_empty = info.state.messages == 0;
        let mut letters = self.admission.letters();
        if is_empty && letters.buried == buried {
            letters.none_at = Some(asked_at);
        }
        Ok(is_empty)
    }

    /// There is a dead letter from now on.
    pub fn note_letter(&self) {
        let mut letters = self.admission.letters();
        letters.none_at = None;
        letters.buried += 1;
    }

    /// The dead letters of a tenant, and all of them.
    pub async fn count_letters(&self, tenant: Option<&str>) -> Result<(u64, u64)> {
        let places = self.letter_places(&self.names.all_letters()).await?;
        let own = places.iter().filter(|place| tenant == Some(&place.tenant));
        Ok((own.count() as u64, places.len() as u64))
    }
}
