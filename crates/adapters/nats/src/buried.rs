//! How many dead letters there are, and whether there is any.

use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use memfleet_ports::store::Result;

use crate::admission::{Admission, MOMENT};
use crate::shared::Shared;

/// The letters of a tenant are counted when this process has buried so many more.
const COUNTED: u64 = 64;

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

    /// A tenant has one more dead letter. Now and then its oldest are removed where it has too many.
    pub async fn note_letter(&self, tenant: &str) -> Result<()> {
        let buried = {
            let mut letters = self.admission.letters();
            letters.none_at = None;
            letters.buried += 1;
            letters.buried
        };
        let most = self.options.letters;
        if !buried.is_multiple_of(most.clamp(1, COUNTED)) {
            return Ok(());
        }
        let places = self
            .letter_places(&self.names.letters_of_tenant(tenant))
            .await?;
        let surplus = places.len().saturating_sub(most as usize);
        if surplus > 0 {
            tracing::warn!(
                tenant,
                surplus,
                "the oldest dead letters are removed: there are too many"
            );
        }
        for place in &places[..surplus] {
            if let Some(found) = self.letter_at(place).await? {
                self.link
                    .delete(&self.names.letters, found.sequence)
                    .await?;
                metrics::counter!("memfleet_dead_letters_removed_total").increment(1);
            }
        }
        Ok(())
    }

    /// How many dead letters a tenant has, and how many there are. The subjects of other tenants are not listed.
    pub async fn count_letters(&self, tenant: Option<&str>) -> Result<(u64, u64)> {
        let stream = &self.names.letters;
        let own = async {
            let Some(tenant) = tenant else { return Ok(0) };
            let filter = self.names.letters_of_tenant(tenant);
            Ok(self.link.subjects(stream, &filter).await?.len() as u64)
        };
        let (own, info) = futures::try_join!(own, self.link.stream(stream))?;
        Ok((own, info.state.messages))
    }
}
